// SPDX-License-Identifier: Apache-2.0
// What does a grid use that outlives it? One Device travels with the grid, so that nothing below
// cudart reaches state of the process, and a test can have a device of its own.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/memory/arrays.h"
#include "engine/memory/budget.h"
#include "engine/memory/memory.h"

namespace kiln::engine {

class Pool;
class Sink;

struct Device {
  explicit Device(Pool* (*helpers)() = nullptr) : pool(helpers) {}

  Heap heap;
  Textures textures;
  // Shared: threads keep frames of an earlier device, and give their memory back later.
  std::shared_ptr<Budget> budget = std::make_shared<Budget>();
  // The threads that help; asked each time, for the child of a fork has others. Null: none help.
  Pool* (*pool)();
  // Who watches the launches; null: nobody. Changed only while nothing runs.
  Sink* sink = nullptr;
  // Asked for the sink at the first launch; null: `sink` is what it is.
  Sink* (*make_sink)() = nullptr;
  std::once_flag sink_made;
  // Why nothing may be launched; null: it may. Set by make_sink, if it cannot do what was asked.
  const char* refusal = nullptr;

  // Held by a launch whose sink cannot merge: another thread may launch at the same time.
  std::mutex watching;
  // What other threads do meanwhile, for the sink to see when the launch has ended.
  std::mutex pending_mutex;
  std::vector<std::function<void(Sink&)>> pending;

  Sink* watched() {
    if (make_sink) std::call_once(sink_made, [this] { sink = make_sink(); });
    return sink;
  }
};

// What the environment says, read once for each launch.
struct Settings {
  uint32_t threads = 0;             // that run blocks; 0: one for each core
  uint64_t step_limit = 0;          // instructions a warp may run in loops; 0: no limit
  uint64_t memory_limit_bytes = 0;  // of registers and local memory (budget.h)
  uint64_t fill_word = 0;           // what shared and local memory begin with (fill.h)
  uint64_t schedule = 0;  // another order of blocks and warps for each number; 0: as they are
  uint64_t compile_after = ~uint64_t{0};  // Ops of a program (tiering.h); all ones: never
  bool lanes_alone = false;  // where they can, lanes go through loops one by one (alone.h)
};

// Something outside that may end a launch, asked every now and then from any of its threads.
class StopSignal {
 public:
  virtual ~StopSignal() = default;
  virtual bool raised() = 0;
};

}  // namespace kiln::engine
