// SPDX-License-Identifier: Apache-2.0
// Lesson 4. Write an op scale(x, by) that multiplies a float tensor by a number. Without the second
// argument it doubles. The kernel is done; the op and its parameters are yours.
#include <kiln/op.h>

__global__ void scale_kernel(const float* x, float by, float* y, int64_t n) {
  int64_t i = kiln::global_thread();
  if (i < n) y[i] = x[i] * by;
}

kiln::Tensor scale(const kiln::Tensor& x) { return kiln::empty_like(x); }
KILN_OP(scale, "x");
