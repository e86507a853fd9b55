// SPDX-License-Identifier: Apache-2.0
// Lesson 9. sum adds up blocks of BLOCK numbers, so that kiln tune can vary BLOCK. It is right for
// 128 only. Make it right for every power of two up to 1024.
#include <kiln/op.h>

#ifndef BLOCK
#define BLOCK 128
#endif

__global__ void sum_kernel(const float* x, float* y) {
  __shared__ float part[128];
  int i = threadIdx.x;
  part[i] = x[blockIdx.x * BLOCK + i];
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (i < half) part[i] += part[i + half];
    __syncthreads();
  }
  if (i == 0) y[blockIdx.x] = part[0];
}

kiln::Tensor sum(const kiln::Tensor& x) {
  KILN_CHECK(x.numel() % BLOCK == 0, "the size must be a multiple of ", BLOCK);
  kiln::Tensor y = kiln::zeros({x.numel() / BLOCK}, x.dtype(), x.device());
  sum_kernel<<<x.numel() / BLOCK, BLOCK, 0, kiln::stream(x)>>>(x.data<const float>(),
                                                               y.data<float>());
  return y;
}
KILN_OP(sum, "x");
