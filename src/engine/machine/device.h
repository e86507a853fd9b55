// SPDX-License-Identifier: Apache-2.0
// What does a grid use that outlives it? One Device travels with the grid, so that nothing below
// cudart reaches state of the process, and a test can have a device of its own.
#pragma once

#include <memory>

#include "engine/memory/arrays.h"
#include "engine/memory/budget.h"
#include "engine/memory/memory.h"

namespace kiln::engine {

class Pool;

struct Device {
  Heap heap;
  Textures textures;
  // Shared: threads keep frames of an earlier device, and give their memory back later.
  std::shared_ptr<Budget> budget = std::make_shared<Budget>();
  // The threads that help; asked each time, for the child of a fork has others. Null: none help.
  Pool* (*pool)() = nullptr;
};

// What the environment says, read once for each launch.
struct Settings {
  uint32_t threads = 0;             // that run blocks; 0: one for each core
  uint64_t step_limit = 0;          // instructions a warp may run in loops; 0: no limit
  uint64_t memory_limit_bytes = 0;  // of registers and local memory (budget.h)
  uint64_t fill_word = 0;           // what shared and local memory begin with (fill.h)
};

// Something outside that may end a launch, asked every now and then from any of its threads.
class StopSignal {
 public:
  virtual ~StopSignal() = default;
  virtual bool raised() = 0;
};

}  // namespace kiln::engine
