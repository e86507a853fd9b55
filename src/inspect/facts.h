// SPDX-License-Identifier: Apache-2.0
// Which of the facts of a file does `kiln inspect` show? What was read, without the bytes, as
// results.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspect/analysis.h"
#include "inspect/needs.h"
#include "results/inspection.h"

namespace kiln::inspect {

// `gpus`: architectures of this machine's GPUs, as 90.
results::Overview overview_of(const Analysis& analysis, const std::vector<uint32_t>& gpus);

results::FileBytes file_bytes_of(const Analysis& analysis);

results::KernelFacts kernel_of(const KernelRow& row, Demangler& demangle, uint32_t block_threads);
// Those with `filter` in their mangled or demangled name, in the file's order; empty: all.
std::vector<results::KernelFacts> kernels_of(const Analysis& analysis, const std::string& filter,
                                             uint32_t block_threads);

results::Symbols symbols_of(SymbolView view);

struct PageInput {
  const Analysis& analysis;
  results::CodeList code;             // with sources
  std::optional<SymbolView> symbols;  // none for device code alone
  std::vector<uint32_t> gpus;
  uint32_t block_threads = 256;
};
results::Inspection inspection_of(PageInput input);

}  // namespace kiln::inspect
