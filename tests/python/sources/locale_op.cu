// SPDX-License-Identifier: Apache-2.0
// An op whose default arguments and messages have fractions.
#include <kiln/op.h>

__global__ void scale_kernel(const float* x, float* y, int64_t n, float alpha) {
  const int64_t i = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (i < n) y[i] = alpha * x[i] + 0.125f;
}

kiln::Tensor scale(const kiln::Tensor& x, double alpha, kiln::Span<const double> weights) {
  KILN_CHECK(alpha < 100, "alpha is ", alpha, ", the first weight ", weights[0]);
  kiln::Tensor y = kiln::empty_like(x);
  scale_kernel<<<1, 256, 0, kiln::stream(x)>>>(x.data<const float>(), y.data<float>(), x.numel(),
                                               static_cast<float>(alpha * weights[0]));
  return y;
}

KILN_OP(scale, "x, alpha=1.5, weights=[0.5, 2.25]").fake("x.dtype[*x.shape]");
