// SPDX-License-Identifier: Apache-2.0
// How does Ctrl-C stop a kernel in a Python process? Python's own handler only sets a flag, and the
// interpreter raises KeyboardInterrupt when it continues, which never happens if a kernel does not
// end.
//
// While a launch takes longer than a moment, SIGINT goes to a handler here that counts and calls
// Python's. A program without Python keeps its own disposition, by default to end.
#pragma once

#include <atomic>
#include <cstdint>

#include "engine/machine/device.h"

namespace kiln::engine {

// One per launch. Thread-safe.
class InterruptWatch : public StopSignal {
 public:
  InterruptWatch() = default;
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;
  ~InterruptWatch() override;
  // Starts to watch at the first call. Returns true if SIGINT has arrived since.
  bool raised() override;

 private:
  enum State : int { kNew, kWatching, kNothingToWatch };
  std::atomic<int> state_{kNew};
  uint64_t seen_ = 0;
};

// For the launching thread after an interrupt. Returns true if Python will raise at its next
// instruction, as its main thread does with the handler that raises KeyboardInterrupt.
bool python_will_raise();

}  // namespace kiln::engine
