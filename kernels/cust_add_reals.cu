// SPDX-License-Identifier: Apache-2.0
// A tensor plus a number whose result is half, bf16, float or double.
#include "cust_add.h"

namespace kernels {

void cust_add_reals(kiln::Tensor& out, const kiln::Tensor& x, const Number& value) {
  dispatch_reals(out.dtype(), [&](auto t) {
    using T = typename decltype(t)::type;
    kiln::elementwise<T, T>(out, AddNumber<T>(value, out.is_cuda()), x);
  });
}

}  // namespace kernels
