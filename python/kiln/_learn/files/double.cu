// SPDX-License-Identifier: Apache-2.0
// Lesson 8. line computes 2.1 x + 1 for floats. Its PTX converts every element to double and back,
// which most GPUs do at a small fraction of the speed. Find out why, and stop it.
#include <kiln/op.h>

__global__ void line_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2.1 * x[i] + 1.0;
}

kiln::Tensor line(const kiln::Tensor& x) {
  kiln::Tensor y = kiln::empty_like(x);
  int n = x.numel();
  line_kernel<<<kiln::blocks_for(n, 128), 128, 0, kiln::stream(x)>>>(x.data<const float>(),
                                                                     y.data<float>(), n);
  return y;
}
KILN_OP(line, "x");
