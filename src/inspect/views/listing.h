// SPDX-License-Identifier: Apache-2.0
// What does a kernel's SASS read like, instruction by instruction: text, control code, live
// registers, branch target, source line with the calls it was inlined into, PTX line?
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "binary/cubin.h"
#include "binary/line_table.h"
#include "sys/env.h"
#include "sys/files.h"
#include "sys/process.h"

namespace kiln::inspect {

struct SourceFrame {
  uint32_t file = 0;  // index into Listing::files
  uint32_t line = 0;
  std::string function;  // demangled name of the inlined function that the line is in; empty for
                         // the kernel itself
};

struct SassLine {
  uint64_t address = 0, low = 0, high = 0;
  binary::ControlCode control;
  std::string label;   // ".L_x_2" when a branch leads here
  std::string text;    // "LDG.E R4, desc[UR8][R2.64]"; without a disassembler the mnemonic alone
  std::string target;  // the label that it branches to
  int live_registers = -1, live_predicates = -1, live_uniform = -1;  // -1: not known
  std::vector<SourceFrame> source;                                   // innermost first
  uint32_t ptx_line = 0;  // of Listing::ptx, from 1; 0: not known
};

struct Listing {
  std::string symbol, arch;
  std::vector<std::string> files;  // 0 is ""
  std::vector<SassLine> lines;     // without the padding at the end
  bool disassembled = false;
};

struct CubinListing {
  std::vector<Listing> kernels;
  std::vector<std::string>
      ptx;  // lines of the PTX that the cubin was made of, where it keeps it (-lineinfo, -G)
  std::string note;  // what to install for more; empty when nothing is missing
};

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
