// SPDX-License-Identifier: Apache-2.0
// Does kiln/elementwise.h serve an author? Three inputs, an output of another type, an output in
// place, and one given by the caller.
#include <kiln/elementwise.h>
#include <kiln/op.h>

struct MultiplyAdd {
  template <class T>
  __device__ T operator()(T a, T b, T c) const {
    return a * b + c;
  }
};

kiln::Tensor multiply_add(const kiln::Tensor& a, const kiln::Tensor& b, const kiln::Tensor& c) {
  kiln::Tensor out = kiln::empty_broadcast(kiln::result_dtype(a, b, c), a, b, c);
  kiln::dispatch<float, kiln::half>(out.dtype(), [&](auto t) {
    using T = typename decltype(t)::type;
    kiln::elementwise<T, T, T, T>(out, MultiplyAdd{}, a, b, c);
  });
  return out;
}
KILN_OP(multiply_add, "a, b, c").fake("broadcast(a, b, c)");

struct IsGreater {
  __device__ bool operator()(double a, float b) const { return a > b; }
};

// A comparison: operands of 8 and 4 bytes, a result of 1.
kiln::Tensor greater(const kiln::Tensor& a, const kiln::Tensor& b) {
  kiln::Tensor out = kiln::empty_broadcast(kiln::Dtype::bool8, a, b);
  kiln::elementwise<bool, double, float>(out, IsGreater{}, a, b);
  return out;
}
KILN_OP(greater, "a, b").fake("broadcast(a, b, dtype=bool)");

struct Scale {
  float by;
  __device__ float operator()(float x) const { return x * by; }
};

// In place, and into whatever view the caller gives.
void scale_(kiln::Tensor& x, double by) {
  kiln::elementwise<kiln::half, kiln::half>(x, Scale{float(by)}, x);
}
KILN_OP(scale_, "x, by");

void scale_into(kiln::Tensor& out, const kiln::Tensor& x, double by) {
  kiln::elementwise<float, float>(out, Scale{float(by)}, x);
}
KILN_OP(scale_into, "out, x, by");

void scale_exact_into(kiln::Tensor& out, const kiln::Tensor& x, double by) {
  kiln::elementwise_exact<float, float>(out, Scale{float(by)}, x);
}
KILN_OP(scale_exact_into, "out, x, by");
