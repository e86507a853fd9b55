// SPDX-License-Identifier: Apache-2.0
// Ops that a benchmark must survive: one that throws, hangs, crashes, allocates without end, spoils
// its input, and one that changes its mind. All mean x + 1.
#include <kiln/op.h>
#include <stdlib.h>
#include <unistd.h>

__global__ void add_one(kiln::View<const float, 1> x, kiln::View<float, 1> out, float step) {
  const int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = x(i) + step;
}

static kiln::Tensor plus(const kiln::Tensor& x, float step = 1) {
  kiln::Tensor out = kiln::empty_like(x);
  add_one<<<kiln::blocks_for(x.numel(), 64), 64, 0, kiln::stream(x)>>>(x.flat<const float>(),
                                                                       out.flat<float>(), step);
  return out;
}

kiln::Tensor good(const kiln::Tensor& x) { return plus(x); }
KILN_OP(good, "x").fake("like(x)");

kiln::Tensor throws(const kiln::Tensor& x) {
  KILN_CHECK(x.numel() < 0, "no luck with ", x.numel(), " elements");
  return x;
}
KILN_OP(throws, "x").fake("like(x)");

kiln::Tensor hangs(const kiln::Tensor& x) {
  for (;;) sleep(1);
  return x;
}
KILN_OP(hangs, "x").fake("like(x)");

kiln::Tensor crashes(const kiln::Tensor& x) {
  abort();
  return x;
}
KILN_OP(crashes, "x").fake("like(x)");

kiln::Tensor leaks(const kiln::Tensor& x) {
  constexpr size_t kBytes = 1 << 20;
  char* kept = static_cast<char*>(malloc(kBytes));
  for (size_t i = 0; kept && i < kBytes; i += 4096) kept[i] = 1;
  return plus(x);
}
KILN_OP(leaks, "x").fake("like(x)");

kiln::Tensor spoils_input(const kiln::Tensor& x) {
  kiln::Tensor out = plus(x);
  *static_cast<float*>(const_cast<void*>(x.raw())) = -7;
  return out;
}
KILN_OP(spoils_input, "x").fake("like(x)");

kiln::Tensor changes(const kiln::Tensor& x) {
  static float calls = 0;
  return plus(x, calls += 1);
}
KILN_OP(changes, "x").fake("like(x)");
