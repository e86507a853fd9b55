// SPDX-License-Identifier: Apache-2.0
// How do overview and kernels read on a terminal?
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "inspect/analysis.h"

namespace kiln::inspect {

struct TextStyle {
  int columns = 0;  // names are cut to it; 0: never
  bool color = false;
  bool verbose = false;
  uint32_t block_threads = 256;

  std::string bold(std::string_view text) const;
  std::string dim(std::string_view text) const;
};

// `gpus`: architectures of this machine's GPUs, as 90.
std::string overview_text(const Analysis& analysis, const std::vector<uint32_t>& gpus,
                          const TextStyle& style);

// What the file's device code needs: "driver" and a version, "here" and what this machine does.
std::vector<std::pair<std::string, std::string>> service_notes(const Analysis& analysis,
                                                               const std::vector<uint32_t>& gpus);

// Rows by kernel, then by architecture. `filter` is searched in mangled and demangled names; empty:
// all.
std::string kernels_text(const Analysis& analysis, const std::string& filter,
                         const TextStyle& style);

bool name_matches(const std::string& filter, const std::string& mangled,
                  const std::string& demangled);
// "cut…"
std::string fitted(std::string_view text, int columns);
std::string mix_text(const binary::SassCounts& counts);
// "<= 1024", "= 16x16, 2" with the blocks that a multiprocessor must hold, "" without
std::string bounds_text(const binary::KernelAttributes& attributes);

}  // namespace kiln::inspect
