// SPDX-License-Identifier: Apache-2.0
// What makes the engine usable in the child of a fork, whatever other threads were doing? A fork takes every lock of
// the engine first, in one order, so that nothing is half changed; the child gets them back and forgets what belonged
// to threads that it does not have.
//
// Locks of a launch (Grid, MemoryMap, the helpers' own) are not among them: the thread that forks is in no launch, and
// the child makes helpers of its own.
#pragma once

#include <mutex>
#include <new>

namespace kiln::engine {

enum class ForkPhase { Prepare, Parent, Child };

// From now on forks are prepared. Called when the engine's state is made.
void watch_forks();
// Takes all locks and gives them back, so that all that they belong to is made.
void rehearse_fork();

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

// Each beside the lock that it takes. fork.cpp has their order.
void fork_handles(ForkPhase phase);
void fork_state(ForkPhase phase);
void fork_arrays(ForkPhase phase);
void fork_memory_pools(ForkPhase phase);
void fork_heap(ForkPhase phase);
void fork_faults(ForkPhase phase);
void fork_listeners(ForkPhase phase);
void fork_interrupts(ForkPhase phase);
void fork_threads(ForkPhase phase);
void fork_budget(ForkPhase phase);

}  // namespace kiln::engine
