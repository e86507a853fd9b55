// SPDX-License-Identifier: Apache-2.0
// An op of three arrays that does nothing: what a call costs before a kernel runs.
#include <kiln/op.h>

void noop_arrays(const kiln::Tensor& a, const kiln::Tensor& b, kiln::Tensor& out) {
  KILN_CHECK(a.sizes() == b.sizes() && a.sizes() == out.sizes(), "shapes differ");
}
KILN_OP(noop_arrays, "a, b, out");
