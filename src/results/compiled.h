// SPDX-License-Identifier: Apache-2.0
// What became machine code in a run, and what stayed with the interpreter?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::results {

struct InterpretedKind {
  std::string opcode;
  int64_t count = 0;  // places in the kernel; of a watched run: warps that issued one
};

struct CompiledKernel {
  std::string kernel;
  int64_t stretches = 0;  // that could be compiled
  int64_t compiled = 0;   // of those
  int64_t entered = 0;    // how often warps came to compiled ones
  int64_t missed = 0;     // of those, interpreted after all
  int64_t code_bytes = 0;
  double compiling_ms = 0;
  bool refused = false;                      // the system gave no executable memory
  std::vector<InterpretedKind> interpreted;  // the most frequent first
};

}  // namespace kiln::results
