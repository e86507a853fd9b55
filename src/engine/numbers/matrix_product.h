// SPDX-License-Identifier: Apache-2.0
// How do 32 lanes multiply matrices, fast? The shapes of most kernels, 16-bit floats into 16 x 8
// f32, have a function of their own. All others but f64 are computed in f32: integers of 8 bits and
// their sums in one instruction are exact in it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/numbers/matrix_elements.h"

namespace kiln::engine {

// The registers of the lanes, with fragments laid out as in the manual.
struct SmallProduct {
  const uint32_t* a[4];
  const uint32_t* b[2];
  const float* c[4];
  float* d[4];
};

// K is 8 or 16. Sums with fused multiply-adds in the order of k; a NaN has the bits of a GPU's.
void multiply_f16(const SmallProduct& product, uint32_t k);
void multiply_bf16(const SmallProduct& product, uint32_t k);

// The elements of `count` words as f32, in their order: those of the low bits come first.
void widen_elements(Element type, const uint32_t* words, uint32_t count, float* to);

// d += a * b, of m x k and k x n matrices whose rows are `step` apart. m and n are multiples of 8.
// Sums by fused multiply-adds in the order of k.
struct FloatProduct {
  const float* a;
  size_t a_step;
  const float* b;
  size_t b_step;
  float* d;
  size_t d_step;
  uint32_t m, n, k;
  // No product is rounded: true of all elements but bf16 and tf32, whose products may be subnormal.
  bool is_exact;
};
void add_product(const FloatProduct& product);
inline bool has_exact_products(Element type) {
  return type != Element::Bf16 && type != Element::Tf32;
}

// Rows become columns. `rows` and `columns` are multiples of 4.
void transpose(const float* from, size_t from_step, uint32_t rows, uint32_t columns, float* to,
               size_t to_step);

// 8 rows of 8 sums as mma and wgmma spread them: lane 4 * row + t has columns 2t and 2t + 1, in two
// registers, or in one as a pair of f16.
template <class T>
void join_columns(const T* even, const T* odd, T* rows) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    rows[2 * lane] = even[lane];
    rows[2 * lane + 1] = odd[lane];
  }
}
// NaNs become the hardware's.
void split_columns(const float* rows, float* even, float* odd);
void narrow_to_halves(const float* from, uint32_t count, uint32_t* words);  // count words of two
// from is a sum of products of integers, to which c is added; `saturates`: it does not wrap.
inline int32_t add_integer_sum(float from, int32_t c, bool saturates) {
  const int64_t sum = int64_t{c} + static_cast<int32_t>(from);
  if (!saturates) return static_cast<int32_t>(sum);
  return static_cast<int32_t>(std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX));
}

// The eight rows of 8 x 16 bits at `rows` as the lanes of ldmatrix have them.
void load_rows(const std::byte* const* rows, bool transposed, uint32_t* lanes);

}  // namespace kiln::engine
