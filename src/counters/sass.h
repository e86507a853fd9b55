// SPDX-License-Identifier: Apache-2.0
// What did ptxas make of each line of PTX? A cubin with line information maps each SASS instruction
// to its line of PTX, so both can be found without a disassembler.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "inspect/analysis.h"

namespace kiln::counters {

enum class Access : uint8_t { SharedLoad, SharedStore, GlobalLoad, GlobalStore };
inline constexpr size_t kAccesses = 4;

// Of one line of PTX.
struct SassOfLine {
  uint32_t instructions = 0;
  uint32_t branches = 0;                               // conditional ones
  uint32_t atomics = 0, reductions = 0;                // of global memory
  std::array<std::vector<uint32_t>, kAccesses> bytes;  // of each access, by its kind
  bool moved = false;  // an access is behind a branch that PTX has behind it

  const std::vector<uint32_t>& of(Access kind) const { return bytes[static_cast<size_t>(kind)]; }
};

struct SassOfKernel {
  std::unordered_map<uint32_t, SassOfLine> lines;
  std::vector<std::string> ptx;  // its text by line, from 0

  bool empty() const { return ptx.empty(); }
};

// Empty where the cubin has no such table.
SassOfKernel read_sass(const inspect::Analysis& analysis, const inspect::KernelRow& row);

}  // namespace kiln::counters
