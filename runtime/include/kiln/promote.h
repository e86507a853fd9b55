// SPDX-License-Identifier: Apache-2.0
// Which dtype does a sum have? torch's own rules: promote_types for a pair, and result_dtype for
// tensors and scalars, in which a tensor without dimensions, and then a plain number, count only
// when their category is higher.
#pragma once

#include <kiln/tensor.h>

namespace kiln {

enum class Category : int { boolean, integer, real, complex_number };

inline Category category_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bool8:
      return Category::boolean;
    case Dtype::f16:
    case Dtype::bf16:
    case Dtype::f32:
    case Dtype::f64:
    case Dtype::f8e5m2:
    case Dtype::f8e4m3:
      return Category::real;
    case Dtype::c32:
    case Dtype::c64:
    case Dtype::c128:
      return Category::complex_number;
    default:
      return Category::integer;
  }
}

namespace detail {

inline bool is_float8(Dtype d) { return d == Dtype::f8e5m2 || d == Dtype::f8e4m3; }
inline bool is_wide_unsigned(Dtype d) {
  return d == Dtype::u16 || d == Dtype::u32 || d == Dtype::u64;
}

inline Dtype complex_of(Dtype real) {
  return real == Dtype::f16 ? Dtype::c32 : real == Dtype::f64 ? Dtype::c128 : Dtype::c64;
}
inline Dtype part_of(Dtype complex_number) {
  return complex_number == Dtype::c32    ? Dtype::f16
         : complex_number == Dtype::c128 ? Dtype::f64
                                         : Dtype::f32;
}
// Both in the same category.
inline Dtype wider(Dtype a, Dtype b) { return element_bytes(a) >= element_bytes(b) ? a : b; }

inline Dtype promote_reals(Dtype a, Dtype b) {
  if (a == b) return a;
  if (element_bytes(a) == 2 && element_bytes(b) == 2)
    return Dtype::f32;  // f16 and bf16 hold each other's values badly
  return wider(a, b);
}

}  // namespace detail

inline Dtype promote_types(Dtype a, Dtype b) {
  using namespace detail;
  if (a == b) return a;
  KILN_CHECK(!is_float8(a) && !is_float8(b), "no common dtype for ", a, " and ", b,
             ": torch promotes no 8-bit float; convert one of them with .to()");
  const Category of_a = category_of(a), of_b = category_of(b);
  const bool unsigned_pair = is_wide_unsigned(a) || is_wide_unsigned(b);
  KILN_CHECK(!unsigned_pair || of_a == Category::real || of_b == Category::real,
             "no common dtype for ", a, " and ", b,
             ": torch promotes u16, u32 and u64 only with real floating dtypes; convert one of "
             "them with .to()");
  if (of_a == of_b) {
    if (of_a == Category::real) return promote_reals(a, b);
    if (of_a == Category::complex_number) return wider(a, b);
    // Integers: u8 with i8 needs a bit more than either has.
    if (element_bytes(a) == 1 && element_bytes(b) == 1) return Dtype::i16;
    return wider(a, b);
  }
  const Dtype high = of_a > of_b ? a : b, low = of_a > of_b ? b : a;
  if (category_of(high) == Category::complex_number && category_of(low) == Category::real)
    return complex_of(promote_reals(part_of(high), low));
  return high;
}

namespace detail {

// An operand of a higher rank (tensors with dimensions over those without, those over plain
// numbers) keeps its dtype unless the lower rank brings a higher category. -1: no operand of that
// rank.
inline int combine_ranks(int higher, int lower) {
  if (higher < 0 || lower < 0) return higher < 0 ? lower : higher;
  const Dtype high = static_cast<Dtype>(higher), low = static_cast<Dtype>(lower);
  const Category of_high = category_of(high), of_low = category_of(low);
  if (of_high == Category::complex_number) return higher;
  if (of_high == Category::real)
    return of_low == Category::complex_number ? static_cast<int>(complex_of(high)) : higher;
  if (of_high == Category::boolean || of_low >= Category::real) return lower;
  return higher;
}

struct Ranks {
  int with_dimensions = -1, without = -1, number = -1;
  static void add(int& rank, Dtype dtype) {
    rank = rank < 0 ? static_cast<int>(dtype)
                    : static_cast<int>(promote_types(static_cast<Dtype>(rank), dtype));
  }
  void operand(const Tensor& t) { add(t.ndim() ? with_dimensions : without, t.dtype()); }
  void operand(bool) { add(number, Dtype::bool8); }
  void operand(int) { add(number, Dtype::i64); }
  void operand(long) { add(number, Dtype::i64); }
  void operand(long long) { add(number, Dtype::i64); }
  void operand(float) { add(number, Dtype::f32); }
  // A Python float has torch's default dtype, float32.
  void operand(double) { add(number, Dtype::f32); }
};

}  // namespace detail

// The dtype of an elementwise operation on tensors and plain numbers (bool, integers, float,
// double), as torch.result_type.
template <class... A>
Dtype result_dtype(const A&... operands) {
  detail::Ranks ranks;
  (ranks.operand(operands), ...);
  return static_cast<Dtype>(detail::combine_ranks(
      ranks.with_dimensions, detail::combine_ranks(ranks.without, ranks.number)));
}

// The dtype of a function such as sqrt: of integers and bool it is float32.
inline Dtype float_dtype(Dtype dtype) {
  return category_of(dtype) < Category::real ? Dtype::f32 : dtype;
}

}  // namespace kiln
