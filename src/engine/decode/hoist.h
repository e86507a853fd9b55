// SPDX-License-Identifier: Apache-2.0
// Which Ops need not run for each warp? Values computed from parameters alone are the same for all
// warps of a launch; values that also depend on %ctaid are the same for all warps of a block. Their
// Ops are moved to the front of the kernel, and run when a frame first serves a launch or a block.
//
// A value of base and step that is computed from %tid.x and such scalars is hoisted too. From one
// warp of a row of the block to the next its base increases by the step times the number of lanes
// between them, so the next warp gets it by one addition.
#pragma once

#include <unordered_map>
#include <vector>

#include "engine/machine/advance.h"

namespace kiln::engine {

// An Op in the order of the program.
struct PlacedOp {
  Op op;
  bool guarded = false;  // must not be moved
  Tier tier = Tier::Warp;
};

// `known`: slots that are filled before the first Op, and how long their values stay the same. Sets
// the tiers of the Ops and Program::advances.
void find_tiers(Program& program, std::unordered_map<uint32_t, Tier> known,
                std::vector<PlacedOp>& ops);

}  // namespace kiln::engine
