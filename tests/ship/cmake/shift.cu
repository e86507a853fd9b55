// SPDX-License-Identifier: Apache-2.0
// x += value, in place; the number of elements comes back.
#include <kiln/op.h>

__global__ void shift_kernel(kiln::View<float, 1> x, float value) {
  int64_t i = kiln::global_thread();
  if (i < x.size(0)) x(i) += value;
}

int64_t shift(kiln::Tensor& x, double value) {
  shift_kernel<<<kiln::blocks_for(x.numel(), 256), 256, 0, kiln::stream(x)>>>(
      x.flat<float>(), static_cast<float>(value));
  return x.numel();
}
KILN_OP(shift, "x, value=1.0");
