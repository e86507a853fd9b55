// SPDX-License-Identifier: Apache-2.0
// What does a grid use that outlives it? A Device, which the grid refers to. So nothing below
// cudart uses state of the process, and a test can have its own device.
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
  // Shared, because threads keep frames of an earlier device and release them later.
  std::shared_ptr<Budget> budget = std::make_shared<Budget>();
  // The helper threads. A function, because the child of a fork has others. Null: no helpers.
  Pool* (*pool)();
  // Receives the events of launches; null: nobody watches. Changes only while nothing runs.
  Sink* sink = nullptr;
  // Creates the sink at the first launch; null: `sink` is used as it is.
  Sink* (*make_sink)() = nullptr;
  std::once_flag sink_made;
  // Why nothing may be launched; null: launches are allowed. Set by make_sink on failure.
  const char* refusal = nullptr;

  // Held by a launch whose sink cannot merge, because another thread may launch at the same time.
  std::mutex watching;
  // What other threads do meanwhile; the sink gets it when the launch has ended.
  std::mutex pending_mutex;
  std::vector<std::function<void(Sink&)>> pending;

  Sink* watched() {
    if (make_sink) std::call_once(sink_made, [this] { sink = make_sink(); });
    return sink;
  }
};

// The settings from the environment, read once per launch.
struct Settings {
  uint32_t threads = 0;             // that run blocks; 0: one per core
  uint64_t step_limit = 0;          // instructions that a warp may run in loops; 0: no limit
  uint64_t memory_limit_bytes = 0;  // for registers and local memory (budget.h)
  uint64_t fill_word = 0;           // initial contents of shared and local memory (fill.h)
  uint64_t schedule = 0;  // each number gives another order of blocks and warps; 0: the usual order
  uint64_t compile_after = ~uint64_t{0};  // Ops of a program (tiering.h); all ones: never
  bool lanes_alone = false;  // run loops one lane at a time wherever possible (alone.h)
};

// May end a launch from outside. Polled now and then, from any of the launch's threads.
class StopSignal {
 public:
  virtual ~StopSignal() = default;
  virtual bool raised() = 0;
};

}  // namespace kiln::engine
