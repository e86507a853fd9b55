// SPDX-License-Identifier: Apache-2.0
// A tensor plus a number whose result is bool or an integer.
#include "cust_add.h"

namespace kernels {

void cust_add_integers(kiln::Tensor& out, const kiln::Tensor& x, const Number& value) {
  dispatch_integers(out.dtype(), [&](auto t) {
    using T = typename decltype(t)::type;
    kiln::elementwise<T, T>(out, AddNumber<T>(value, out.is_cuda()), x);
  });
}

}  // namespace kernels
