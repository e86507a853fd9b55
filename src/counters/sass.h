// SPDX-License-Identifier: Apache-2.0
// What did ptxas make of the PTX that ran? A GPU counts SASS: loads of shared memory that ptxas
// joined are one access there, and a branch that became predicates is none.
//
// A cubin with line information maps each SASS instruction to its line of PTX, so both can be found
// without a disassembler.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "inspect/analysis.h"
#include "results/counters.h"

namespace kiln::counters {

// Of one line of PTX.
struct SassOfLine {
  uint32_t instructions = 0;
  uint32_t branches = 0;                             // conditional ones
  uint32_t shared_loads = 0, shared_load_bytes = 0;  // bytes: of the widest
  uint32_t shared_stores = 0, shared_store_bytes = 0;
};

struct SassOfKernel {
  std::unordered_map<uint32_t, SassOfLine> lines;
  std::vector<std::string> ptx;  // its text by line, from 0

  bool empty() const { return ptx.empty(); }
};

// Empty where the cubin has no such table.
SassOfKernel read_sass(const inspect::Analysis& analysis, const inspect::KernelRow& row);

// Changes the counts of a launch to what its SASS does. Nothing happens where the PTX that ran is
// not the one that the cubin was made from.
void follow_sass(const SassOfKernel& sass, const results::CounterProgram& program,
                 results::CounterLaunch* launch);

}  // namespace kiln::counters
