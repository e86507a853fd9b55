// SPDX-License-Identifier: Apache-2.0
// How are the blocks of a launch distributed over the cores?
#pragma once

#include "engine/machine/warp.h"

namespace kiln::engine {

// Runs all blocks to their end, or until the first fault, which it leaves in the grid. May throw
// std::bad_alloc before any block has begun, but nothing afterwards.
void run_grid(Grid& grid);

// The number in the settings, or else of the cores that this process may use.
uint32_t thread_limit(const Settings& settings);

}  // namespace kiln::engine
