// SPDX-License-Identifier: Apache-2.0
// How much memory may the registers and the local memory of running kernels use? Half of the
// machine's, or KILN_ENGINE_MEMORY_MB. A kernel that needs more fails; otherwise the system would
// kill the whole process.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln::engine {

// Thread-safe.
class Budget {
 public:
  // Returns false and reserves nothing if more than `limit` bytes would be in use.
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
  // For the child of a fork, which has none of the other threads and thus none of their memory.
  void forget() { reserved_ = 0; }

 private:
  // Signed: the child of a fork starts at 0 and then releases what its own thread had reserved.
  std::atomic<int64_t> reserved_{0};
};

// Half of the machine's memory, and at least 512 MiB.
uint64_t default_memory_limit();

}  // namespace kiln::engine
