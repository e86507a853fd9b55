// SPDX-License-Identifier: Apache-2.0
// How is the memory of running kernels counted?
#include "engine/budget.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "engine/environment.h"
#include "engine/fork.h"

namespace kiln::engine {
namespace {

// Signed: the child of a fork starts at nothing, and then gives back what its own thread had taken before.
std::atomic<int64_t> reserved{0};

}  // namespace

uint64_t memory_budget() {
  if (const uint64_t asked = environment().memory_mb) return asked << 20;
  static const uint64_t kBudget = [] {
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    const uint64_t machine = pages > 0 && bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(bytes) : 0;
    return std::max<uint64_t>(machine / 2, uint64_t{512} << 20);
  }();
  return kBudget;
}

bool reserve_memory(uint64_t bytes) {
  const auto wanted = static_cast<int64_t>(bytes);
  const int64_t before = reserved.fetch_add(wanted, std::memory_order_relaxed);
  if (before + wanted <= static_cast<int64_t>(memory_budget())) return true;
  release_memory(bytes);
  return false;
}

void release_memory(uint64_t bytes) { reserved.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed); }

void fork_budget(ForkPhase phase) {
  if (phase == ForkPhase::Child) reserved = 0;  // the other threads are gone, and all that they had reserved
}

}  // namespace kiln::engine
