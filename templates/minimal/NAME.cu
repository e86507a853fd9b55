// SPDX-License-Identifier: Apache-2.0
// out = x + alpha * y.   kiln call NAME.cu NAME randn:f32:1000 ones:f32:1000 0.1
#include <kiln/op.h>

template <class T>
__global__ void NAME_kernel(kiln::View<const T, 1> x, kiln::View<const T, 1> y, T alpha,
                            kiln::View<T, 1> out) {
  int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = x(i) + alpha * y(i);
}

kiln::Tensor NAME(const kiln::Tensor& x, const kiln::Tensor& y, double alpha) {
  KILN_CHECK(x.sizes() == y.sizes(), "shapes differ: ", x.sizes(), " and ", y.sizes());
  KILN_CHECK(x.dtype() == y.dtype(), "dtypes differ: ", x.dtype(), " and ", y.dtype());
  kiln::Tensor out = kiln::empty_like(x);
  kiln::dispatch<float, double>(x.dtype(), [&](auto t) {
    using T = typename decltype(t)::type;
    NAME_kernel<T><<<kiln::blocks_for(out.numel(), 256), 256, 0, kiln::stream(x)>>>(
        x.flat<const T>(), y.flat<const T>(), static_cast<T>(alpha), out.flat<T>());
  });
  return out;
}
KILN_OP(NAME, "x, y, alpha=1.0").fake("like(x)");
