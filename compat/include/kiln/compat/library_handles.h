// SPDX-License-Identifier: Apache-2.0
// Which handles of NVIDIA's libraries does torch lend? Those of the current stream: cuBLAS,
// cuBLASLt, cuSPARSE.
#pragma once

#include <kiln/compat/cuda.h>

struct cublasContext;
struct cublasLtContext;
struct cusparseContext;

namespace at {
namespace cuda {
inline namespace kc {
cublasContext* getCurrentCUDABlasHandle();
cublasLtContext* getCurrentCUDABlasLtHandle();
cusparseContext* getCurrentCUDASparseHandle();
}  // namespace kc
}  // namespace cuda
}  // namespace at
