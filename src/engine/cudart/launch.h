// SPDX-License-Identifier: Apache-2.0
// What does a launch of a kernel do? It checks the configuration, fills the parameter block, and
// calls run_grid().
#pragma once

#include <string>

#include "engine/decode/image.h"
#include "engine/machine/device.h"
#include "kiln/engine_abi.h"

namespace kiln::engine {

struct LaunchOutcome {
  int code = 0;      // cudaError_t
  std::string text;  // empty if there was no memory for it
  bool ran = false;  // the kernel may have begun; otherwise it was refused
};

// `shared_limit`: for static and dynamic memory together. `for_rows` false: runs the variant that
// works for blocks of any shape.
LaunchOutcome launch_kernel(Device& device, Kernel& kernel, uint64_t shared_limit,
                            const KilnEngineLaunch& launch, bool for_rows = true);

// How many blocks of a kernel fit on a multiprocessor together.
uint32_t resident_blocks(uint64_t static_shared_bytes, uint32_t threads,
                         uint64_t dynamic_shared_bytes);

}  // namespace kiln::engine
