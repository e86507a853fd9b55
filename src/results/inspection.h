// SPDX-License-Identifier: Apache-2.0
// What does the page of `kiln inspect --html` show of a file? Its bytes, kernels, code and symbols.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "results/file_bytes.h"

namespace kiln::results {

// How many blocks of a kernel fit on a multiprocessor.
struct Fit {
  uint32_t blocks = 0, block_threads = 0;
  double fraction = 0;  // of the warps it can hold
  std::string limiter;  // "registers"
};

struct KernelFacts {
  std::string name, symbol, arch;  // demangled, mangled, "sm_90a"
  uint64_t registers = 0, shared_bytes = 0, reserved_shared_bytes = 0, stack_bytes = 0;
  uint64_t spill_store_bytes = 0, spill_load_bytes = 0, constant_bytes = 0, parameter_bytes = 0;
  uint64_t barriers = 0, instructions = 0;
  std::string bounds;      // of __launch_bounds__, as text
  std::optional<Fit> fit;  // none: not known for this architecture
  std::string mix;         // instructions by class, as text
  int listing = -1;        // index into Inspection::code; -1: its code is not listed
};

struct SourceText {
  std::string path;
  std::optional<std::vector<std::string>> lines;
  std::string why;  // there are no lines
};

struct CodeFrame {
  size_t file = 0;  // index into Inspection::files
  uint32_t line = 0;
  std::optional<size_t> function;  // index into Inspection::names; none: the kernel itself
};

struct CodeLine {
  std::string text;
  uint32_t control = 0;  // bits 41 and up of the instruction
  int live_registers = -1;
  size_t frames = 0;      // index into Code::frames
  uint32_t ptx_line = 0;  // from 1; 0: not known
};

struct Code {
  std::string name, symbol, arch;
  uint64_t first_address = 0;
  std::vector<CodeLine> lines;
  std::vector<std::vector<CodeFrame>> frames;          // each once; innermost first
  std::vector<std::pair<size_t, std::string>> labels;  // before which line
  size_t ptx_first = 0;                                // index of the first line of `ptx`
  std::vector<std::string> ptx;
};

struct LibraryRow {
  std::string name, where, how;
  int depth = 0;  // below the library that asked for it first
};

struct SymbolEntry {
  char letter = '?';  // as nm shows it
  std::string name, from;
};

struct Symbols {
  std::string tag, glibc, glibcxx;  // "manylinux_2_34_aarch64", "2.34", "3.4.30"
  std::vector<std::string> advice;
  std::vector<LibraryRow> libraries;
  std::vector<SymbolEntry> needed, defined;  // not all of them: a page stays small
  size_t needed_count = 0, defined_count = 0;
};

enum class Service { Native, Jit, None };

// Does a GPU run the file's device code?
struct GpuService {
  std::string arch, names;  // "9.0", "H100, H200"
  Service service = Service::None;
  std::string by;  // the image that it runs or compiles: "sm_90"
};

struct Inspection {
  FileBytes file;
  std::vector<GpuService> gpus;    // every GPU that kiln knows; empty without device code
  std::vector<std::string> notes;  // drivers, GPUs of this machine, damaged images
  std::vector<KernelFacts> kernels;
  std::vector<SourceText> files;
  std::vector<std::string> names;  // of inlined functions; each once, since they are long
  std::vector<Code> code;
  size_t code_left_out = 0;             // kernels beyond the limit of a page
  std::vector<std::string> code_notes;  // what is missing, and how to get it
  std::optional<Symbols> symbols;       // none for device code alone
};

}  // namespace kiln::results
