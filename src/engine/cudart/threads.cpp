// SPDX-License-Identifier: Apache-2.0
#include "engine/cudart/threads.h"

#include "engine/cudart/fork.h"
#include "engine/machine/sole.h"

namespace kiln::engine {
namespace {

std::atomic<Pool*> pool_of_process{nullptr};
std::mutex pool_mutex;

}  // namespace

Pool* process_pool() {
  if (Pool* existing = pool_of_process.load(std::memory_order_acquire)) return existing;
  watch_forks();
  std::lock_guard lock(pool_mutex);
  if (!pool_of_process.load()) pool_of_process.store(new Pool, std::memory_order_release);
  return pool_of_process.load();
}

void fork_threads(ForkPhase phase) {
  hold(pool_mutex, phase);
  if (phase != ForkPhase::Child) return;
  pool_of_process.store(nullptr);
  forget_sole();
}

}  // namespace kiln::engine
