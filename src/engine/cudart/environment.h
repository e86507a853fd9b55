// SPDX-License-Identifier: Apache-2.0
// Which environment variables does the engine read? All of them, here.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/machine/device.h"

namespace kiln::engine {

struct Environment {
  uint32_t threads = 0;  // KILN_ENGINE_THREADS: how many threads run blocks; 0: one per core
  uint64_t step_limit =
      0;  // KILN_ENGINE_STEP_LIMIT: instructions a warp may run in loops; 0: no limit
  uint64_t memory_mb =
      0;  // KILN_ENGINE_MEMORY_MB: for registers and local memory; 0: half of the machine's
  bool fill_with_zeros =
      false;  // KILN_ENGINE_FILL=zero: shared and local memory begin as zeros, not as junk
  uint64_t schedule = 0;  // KILN_ENGINE_SCHEDULE: another order of blocks and warps for each number
  std::string_view accesses;            // KILN_ENGINE_ACCESSES: a file for the access trace
  uint64_t accesses_limit = 1'000'000;  // KILN_ENGINE_ACCESSES_LIMIT: lines of it
  std::string_view lines;               // KILN_ENGINE_LINES: a file for the counts of source lines
  std::string_view counters;            // KILN_ENGINE_COUNTERS: a file for the counters of launches
  std::string_view caches;   // KILN_ENGINE_CACHES: of the GPU they are for, "132:52428800"
  bool fidelity = false;     // KILN_ENGINE_FIDELITY=1: exact, approximate instructions
  std::string_view level;    // KILN_ENGINE_LEVEL: x86-64-v3, x86-64-v4 or baseline; empty: the best
  std::string_view compile;  // KILN_ENGINE_COMPILE: "0" never, "always", "alone", others: if hot
  std::string_view sanitize;         // KILN_SANITIZE: checks, separated by commas
  std::string_view sanitize_folder;  // KILN_SANITIZE_FOLDER: gets a file of each process
};

// Read anew each time: a test or a program may change them.
Environment environment();

// The same as a launch takes it.
Settings settings();

}  // namespace kiln::engine
