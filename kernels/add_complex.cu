// SPDX-License-Identifier: Apache-2.0
// The general sum of tensors whose result is complex. (One file a group of dtypes: they compile
// side by side.)
#include "add.h"

namespace kernels {

void add_complex(kiln::Tensor& out, const kiln::Tensor& a, const kiln::Tensor& b) {
  dispatch_complex(out.dtype(), [&](auto t) {
    using T = typename decltype(t)::type;
    kiln::elementwise<T, T, T>(out, Add{}, a, b);
  });
}

}  // namespace kernels
