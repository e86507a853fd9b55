// SPDX-License-Identifier: Apache-2.0
// cust_add(x, value): a tensor plus a Python number. Two overloads, since torch's Scalar cannot
// cross to an op library; the one for int is first, so that an int is not taken for a float.
#include "cust_add.h"

namespace {

kiln::Tensor cust_add(const kiln::Tensor& x, kiln::Dtype dtype, const kernels::Number& value) {
  kernels::check_summable(dtype);
  kiln::Tensor out = kiln::empty_broadcast(dtype, x);
  switch (kiln::category_of(dtype)) {
    case kiln::Category::real:
      kernels::cust_add_reals(out, x, value);
      break;
    case kiln::Category::complex_number:
      kernels::cust_add_complex(out, x, value);
      break;
    default:
      kernels::cust_add_integers(out, x, value);
  }
  return out;
}

kiln::Tensor cust_add_int(const kiln::Tensor& x, int64_t value) {
  return cust_add(x, kiln::result_dtype(x, value), {true, value, 0});
}

kiln::Tensor cust_add_float(const kiln::Tensor& x, double value) {
  return cust_add(x, kiln::result_dtype(x, value), {false, 0, value});
}

}  // namespace

KILN_OP(cust_add_int, "cust_add.int(Tensor x, SymInt value) -> Tensor")
    .fake("broadcast(x, dtype=promote(x, value))")
    .doc("A tensor plus a number, as torch.add(x, value).");
KILN_OP(cust_add_float, "cust_add.float(Tensor x, float value) -> Tensor")
    .fake("broadcast(x, dtype=promote(x, value))")
    .doc("A tensor plus a number, as torch.add(x, value).");
