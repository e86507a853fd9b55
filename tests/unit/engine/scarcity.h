// SPDX-License-Identifier: Apache-2.0
// How does a test take memory and threads away from the engine? operator new and pthread_create of
// this test program fail on request.
#pragma once

#include <cstdint>

namespace kiln::engine {

// While it lives, the allocation number `first` (counted from 0, of all threads) fails, and with
// `all_after` every one after it.
class NoMemory {
 public:
  NoMemory(uint64_t first, bool all_after);
  ~NoMemory() { lift(); }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
  void lift();
  bool happened() const;
};

// While it lives, only `threads` more can be made.
class NoThreads {
 public:
  explicit NoThreads(int64_t threads);
  ~NoThreads();
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  static int64_t refused();  // so far, in the process
};

}  // namespace kiln::engine
