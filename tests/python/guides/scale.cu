// SPDX-License-Identifier: Apache-2.0
// The scale.cu of the guide to kiln tune: an op with two defines to choose.
#include <kiln/op.h>

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef ITEMS
#define ITEMS 1
#endif

__global__ void scale_kernel(kiln::View<const float, 1> x, float f, kiln::View<float, 1> out) {
  const int64_t first = kiln::global_thread() * ITEMS;
  for (int64_t i = first; i < first + ITEMS && i < out.size(0); ++i) out(i) = f * x(i);
}

kiln::Tensor scale(const kiln::Tensor& x, double f) {
  kiln::Tensor out = kiln::empty_like(x);
  const int64_t threads = (out.numel() + ITEMS - 1) / ITEMS;
  scale_kernel<<<kiln::blocks_for(threads, BLOCK), BLOCK, 0, kiln::stream(x)>>>(
      x.flat<const float>(), static_cast<float>(f), out.flat<float>());
  return out;
}
KILN_OP(scale, "x, f").fake("like(x)");
