// SPDX-License-Identifier: Apache-2.0
// In which order does a fork take the engine's locks? In the order in which calls take them: a
// thread that holds one of them only waits for locks later in this list.
#include "engine/cudart/fork.h"

#include <pthread.h>

#include <iterator>

namespace kiln::engine {
namespace {

constexpr void (*kSteps[])(ForkPhase) = {
    &fork_handles, &fork_state,     &fork_arrays,     &fork_memory_pools, &fork_heap,
    &fork_faults,  &fork_listeners, &fork_interrupts, &fork_threads,      &fork_budget,
};

void before_fork() {
  for (auto* step : kSteps) step(ForkPhase::Prepare);
}

void after_fork(ForkPhase phase) {
  for (auto step = std::rbegin(kSteps); step != std::rend(kSteps); ++step) (*step)(phase);
}

}  // namespace

void rehearse_fork() {
  before_fork();
  after_fork(ForkPhase::Parent);
}

void watch_forks() {
  static const bool registered = pthread_atfork(
                                     before_fork, [] { after_fork(ForkPhase::Parent); },
                                     [] { after_fork(ForkPhase::Child); }) == 0;
  (void)registered;
}

}  // namespace kiln::engine
