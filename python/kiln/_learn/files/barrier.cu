// SPDX-License-Identifier: Apache-2.0
// Lesson 6. reverse turns up to 128 numbers around. With 100 of them, not every thread reaches the
// barrier. Let all of them reach it, and guard the work instead.
#include <kiln/op.h>

__global__ void reverse_kernel(const float* x, float* y, int n) {
  __shared__ float all[128];
  int i = threadIdx.x;
  if (i < n) {
    all[i] = x[i];
    __syncthreads();
    y[i] = all[n - 1 - i];
  }
}

kiln::Tensor reverse(const kiln::Tensor& x) {
  KILN_CHECK(x.numel() <= 128, "at most 128 numbers, not ", x.numel());
  kiln::Tensor y = kiln::empty_like(x);
  reverse_kernel<<<1, 128, 0, kiln::stream(x)>>>(x.data<const float>(), y.data<float>(),
                                                 static_cast<int>(x.numel()));
  return y;
}
KILN_OP(reverse, "x");
