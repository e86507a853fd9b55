// SPDX-License-Identifier: Apache-2.0
// How many threads may a block or a multiprocessor have? torch's names for it. Included where a
// source uses one: torch's light headers define them as constants, which a macro would break.
#pragma once

#include <kiln/compat/macros.h>

#ifdef __CUDACC__
#define CUDA_MAX_THREADS_PER_SM 2048
#define CUDA_MAX_THREADS_PER_BLOCK 1024
#define CUDA_THREADS_PER_BLOCK_FALLBACK 256
#endif
