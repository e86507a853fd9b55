// SPDX-License-Identifier: Apache-2.0
// Does a held stream always go on, and does the watchdog end that hold alone that was too long?
#include "measure/device/gate.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace kiln::measure {
namespace {

uint32_t seen_by_the_device(uint32_t& word) {
  return std::atomic_ref(word).load(std::memory_order_acquire);
}

TEST(Gate, OpensWithTheNumberOfTheHold) {
  uint32_t word = 0;
  Gate gate(&word, 60);
  for (uint32_t i = 1; i < 4; ++i) {
    EXPECT_EQ(gate.hold(), i);
    EXPECT_EQ(seen_by_the_device(word), i - 1);
    gate.release();
    EXPECT_EQ(seen_by_the_device(word), i);
  }
  EXPECT_FALSE(gate.was_forced_open());
}

TEST(Gate, TheWatchdogOpensWhatNobodyOpens) {
  uint32_t word = 0;
  Gate gate(&word, 0.01);
  const uint32_t held = gate.hold();
  while (seen_by_the_device(word) < held)
    std::this_thread::yield();  // a watchdog that sleeps would hang here
  EXPECT_TRUE(gate.was_forced_open());
  EXPECT_FALSE(gate.was_forced_open());
}

TEST(Gate, TheLastHoldEndsWithTheGate) {
  uint32_t word = 0;
  {
    Gate gate(&word, 60);
    gate.hold();
  }
  EXPECT_EQ(word, 1u);
}

// A device that waits for every hold beside a host that opens about as often as the watchdog does:
// under ThreadSanitizer every access of one thread without the other's leave is reported.
TEST(Gate, TwoWhoOpenAtTheSameTimeDoNotMeet) {
  uint32_t word = 0;
  Gate gate(&word, 0.0005);
  std::atomic<bool> done = false;
  std::thread device([&] {
    uint32_t last = 0;
    while (!done) {
      const uint32_t now = seen_by_the_device(word);
      EXPECT_GE(now, last);
      last = now;
    }
  });
  for (int i = 0; i < 200; ++i) {
    const uint32_t held = gate.hold();
    if (i % 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    gate.release();
    EXPECT_EQ(seen_by_the_device(word), held);
  }
  done = true;
  device.join();
}

}  // namespace
}  // namespace kiln::measure
