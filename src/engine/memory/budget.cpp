// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/budget.h"

#include <unistd.h>

#include <algorithm>

namespace kiln::engine {

uint64_t default_memory_limit() {
  static const uint64_t kLimit = [] {
    const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
    const uint64_t machine =
        pages > 0 && bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(bytes) : 0;
    return std::max<uint64_t>(machine / 2, uint64_t{512} << 20);
  }();
  return kLimit;
}

}  // namespace kiln::engine
