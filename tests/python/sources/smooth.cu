// SPDX-License-Identifier: Apache-2.0
// Ops with gradients, for kiln.test and for what an op without a backward does. f16 and bf16
// compute in f32.
#include <kiln/half.h>
#include <kiln/op.h>

template <class T>
struct Wide {
  using type = float;
};
template <>
struct Wide<double> {
  using type = double;
};

template <class T>
__global__ void gelu_kernel(const T* x, T* out, int64_t n) {
  using W = typename Wide<T>::type;
  const int64_t i = kiln::global_thread();
  if (i >= n) return;
  const W value = static_cast<W>(x[i]);
  out[i] = static_cast<T>(value * W(0.5) * (W(1) + erf(value * W(0.70710678118654752440))));
}

kiln::Tensor gelu(const kiln::Tensor& x) {
  kiln::Tensor out = kiln::empty(x.sizes(), x.dtype(), x.device());
  if (x.numel() == 0) return out;
  kiln::dispatch<float, double, kiln::half, kiln::bf16>(x.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    gelu_kernel<T><<<kiln::blocks_for(x.numel(), 128), 128, 0, kiln::stream(x)>>>(
        x.data<const T>(), out.data<T>(), x.numel());
  });
  return out;
}
KILN_OP(gelu, "x").fake("x.dtype[*x.shape]");

// a * b by row and column, whatever the strides; and a + b.
__global__ void product_kernel(kiln::View<const float, 2> a, kiln::View<const float, 2> b,
                               kiln::View<float, 2> product, kiln::View<float, 2> sum) {
  const int64_t i = kiln::global_thread();
  if (i >= a.size(0) * a.size(1)) return;
  const int64_t r = i / a.size(1), c = i % a.size(1);
  product(r, c) = a(r, c) * b(r, c);
  sum(r, c) = a(r, c) + b(r, c);
}

kiln::Tensors<2> product_and_sum(const kiln::Tensor& a, const kiln::Tensor& b) {
  KILN_CHECK(a.ndim() == 2 && a.sizes() == b.sizes(), "a and b must have the same two dimensions");
  kiln::Tensor product = kiln::empty(a.sizes(), a.dtype(), a.device()),
               sum = kiln::empty(a.sizes(), a.dtype(), a.device());
  if (a.numel() > 0)
    product_kernel<<<kiln::blocks_for(a.numel(), 128), 128, 0, kiln::stream(a)>>>(
        a.view<const float, 2>(), b.view<const float, 2>(), product.view<float, 2>(),
        sum.view<float, 2>());
  return {product, sum};
}
KILN_OP(product_and_sum, "a, b").fake("f32[*a.shape], f32[*a.shape]");

__global__ void gather_kernel(kiln::View<const float, 1> x, kiln::View<const int64_t, 1> index,
                              kiln::View<float, 1> out) {
  const int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = x(index(i));
}

// An integer input beside a floating one.
kiln::Tensor gather(const kiln::Tensor& x, const kiln::Tensor& index) {
  kiln::Tensor out = kiln::empty({index.size(0)}, x.dtype(), x.device());
  if (out.numel() > 0)
    gather_kernel<<<kiln::blocks_for(out.numel(), 128), 128, 0, kiln::stream(x)>>>(
        x.view<const float, 1>(), index.view<const int64_t, 1>(), out.view<float, 1>());
  return out;
}
KILN_OP(gather, "x, index").fake("x.dtype[index.shape[0]]");

void scale_(kiln::Tensor& x, double factor);
__global__ void scale_kernel(float* x, float factor, int64_t n) {
  const int64_t i = kiln::global_thread();
  if (i < n) x[i] *= factor;
}
void scale_(kiln::Tensor& x, double factor) {
  if (x.numel() > 0)
    scale_kernel<<<kiln::blocks_for(x.numel(), 128), 128, 0, kiln::stream(x)>>>(
        x.data<float>(), static_cast<float>(factor), x.numel());
}
KILN_OP(scale_, "x, factor");
