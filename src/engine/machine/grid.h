// SPDX-License-Identifier: Apache-2.0
// How do the blocks of a launch spread over the cores?
#pragma once

#include "engine/machine/warp.h"

namespace kiln::engine {

// Runs all blocks to their end, or to the first fault, which is then in the grid. Throws
// std::bad_alloc before any block has begun, and nothing afterwards.
void run_grid(Grid& grid);

// As the settings say, else the cores this process may use.
uint32_t thread_limit(const Settings& settings);

}  // namespace kiln::engine
