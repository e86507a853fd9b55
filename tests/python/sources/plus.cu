// SPDX-License-Identifier: Apache-2.0
// A source that tests copy and edit: x + STEP in f32.
#include <kiln/op.h>

#ifndef STEP
#define STEP 1.0f
#endif

__global__ void plus_kernel(kiln::View<const float, 1> x, kiln::View<float, 1> out) {
  const int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = x(i) + STEP;
}

kiln::Tensor plus(const kiln::Tensor& x) {
  kiln::Tensor out = kiln::empty_like(x);
  plus_kernel<<<kiln::blocks_for(x.numel(), 64), 64, 0, kiln::stream(x)>>>(x.flat<const float>(),
                                                                           out.flat<float>());
  return out;
}
KILN_OP(plus, "x").fake("like(x)").doc("x + STEP");
