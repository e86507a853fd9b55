// SPDX-License-Identifier: Apache-2.0
// How is a stream held until everything is enqueued, and never forever? It waits until a word of
// host memory reaches the number of the hold; a watchdog lets it go when nobody else does.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

namespace kiln::measure {

class Gate {
 public:
  // `word` is read by the device, and lives longer than the gate.
  Gate(uint32_t* word, double limit_s);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // The number for which the stream is to wait.
  uint32_t hold();
  void release();
  // Whether the watchdog had to, since it was last asked: what was measured then is not to be
  // trusted.
  bool was_forced_open() { return forced_open_.exchange(false); }

 private:
  void watch();
  // With the mutex held.
  void open();

  uint32_t* const word_;
  const double limit_ns_;
  std::mutex
      mutex_;  // the hold that the watchdog finds too long must not be another one when it ends it
  uint32_t holds_ = 0;
  double held_since_ns_ = 0;  // 0: it is open
  std::atomic<bool> forced_open_{false}, closing_{false};
  std::thread watchdog_;
};

}  // namespace kiln::measure
