// SPDX-License-Identifier: Apache-2.0
// fused_abs(x): sqrt(x * x) in one kernel, which reads and writes memory once where torch.sqrt(x * x) does it twice.
// The product is rounded to x's dtype as torch would store it, so the values are torch's.
#include <kiln/elementwise.h>
#include <kiln/op.h>

namespace {

// T: the dtype of x, in which the product is taken (integers wrap).
template <class T>
struct RootOfSquare {
  using Value = typename kiln::Element<T>::Value;
  static __device__ __forceinline__ float root(float v) { return ::sqrtf(v); }
  static __device__ __forceinline__ double root(double v) { return ::sqrt(v); }
  template <class V>
  static __device__ __forceinline__ auto root(const V& v) {
    if constexpr (kiln::detail::IsComplex<V>::value)
      return kiln::sqrt(v);
    else
      return ::sqrtf(static_cast<float>(v));
  }
  __device__ __forceinline__ auto operator()(Value x) const {
    if constexpr (kiln::dtype_of<T> == kiln::Dtype::bool8)
      return x ? 1.0f : 0.0f;
    else
      return root(kiln::rounded_to<T>(static_cast<Value>(x * x)));
  }
};

template <class Out, class In>
void run(kiln::Tensor& out, const kiln::Tensor& x) {
  kiln::elementwise<Out, In>(out, RootOfSquare<In>{}, x);
}

kiln::Tensor fused_abs(const kiln::Tensor& x) {
  KILN_CHECK(!kiln::detail::is_float8(x.dtype()) && !kiln::detail::is_wide_unsigned(x.dtype()), "no square of ",
             x.dtype(), ", as in torch.mul; convert it with .to()");
  kiln::Tensor out = kiln::empty_broadcast(kiln::float_dtype(x.dtype()), x);
  using namespace kiln;
  kiln::dispatch<float, bf16, half, double, complex<float>, complex<double>, complex<half>, bool, uint8_t, int8_t,
                 int16_t, int32_t, int64_t>(x.dtype(), [&](auto t) {
    using In = typename decltype(t)::type;
    if constexpr (dtype_of<In> == Dtype::bool8 || dtype_of<In> <= Dtype::i64)
      run<float, In>(out, x);
    else
      run<In, In>(out, x);
  });
  return out;
}

}  // namespace

KILN_OP(fused_abs, "x")
    .fake("broadcast(x, dtype=float_of(x))")
    .doc("sqrt(x * x) in one kernel; integers and bool give float32.");
