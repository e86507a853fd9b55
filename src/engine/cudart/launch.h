// SPDX-License-Identifier: Apache-2.0
// What does it take to launch a kernel? Checks of the configuration, the parameter block, then
// run_grid().
#pragma once

#include <string>

#include "engine/decode/image.h"
#include "engine/machine/device.h"
#include "kiln/engine_abi.h"

namespace kiln::engine {

struct LaunchOutcome {
  int code = 0;      // cudaError_t
  std::string text;  // empty where there was no memory for one
  bool ran = false;  // the kernel may have begun; else it was refused
};

// `shared_limit`: static and dynamic together. `for_rows` false: runs the variant that fits every
// block, whatever the block is.
LaunchOutcome launch_kernel(Device& device, Kernel& kernel, uint64_t shared_limit,
                            const KilnEngineLaunch& launch, bool for_rows = true);

// Blocks of a kernel that fit on a multiprocessor together.
uint32_t resident_blocks(uint64_t static_shared_bytes, uint32_t threads,
                         uint64_t dynamic_shared_bytes);

}  // namespace kiln::engine
