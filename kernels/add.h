// SPDX-License-Identifier: Apache-2.0
// What do the kinds of add share? The general sum of two tensors of any dtypes, shapes and strides,
// and the dispatch over dtypes.
#pragma once

#include <kiln/elementwise.h>
#include <kiln/op.h>

namespace kernels {

struct Add {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
  // As in torch, the sum of two truths is their "or".
  __device__ __forceinline__ bool operator()(bool a, bool b) const { return a || b; }
};

// Call f with a tag of the C++ type that adds values of this dtype. Integers are added without
// sign: the bits are the same, and an overflow wraps.
template <class F>
void dispatch_integers(kiln::Dtype dtype, F&& f) {
  switch (dtype) {
    case kiln::Dtype::bool8:
      return f(kiln::Type<bool>{});
    case kiln::Dtype::u8:
    case kiln::Dtype::i8:
      return f(kiln::Type<uint8_t>{});
    case kiln::Dtype::i16:
      return f(kiln::Type<uint16_t>{});
    case kiln::Dtype::i32:
      return f(kiln::Type<uint32_t>{});
    default:
      return f(kiln::Type<uint64_t>{});
  }
}
template <class F>
void dispatch_reals(kiln::Dtype dtype, F&& f) {
  kiln::dispatch<float, kiln::bf16, kiln::half, double>(dtype, f);
}
template <class F>
void dispatch_complex(kiln::Dtype dtype, F&& f) {
  kiln::dispatch<kiln::complex<float>, kiln::complex<double>, kiln::complex<kiln::half>>(dtype, f);
}

// Torch has no sum of u16, u32, u64 and the 8-bit floats.
inline void check_summable(kiln::Dtype dtype) {
  KILN_CHECK(!kiln::detail::is_float8(dtype) && !kiln::detail::is_wide_unsigned(dtype),
             "no sum in ", dtype, ", as in torch.add; convert a tensor with .to()");
}

// out = a + b; out has the dtype and the shape of the sum.
void add_into(kiln::Tensor& out, const kiln::Tensor& a, const kiln::Tensor& b);

// A new tensor for a + b, as torch.add would make it.
kiln::Tensor empty_sum(const kiln::Tensor& a, const kiln::Tensor& b);

}  // namespace kernels
