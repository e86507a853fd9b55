// SPDX-License-Identifier: Apache-2.0
// fused_abs(x): sqrt(x * x) in one kernel, which reads and writes memory once where torch.sqrt(x *
// x) does it twice.
#include "fused_abs.h"

namespace {

kiln::Tensor fused_abs(const kiln::Tensor& x) {
  const kiln::Dtype dtype = x.dtype();
  KILN_CHECK(!kiln::detail::is_float8(dtype), "no square of ", dtype,
             ", as in torch.mul; convert it with .to()");
  kiln::Tensor out = kiln::empty_broadcast(kiln::float_dtype(dtype), x);
  if (kiln::category_of(dtype) < kiln::Category::real) {
    kernels::fused_abs_integers(out, x);
    return out;
  }
  kiln::dispatch<float, kiln::bf16, kiln::half, double, kiln::complex<float>, kiln::complex<double>,
                 kiln::complex<kiln::half>>(dtype, [&](auto t) {
    using T = typename decltype(t)::type;
    kiln::elementwise_exact<T, T>(out, kernels::RootOfSquare<T>{}, x);
  });
  return out;
}

}  // namespace

KILN_OP(fused_abs, "x")
    .fake("broadcast(x, dtype=float_of(x))")
    .doc("sqrt(x * x) in one kernel; integers and bool give float32.");
