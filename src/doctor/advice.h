// SPDX-License-Identifier: Apache-2.0
// What would be right for this machine: how many jobs, which architectures, which driver?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/facts.h"

namespace kiln::doctor {

// What one compiler takes on a source with torch's headers (2.8 GB measured with g++ 12 and
// torch 2.11).
inline constexpr uint64_t kJobBytes = 3'000'000'000;
inline constexpr const char* kOldestNinja = "1.11";

// Of memory available and ulimit -v the smaller.
uint64_t usable_memory_bytes(const Machine& machine);
// As many as cores and memory allow, at least one.
int fitting_jobs(const Machine& machine);
// MAX_JOBS where it is a number above 0.
std::optional<int> asked_jobs(const Variables& variables);

// "9.0": the GPUs here, or the portable one.
std::string fitting_arch(const Facts& facts);
// What is asked for, and who asks: kiln.toml before TORCH_CUDA_ARCH_LIST. Nothing where nobody
// does, or it cannot be read.
struct AskedArchs {
  project::ArchList list;
  std::string by;
};
std::optional<AskedArchs> asked_archs(const Facts& facts);

// The first driver of a CUDA major: 580 of 13. 0: not known.
int first_driver(int cuda_major);
// "13" of "13.0", "libcudart.so.13"; 0 where there is no number.
int major_of(std::string_view version);
// The value of --threads, -t in nvcc's flags; 0 where there is none.
int threads_in(std::string_view flags);

std::string gigabytes(uint64_t bytes);

}  // namespace kiln::doctor
