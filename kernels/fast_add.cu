// SPDX-License-Identifier: Apache-2.0
// my_fast_add(a, b): the sum at the speed of memory. Accesses are 16 bytes wide whatever the dtype;
// how, is in kiln/elementwise.h.
#include "add.h"

namespace kernels {

void add_integers(kiln::Tensor& out, const kiln::Tensor& a, const kiln::Tensor& b);
void add_reals(kiln::Tensor& out, const kiln::Tensor& a, const kiln::Tensor& b);
void add_complex(kiln::Tensor& out, const kiln::Tensor& a, const kiln::Tensor& b);

void add_into(kiln::Tensor& out, const kiln::Tensor& a, const kiln::Tensor& b) {
  switch (kiln::category_of(out.dtype())) {
    case kiln::Category::real:
      return add_reals(out, a, b);
    case kiln::Category::complex_number:
      return add_complex(out, a, b);
    default:
      return add_integers(out, a, b);
  }
}

kiln::Tensor empty_sum(const kiln::Tensor& a, const kiln::Tensor& b) {
  const kiln::Dtype dtype = kiln::result_dtype(a, b);
  check_summable(dtype);
  return kiln::empty_broadcast(dtype, a, b);
}

}  // namespace kernels

static kiln::Tensor my_fast_add(const kiln::Tensor& a, const kiln::Tensor& b) {
  kiln::Tensor out = kernels::empty_sum(a, b);
  kernels::add_into(out, a, b);
  return out;
}

KILN_OP(my_fast_add, "a, b")
    .fake("broadcast(a, b)")
    .doc(
        "The sum of two tensors, as torch.add: any dtypes, shapes that broadcast, any strides. "
        "16-byte accesses.");
