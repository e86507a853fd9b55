// SPDX-License-Identifier: Apache-2.0
// What makes the engine usable in the child of a fork, whatever other threads were doing? A fork
// takes every lock of the engine first, in one order, so that nothing is half changed; the child
// gets them back and forgets what belonged to threads that it does not have.
//
// Locks of a launch (Grid, MemoryMap, the helpers' own) are not among them: the thread that forks
// is in no launch, and the child makes helpers of its own.
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
// It belongs to a thread by its id, which is another in the child.
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
