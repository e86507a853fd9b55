// SPDX-License-Identifier: Apache-2.0
// Lesson 6. transpose is right, and its reads of shared memory take 32 turns each. Make it one.
#include <kiln/op.h>

__global__ void transpose_kernel(const float* x, float* y, int n) {
  __shared__ float tile[32][32];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
  tile[threadIdx.y][threadIdx.x] = x[row * n + column];
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x;
  row = blockIdx.x * 32 + threadIdx.y;
  y[row * n + column] = tile[threadIdx.x][threadIdx.y];
}

kiln::Tensor transpose(const kiln::Tensor& x) {
  kiln::Tensor y = kiln::empty_like(x);
  int n = x.size(0);
  KILN_CHECK(x.size(1) == n && n % 32 == 0, "x must be n x n, n a multiple of 32");
  transpose_kernel<<<dim3(n / 32, n / 32), dim3(32, 32), 0, kiln::stream(x)>>>(
      x.data<const float>(), y.data<float>(), n);
  return y;
}
KILN_OP(transpose, "x");
