// SPDX-License-Identifier: Apache-2.0
// What do the parts of fused_abs share? The functor. (The dtypes are split over two files, which
// compile side by side.)
#pragma once

#include <kiln/elementwise.h>
#include <kiln/op.h>

namespace kernels {

// T: the dtype of x, in which the product is taken (integers wrap, halves are rounded), as torch
// would store it.
template <class T>
struct RootOfSquare {
  using Value = typename kiln::Element<T>::Value;

  __device__ __forceinline__ auto operator()(Value x) const {
    if constexpr (kiln::detail::IsComplex<Value>::value) {
      return kiln::sqrt(kiln::rounded_to<T>(x * x));
    } else if constexpr (kiln::dtype_of<Value> == kiln::Dtype::f64) {
      return ::sqrt(x * x);
    } else if constexpr (kiln::dtype_of<Value> == kiln::Dtype::f32) {
      return ::sqrtf(kiln::rounded_to<T>(x * x));
    } else {
      // Without sign, so that the overflow wraps.
      const uint64_t bits = static_cast<uint64_t>(x);
      return ::sqrtf(static_cast<float>(static_cast<Value>(bits * bits)));
    }
  }
};

void fused_abs_integers(kiln::Tensor& out, const kiln::Tensor& x);

}  // namespace kernels
