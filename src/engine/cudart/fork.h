// SPDX-License-Identifier: Apache-2.0
// Which locks of the engine does a fork take? (What for: memory/fork.h.)
#pragma once

#include "engine/memory/fork.h"

namespace kiln::engine {

// From now on forks are prepared. Called when the engine's state is made.
void watch_forks();
// Takes all locks and gives them back, so that all that they belong to is made.
void rehearse_fork();

// Each next to the lock that it takes. fork.cpp has their order.
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
