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

struct KernelFacts {
  const Program* program = nullptr;
  const Program* program_for_rows =
      nullptr;  // the same, decoded for blocks whose rows fill warps; may be null
  uint64_t static_shared_bytes = 0;
  uint64_t shared_limit = kDefaultSharedBytes;  // static and dynamic together
};

// `kernel` must have been decoded from `image`.
LaunchOutcome launch_kernel(Image& image, Device& device, const KernelFacts& kernel,
                            const KilnEngineLaunch& launch);

// Blocks of a kernel that fit on a multiprocessor together.
uint32_t resident_blocks(const KernelFacts& kernel, uint32_t threads,
                         uint64_t dynamic_shared_bytes);

}  // namespace kiln::engine
