// SPDX-License-Identifier: Apache-2.0
// The ops that every torch is given: one for each way in which versions of torch differ.
#include <kiln/op.h>

template <class T>
__global__ void axpy_kernel(kiln::View<const T, 1> x, kiln::View<const T, 1> y,
                            kiln::View<T, 1> out, T factor) {
  int64_t i = kiln::global_thread();
  if (i < out.size(0)) out(i) = factor * x(i) + y(i);
}

// Tensors and scalars: any torch from 2.7.
kiln::Tensor axpy(const kiln::Tensor& x, const kiln::Tensor& y, double factor, int64_t repeat) {
  KILN_CHECK(x.sizes() == y.sizes(), "shapes differ: ", x.sizes(), " and ", y.sizes());
  kiln::Tensor out = kiln::empty_like(x);
  for (int64_t round = 0; round < repeat; round++) {
    kiln::dispatch<float, double, int64_t>(x.dtype(), [&](auto type) {
      using T = typename decltype(type)::type;
      axpy_kernel<T><<<kiln::blocks_for(out.numel(), 128), 128, 0, kiln::stream(x)>>>(
          x.flat<const T>(), y.flat<const T>(), out.flat<T>(), static_cast<T>(factor));
    });
  }
  return out;
}
KILN_OP(axpy, "x, y, factor=2.0, *, repeat=1").fake("like(x)");

__global__ void increment_kernel(kiln::View<float, 1> x) {
  int64_t i = kiln::global_thread();
  if (i < x.size(0)) x(i) += 1;
}

// In place.
void increment(kiln::Tensor& x) {
  increment_kernel<<<kiln::blocks_for(x.numel(), 128), 128, 0, kiln::stream(x)>>>(x.flat<float>());
}
KILN_OP(increment, "x");

// A list: torch from 2.10.
kiln::Tensor first_of(kiln::TensorList tensors) {
  KILN_CHECK(tensors.size() > 0, "the list is empty");
  return axpy(tensors[0], tensors[0], 0.0, 1);
}
KILN_OP(first_of, "tensors");
