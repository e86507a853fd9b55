// SPDX-License-Identifier: Apache-2.0
// Which GPUs does this machine have? Asked of nvidia-smi in a process of its own: cuInit here would
// forbid fork later.
#pragma once

#include <vector>

#include "project/arch.h"
#include "sys/env.h"
#include "sys/files.h"
#include "sys/process.h"

namespace kiln::project {

// Sorted, each architecture once; empty without a GPU. The answer is kept in the cache folder until
// the driver, the set of GPUs or CUDA_VISIBLE_DEVICES changes.
std::vector<Arch> gpu_archs(sys::Files& files, sys::Processes& processes,
                            const sys::Environment& env);

}  // namespace kiln::project
