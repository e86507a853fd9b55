// SPDX-License-Identifier: Apache-2.0
// Lesson 3. length is sqrt(x * x + y * y), in three kernels with two temporary tensors.
// Do it in one kernel: each input is read once, and only the result is written.
#include <kiln/op.h>

__global__ void square_kernel(const float* x, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] * x[i];
}

__global__ void root_of_sum_kernel(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = sqrtf(a[i] + b[i]);
}

kiln::Tensor length(const kiln::Tensor& x, const kiln::Tensor& y) {
  kiln::Tensor a = kiln::empty_like(x), b = kiln::empty_like(x), out = kiln::empty_like(x);
  int n = x.numel(), blocks = kiln::blocks_for(n, 128);
  square_kernel<<<blocks, 128, 0, kiln::stream(x)>>>(x.data<const float>(), a.data<float>(), n);
  square_kernel<<<blocks, 128, 0, kiln::stream(x)>>>(y.data<const float>(), b.data<float>(), n);
  root_of_sum_kernel<<<blocks, 128, 0, kiln::stream(x)>>>(a.data<float>(), b.data<float>(),
                                                          out.data<float>(), n);
  return out;
}
KILN_OP(length, "x, y");
