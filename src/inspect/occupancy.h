// SPDX-License-Identifier: Apache-2.0
// How many blocks of a kernel fit on one multiprocessor, and what limits them?
#pragma once

#include <cstdint>
#include <string_view>

#include "inspect/gpus.h"

namespace kiln::inspect {

enum class Limiter { Warps, Blocks, Registers, Shared, TooLarge };
std::string_view name_of(Limiter limiter);

struct BlockNeeds {
  uint32_t threads = 0;
  uint32_t registers = 0;     // a thread
  uint64_t shared_bytes = 0;  // a block: static and dynamic, the driver's share not in it
};

struct Occupancy {
  uint32_t blocks = 0;  // a multiprocessor; 0: the kernel cannot be launched so
  uint32_t warps = 0;
  double fraction = 0;  // of the warps that a multiprocessor can hold
  Limiter limiter = Limiter::Warps;
};

// As cuda_occupancy.h computes it; a test compares the two.
Occupancy occupancy(const GpuLimits& gpu, const BlockNeeds& needs);

}  // namespace kiln::inspect
