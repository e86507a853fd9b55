// SPDX-License-Identifier: Apache-2.0
// Which locks of the engine does a fork take? (memory/fork.h explains why.)
#pragma once

#include "engine/memory/fork.h"

namespace kiln::engine {

// Registers the fork handlers. Called when the engine's state is created.
void watch_forks();
// Takes and releases all locks, so that everything that they belong to is created.
void rehearse_fork();

// Each is next to the lock that it takes. fork.cpp has their order.
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
