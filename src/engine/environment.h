// SPDX-License-Identifier: Apache-2.0
// Which environment variables does the engine read? All of them, here.
#pragma once

#include <cstdint>

namespace kiln::engine {

struct Environment {
  uint32_t threads = 0;  // KILN_ENGINE_THREADS: how many threads run blocks; 0: one a core
  uint64_t step_limit = 0;
  uint64_t memory_mb =
      0;  // 0: half of the machine's  // KILN_ENGINE_STEP_LIMIT: instructions a warp may run in loops; 0: no limit
};

// Read anew each time: a test or a program may change them.
Environment environment();

}  // namespace kiln::engine
