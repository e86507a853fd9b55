// SPDX-License-Identifier: Apache-2.0
// What does the code of kernels read like, as SASS with its sources and as PTX?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace kiln::results {

// How an instruction of SASS is scheduled.
struct ControlCode {
  uint8_t stall = 0;          // cycles to wait before the next instruction issues
  bool yield = false;         // the scheduler may switch to another warp
  uint8_t write_barrier = 7;  // set when the result is there; 7: none
  uint8_t read_barrier = 7;   // set when the operands were read; 7: none
  uint8_t wait_mask = 0;      // barriers to wait for
  uint8_t reuse = 0;          // operands to keep in the reuse cache
};

struct SourceFrame {
  uint32_t file = 0;  // index into Listing::files
  uint32_t line = 0;
  std::string function;  // demangled name of the inlined function that the line is in; empty for
                         // the kernel itself
};

struct SassLine {
  uint64_t address = 0, low = 0, high = 0;
  ControlCode control;
  std::string label;   // ".L_x_2" when a branch leads here
  std::string text;    // "LDG.E R4, desc[UR8][R2.64]"; without a disassembler the mnemonic alone
  std::string target;  // the label that it branches to
  int live_registers = -1, live_predicates = -1, live_uniform = -1;  // -1: not known
  std::vector<SourceFrame> source;                                   // innermost first
  uint32_t ptx_line = 0;  // of CubinListing::ptx, from 1; 0: not known
};

struct Listing {
  std::string symbol, name, arch;  // mangled, demangled, "sm_90a"
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

struct CodeImage {
  size_t image = 0;  // index into Overview::images
  CubinListing listing;
};

struct SourceText {
  std::string path;
  std::optional<std::vector<std::string>> lines;
  std::string why;  // there are no lines
};

struct CodeList {
  std::vector<CodeImage> images;
  size_t left_out = 0;  // kernels beyond the limit that was asked for
  std::string note;     // what is missing, and how to get it
  std::vector<SourceText> sources;
  std::string sources_note;  // sources that were left out, and how to include them
};

struct PtxText {
  std::string arch;  // "compute_90"
  std::string text;
};

Json to_json(const Listing& listing);
Json to_json(const PtxText& ptx);

}  // namespace kiln::results
