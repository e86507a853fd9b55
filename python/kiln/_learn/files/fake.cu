// SPDX-License-Identifier: Apache-2.0
// Lesson 10. pairs returns two columns, x and x * x. torch.compile cannot use it: it has to know
// the shape of the result without running the kernel. Give the op a fake rule.
#include <kiln/op.h>

__global__ void pairs_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[2 * i] = x[i];
    y[2 * i + 1] = x[i] * x[i];
  }
}

kiln::Tensor pairs(const kiln::Tensor& x) {
  kiln::Tensor y = kiln::empty({x.numel(), 2}, x.dtype(), x.device());
  int n = x.numel();
  pairs_kernel<<<kiln::blocks_for(n, 128), 128, 0, kiln::stream(x)>>>(x.data<const float>(),
                                                                      y.data<float>(), n);
  return y;
}
KILN_OP(pairs, "x");
