// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/sole.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln::engine {
namespace {

bool ask_for_barrier(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0) == 0; }

bool register_barrier() noexcept {
  return ask_for_barrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

}  // namespace

SoleGrid::SoleGrid(const Worker& worker, bool alone) noexcept {
  const uint32_t others = sole.grids.fetch_add(1);
  is_sole_ = others == 0 && alone;
  if (is_sole_) {
    sole.worker.store(&worker);
    // A grid that saw no worker has been counted by now, so SoleChange::begin() sees it.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else if (sole.worker.load() != nullptr) {
    // A child of fork() may have to register again. If the system has no such barrier, no thread
    // has begun a change.
    constexpr int kBarrier = MEMBARRIER_CMD_PRIVATE_EXPEDITED;
    if (ask_for_barrier(kBarrier) || (register_barrier() && ask_for_barrier(kBarrier))) {
      while (sole.inside.load(std::memory_order_acquire)) sched_yield();
    }
  }
}

SoleGrid::~SoleGrid() {
  if (is_sole_) {
    sole.worker.store(nullptr, std::memory_order_relaxed);
    sole.inside.store(false, std::memory_order_relaxed);
  }
  sole.grids.fetch_sub(1);
}

// Registering takes milliseconds if the process has several threads.
bool SoleChange::get_ready() noexcept {
  constexpr uint32_t kEnough = 1000;
  static uint32_t changes = 0;  // only the sole thread uses it
  if (ready_.load(std::memory_order_relaxed) == Ready::Never || ++changes < kEnough) return false;
  const bool has_barrier = register_barrier();
  ready_.store(has_barrier ? Ready::Yes : Ready::Never, std::memory_order_relaxed);
  return has_barrier;
}

}  // namespace kiln::engine
