// SPDX-License-Identifier: Apache-2.0
// How does Ctrl-C stop a kernel in a Python process? Python's own handler only takes a note and
// raises KeyboardInterrupt when the interpreter runs on, which a kernel that does not end would
// never let it do.
//
// While a launch lasts longer than a moment, SIGINT goes through a handler here that counts and
// calls Python's. A program without Python has its own disposition, by default to end; nothing is
// changed there.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/machine/device.h"

namespace kiln::engine {

// One for each launch. Thread-safe.
class InterruptWatch : public StopSignal {
 public:
  InterruptWatch() = default;
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;
  ~InterruptWatch() override;
  // Begins to watch at the first call. True: SIGINT came since.
  bool raised() override;

 private:
  enum State : int { kNew, kWatching, kNothingToWatch };
  std::atomic<int> state_{kNew};
  uint64_t seen_ = 0;
};

// After an interrupt, on the thread that launched: true when Python will raise at the next
// instruction it runs, as its main thread does with the handler that raises KeyboardInterrupt.
bool python_will_raise();

}  // namespace kiln::engine
