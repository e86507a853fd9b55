// SPDX-License-Identifier: Apache-2.0
// Ops that are wrong, each in one way that kiln.test must find. All mean x + 1 over contiguous f32.
#include <kiln/op.h>

__global__ void plus_one(const float* x, float* out, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) out[i] = x[i] + 1.0f;
}

static kiln::Tensor launch(const kiln::Tensor& x, const float* in, int64_t n) {
  kiln::Tensor out = kiln::empty(x.sizes(), x.dtype(), x.device());
  if (n > 0)
    plus_one<<<kiln::blocks_for(n, 64), 64, 0, kiln::stream(x)>>>(in, out.data<float>(), n);
  return out;
}

kiln::Tensor right(const kiln::Tensor& x) { return launch(x, x.data<const float>(), x.numel()); }
KILN_OP(right, "x").fake("f32[*x.shape]");

// Leaves the last element of a row of four as it found it.
kiln::Tensor forgets_tail(const kiln::Tensor& x) {
  return launch(x, x.data<const float>(), x.numel() / 4 * 4);
}
KILN_OP(forgets_tail, "x").fake("f32[*x.shape]");

// Takes memory to be in order, whatever the strides say.
kiln::Tensor ignores_strides(const kiln::Tensor& x) {
  return launch(x, static_cast<const float*>(x.raw()), x.is_contiguous() ? x.numel() : 1);
}
KILN_OP(ignores_strides, "x").fake("f32[*x.shape]");

// Writes to its input.
__global__ void scribble(float* x) { x[0] = -7.0f; }
kiln::Tensor spoils_input(const kiln::Tensor& x) {
  kiln::Tensor out = right(x);
  if (x.numel() > 0)
    scribble<<<1, 1, 0, kiln::stream(x)>>>(static_cast<float*>(const_cast<void*>(x.raw())));
  return out;
}
KILN_OP(spoils_input, "x").fake("f32[*x.shape]");

// Every second call is off by one.
kiln::Tensor alternates(const kiln::Tensor& x) {
  static bool odd = false;
  odd = !odd;
  kiln::Tensor out = right(x);
  return odd ? out : right(out);
}
KILN_OP(alternates, "x").fake("f32[*x.shape]");

// Tells torch.compile of a shape that it does not return.
kiln::Tensor lies(const kiln::Tensor& x) { return right(x); }
KILN_OP(lies, "x").fake("f32[x.numel]");

// x += 1 with one element too many.
__global__ void add_in_place(float* x, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) x[i] += 1.0f;
}
void overruns_(kiln::Tensor& x) {
  KILN_CHECK(x.is_contiguous(), "x must be contiguous");
  if (x.numel() > 0)
    add_in_place<<<kiln::blocks_for(x.numel() + 1, 64), 64, 0, kiln::stream(x)>>>(x.data<float>(),
                                                                                  x.numel() + 1);
}
KILN_OP(overruns_, "x");

void adds_(kiln::Tensor& x) {
  if (x.numel() > 0)
    add_in_place<<<kiln::blocks_for(x.numel(), 64), 64, 0, kiln::stream(x)>>>(x.data<float>(),
                                                                              x.numel());
}
KILN_OP(adds_, "x");
