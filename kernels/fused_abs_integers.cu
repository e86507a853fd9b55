// SPDX-License-Identifier: Apache-2.0
// fused_abs of integers and bool, which gives float32.
#include "fused_abs.h"

namespace kernels {

void fused_abs_integers(kiln::Tensor& out, const kiln::Tensor& x) {
  kiln::dispatch<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, uint16_t, uint32_t, uint64_t>(
      x.dtype(), [&](auto t) {
        using T = typename decltype(t)::type;
        kiln::elementwise_exact<float, T>(out, RootOfSquare<T>{}, x);
      });
}

}  // namespace kernels
