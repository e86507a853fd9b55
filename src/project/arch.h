// SPDX-License-Identifier: Apache-2.0
// For which GPU architectures is code made? The ways to write a list of them, and what nvcc is
// given.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace kiln::project {

struct Arch {
  int major = 0;
  int minor = 0;
  char variant = 0;  // 'a' (this architecture alone), 'f' (its family) or 0

  // clang-tidy 14 takes a 0 inside the comparison for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  auto operator<=>(const Arch&) const = default;
  std::string text() const;    // "9.0a", as people and torch write it
  std::string number() const;  // "90a", as in sm_90a
};

struct ArchList {
  std::vector<Arch> sass;  // sorted, each once
  std::vector<Arch> ptx;   // sorted, never empty

  bool operator==(const ArchList&) const = default;
};

// Code for any GPU since Ampere, by its PTX.
inline constexpr Arch kPortableArch{8, 0, 0};

// "9.0", "9.0a", "8.0;9.0+PTX", "80 90", "sm_90", "compute_90" (PTX alone), "Hopper". "native" is
// the caller's to replace. PTX is always there: where +PTX names it; else for the newest plain
// architecture, and for the variants (whose code no other PTX can be in for).
Result<ArchList> parse_arch_list(std::string_view text);

ArchList only(Arch arch);

// Takes -gencode, -arch and -code out of nvcc's flags, in each way to write them: the list that
// they ask for ("sm_90a;compute_80", "native"). Empty where there are none, or one that such a list
// cannot say (-arch=all); then the flags stay as they are.
std::string take_arch_flags(std::vector<std::string>& flags);

// "-gencode=arch=compute_90,code=[sm_90,compute_90]", one for each virtual architecture.
std::vector<std::string> gencode_flags(const ArchList& list);

// "sm_80, sm_90 + PTX compute_90"
std::string describe(const ArchList& list);

}  // namespace kiln::project
