// SPDX-License-Identifier: Apache-2.0
// What would a plain interpreter take, one thread after the other? The measure that the engine's 32
// lanes are held against: the same front end, decoded instructions, checked bounds, one dispatch an
// instruction of a thread.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "kiln/engine_abi.h"
#include "ptx/module.h"

namespace kiln::engine {

// Runs the kernel, on grids and blocks of one dimension. It knows the instructions of elementwise
// kernels of f32.
Status run_scalar(const ptx::Module& module, const char* kernel, uint32_t blocks, uint32_t threads,
                  std::span<const uint64_t> arguments, std::span<const KilnRegion> regions);

}  // namespace kiln::engine
