// SPDX-License-Identifier: Apache-2.0
// Which environment variables does the engine read? All of them, here.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/machine/device.h"

namespace kiln::engine {

struct Environment {
  uint32_t threads = 0;  // KILN_ENGINE_THREADS: threads that run blocks; 0: one per core
  uint64_t step_limit =
      0;  // KILN_ENGINE_STEP_LIMIT: instructions that a warp may run in loops; 0: no limit
  uint64_t memory_mb =
      0;  // KILN_ENGINE_MEMORY_MB: for registers and local memory; 0: half of the machine's memory
  bool fill_with_zeros =
      false;  // KILN_ENGINE_FILL=zero: shared and local memory start as zeros instead of junk
  uint64_t schedule = 0;  // KILN_ENGINE_SCHEDULE: each number is another order of blocks and warps
  std::string_view accesses;            // KILN_ENGINE_ACCESSES: a file for the access trace
  uint64_t accesses_limit = 1'000'000;  // KILN_ENGINE_ACCESSES_LIMIT: lines in it
  std::string_view lines;               // KILN_ENGINE_LINES: a file for counts per source line
  std::string_view counters;            // KILN_ENGINE_COUNTERS: a file for counters per launch
  std::string_view caches;   // KILN_ENGINE_CACHES: of the GPU to count for, "132:52428800"
  bool fidelity = false;     // KILN_ENGINE_FIDELITY=1: counts exact and approximate instructions
  std::string_view level;    // KILN_ENGINE_LEVEL: x86-64-v3, x86-64-v4 or baseline; empty: the best
  std::string_view compile;  // KILN_ENGINE_COMPILE: "0" never, "always", "alone", others: if hot
  std::string_view sanitize;         // KILN_SANITIZE: checks, comma-separated
  std::string_view sanitize_folder;  // KILN_SANITIZE_FOLDER: for one file per process
};

// Read again each time, because a test or a program may change them.
Environment environment();

// The settings of a launch.
Settings settings();

}  // namespace kiln::engine
