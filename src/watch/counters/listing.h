// SPDX-License-Identifier: Apache-2.0
// What is known of a program's instructions beside how often they ran?
#pragma once

#include <string>
#include <vector>

#include "engine/program/program.h"
#include "ptx/kinds.h"
#include "results/counters.h"

namespace kiln::watch {

struct ListedInstruction {
  ptx::Kind kind = ptx::Kind::Integer;
  bool conditional = false;        // a branch that may go two ways
  bool becomes_reduction = false;  // an atomic whose result nothing reads
  bool rounds = false;             // of an atomic: of floats, whose lanes cannot be added up first
  bool may_merge = false;          // beside others with the same base (results::OtherWidths)
  // What a lane computes, or of a matrix instruction the warp.
  results::Metric flops_of = results::Metric::flops_fp32;
  uint32_t flops = 0;
};

struct Listing {
  results::CounterProgram program;
  std::vector<ListedInstruction> instructions;  // in the order of Program::sites
};
Listing list_program(const engine::Program& program);

}  // namespace kiln::watch
