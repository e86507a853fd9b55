// SPDX-License-Identifier: Apache-2.0
// How much memory may the registers and the local memory of running kernels take? Half of the
// machine's, or KILN_ENGINE_MEMORY_MB. A kernel that needs more is refused: otherwise the system
// would kill the whole process.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln::engine {

// Thread-safe.
class Budget {
 public:
  // False: more than `limit` bytes would be in use; nothing was reserved.
  bool reserve(uint64_t bytes, uint64_t limit) {
    const auto wanted = static_cast<int64_t>(bytes);
    const int64_t before = reserved_.fetch_add(wanted, std::memory_order_relaxed);
    if (before + wanted <= static_cast<int64_t>(limit)) return true;
    release(bytes);
    return false;
  }
  void release(uint64_t bytes) {
    reserved_.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  }
  // In the child of a fork: the other threads are gone, and all that they had reserved.
  void forget() { reserved_ = 0; }

 private:
  // Signed: the child of a fork starts at nothing, and then gives back what its own thread had
  // taken.
  std::atomic<int64_t> reserved_{0};
};

// Half of the machine's memory.
uint64_t default_memory_limit();

}  // namespace kiln::engine
