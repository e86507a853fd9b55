// SPDX-License-Identifier: Apache-2.0
// How does the engine stay usable in the child of a fork, whatever other threads were doing? A fork
// first takes every lock of the engine, in a fixed order, so nothing is half changed. The child
// releases them and forgets what belonged to threads that it does not have.
//
// Locks of a launch (Grid, MemoryMap, the helpers' own) are not taken: the thread that forks runs
// no launch, and the child creates its own helpers.
#pragma once

#include <mutex>
#include <new>

namespace kiln::engine {

enum class ForkPhase { Prepare, Parent, Child };

inline void hold(std::mutex& mutex, ForkPhase phase) {
  if (phase == ForkPhase::Prepare) {
    mutex.lock();
  } else {
    mutex.unlock();
  }
}
// Its owner is a thread ID, which differs in the child. So the child creates the mutex again.
inline void hold(std::recursive_mutex& mutex, ForkPhase phase) {
  if (phase == ForkPhase::Prepare) {
    mutex.lock();
  } else if (phase == ForkPhase::Parent) {
    mutex.unlock();
  } else {
    new (&mutex) std::recursive_mutex;
  }
}

}  // namespace kiln::engine
