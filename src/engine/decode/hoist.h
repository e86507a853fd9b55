// SPDX-License-Identifier: Apache-2.0
// Which Ops need not run for each warp? What is computed from parameters alone is the same for all
// warps of a launch; what is computed from %ctaid too, for all warps of a block. Such Ops are moved
// to the front of the kernel and run when a frame first serves a launch or a block.
//
// A value of base and step that is computed from %tid.x and such scalars is moved too: from one
// warp of a row of the block to the next its base rises by as many steps as there are lanes between
// them, so that the next warp gets it by one addition.
#pragma once

#include <unordered_map>
#include <vector>

#include "engine/machine/advance.h"

namespace kiln::engine {

// An Op in the order of the program.
struct PlacedOp {
  Op op;
  bool guarded = false;  // may not be moved
  Tier tier = Tier::Warp;
};

// `known`: slots that are filled before the first Op, with how long they hold. Sets the tiers of
// the Ops and Program::advances.
void find_tiers(Program& program, std::unordered_map<uint32_t, Tier> known,
                std::vector<PlacedOp>& ops);

}  // namespace kiln::engine
