// SPDX-License-Identifier: Apache-2.0
// Lesson 1. add_one should add 1 to every element, for any size.
// For 1,000 elements some are left out. Which, and why?
#include <kiln/op.h>

__global__ void add_one_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i] + 1;
}

kiln::Tensor add_one(const kiln::Tensor& x) {
  kiln::Tensor y = kiln::zeros(x.sizes(), x.dtype(), x.device());
  int n = x.numel();
  add_one_kernel<<<n / 256, 256, 0, kiln::stream(x)>>>(x.data<const float>(), y.data<float>(), n);
  return y;
}
KILN_OP(add_one, "x");
