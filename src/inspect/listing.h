// SPDX-License-Identifier: Apache-2.0
// What does a kernel's SASS read like, instruction by instruction: text, control code, live
// registers, branch target, source line with the calls it was inlined into, PTX line?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "binary/cubin.h"
#include "binary/line_table.h"
#include "results/inspect/code.h"
#include "sys/env.h"
#include "sys/files.h"
#include "sys/process.h"

namespace kiln::inspect {

using results::CubinListing;
using results::Listing;
using results::SassLine;
using results::SourceFrame;

// nvdisasm: PATH, CUDA_HOME or else /usr/local/cuda, that of `kiln setup`, the PyPI package
// nvidia-cuda-nvdisasm of python3. Empty: none.
sys::fs::path find_nvdisasm(const sys::Files& files, sys::Processes& processes,
                            const sys::Environment& env);

struct ListingOptions {
  sys::fs::path nvdisasm;         // empty: without
  std::vector<uint32_t> symbols;  // of the kernels wanted
  std::string arch;               // "sm_90a"
};
Result<CubinListing> list_cubin(binary::Bytes cubin, const ListingOptions& options,
                                sys::Files& files, sys::Processes& processes);

// What nvdisasm -c -lrm count prints, by section and address.
struct DisassembledLine {
  std::string label, text;
  int registers = -1, predicates = -1, uniform = -1;
};
std::map<std::string, std::map<uint64_t, DisassembledLine>> parse_nvdisasm(std::string_view text);

}  // namespace kiln::inspect
