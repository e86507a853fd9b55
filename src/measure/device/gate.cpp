// SPDX-License-Identifier: Apache-2.0
// How is a stream held until everything is enqueued, and never forever?
#include "measure/device/gate.h"

#include <chrono>

#include "measure/device/steady.h"

namespace kiln::measure {

namespace {

constexpr auto kLook = std::chrono::milliseconds(10);

}  // namespace

Gate::Gate(uint32_t* word, double limit_s)
    : word_(word), limit_ns_(limit_s * 1e9), watchdog_([this] { watch(); }) {}

Gate::~Gate() {
  closing_ = true;
  watchdog_.join();
  release();
}

uint32_t Gate::hold() {
  const std::lock_guard lock(mutex_);
  held_since_ns_ = steady_ns();
  return ++holds_;
}

void Gate::release() {
  const std::lock_guard lock(mutex_);
  open();
}

// The device sees everything that was written before.
void Gate::open() {
  held_since_ns_ = 0;
  std::atomic_ref(*word_).store(holds_, std::memory_order_release);
}

// A call that waits for the device while its stream is held would wait forever.
void Gate::watch() {
  while (!closing_) {
    {
      const std::lock_guard lock(mutex_);
      if (held_since_ns_ > 0 && steady_ns() - held_since_ns_ > limit_ns_) {
        forced_open_ = true;
        open();
      }
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace kiln::measure
