// SPDX-License-Identifier: Apache-2.0
// Which standard headers does every compat header need? As few as torch's own interface forces:
// <string> alone is a third of the time that they all cost. What sources use beyond them, because
// torch's headers leak it, the build finds in their text and includes by itself
// (src/build/compat_scan.cpp).
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>
#if defined(KILN_COMPAT_ARCHIVE) || !__has_include(<cuda_runtime_api.h>)
struct CUstream_st;
typedef CUstream_st* cudaStream_t;
struct cudaDeviceProp;
#else
#define KILN_COMPAT_CUDA_HEADERS
#ifdef __CUDACC__
#include <cuda_runtime.h>  // nvcc includes it too, but after what comes by -include
#else
#include <cuda_runtime_api.h>
#endif
#endif
