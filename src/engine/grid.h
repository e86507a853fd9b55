// SPDX-License-Identifier: Apache-2.0
// How do the blocks of a launch spread over the cores?
#pragma once

#include "engine/warp.h"

namespace kiln::engine {

// Runs all blocks to their end, or to the first fault, which is then in the grid. Throws std::bad_alloc before any
// block has begun, and nothing afterwards.
void run_grid(Grid& grid);

// KILN_ENGINE_THREADS, else the cores this process may use.
uint32_t worker_limit();

}  // namespace kiln::engine
