// SPDX-License-Identifier: Apache-2.0
// How do vectors of x86-64 compute with f64, and convert from one width to another? The definitions
// of vectors.h that only vectors.cpp includes.
#pragma once

#include <bit>

#include "engine/compile/x64/vectors.h"
#include "engine/numbers/exponential.h"

namespace kiln::engine {

inline constexpr uint64_t kSignDouble = uint64_t{1} << 63;
inline constexpr uint64_t kOneDouble = 0x3ff0000000000000;
// 1.5 * 2^52: adding it rounds to an integer.
inline constexpr uint64_t kWholeDouble = 0x4338000000000000;

// A NaN that an f64 instruction creates has the bits of a GPU's.
template <class Vector>
bool X64Vectors<Vector>::unary_double(Does does, const Vector& to, const Vector& a) {
  const Vector other = temporary();
  switch (does) {
    case Does::Negate:  // -0 minus the number: a NaN keeps its sign
      constant(other, kSignDouble, 8);
      cc_.vsubpd(to, other, a);
      return true;
    case Does::Absolute:
      cc_.vandpd(other, a, everywhere_wide(~kSignDouble));
      choose(kUnordered, Number::F64, a, a, to, other, a);
      return true;
    case Does::Root:
      cc_.vsqrtpd(to, a);
      return true;
    case Does::Reciprocal:
      constant(other, kOneDouble, 8);
      cc_.vdivpd(to, other, a);
      return true;
    default:
      return false;
  }
}

// The polynomial of numbers/exponential.h.
template <class Vector>
void X64Vectors<Vector>::power_of_two_double(const Vector& x) {
  const Vector whole = temporary(), r = temporary(), r2 = temporary(), high = temporary(),
               more = temporary();
  constant(r, kWholeDouble, 8);
  cc_.vaddpd(whole, x, r);
  cc_.vsubpd(r, whole, r);
  cc_.vsubpd(r, x, r);
  const auto terms = [&](const Vector& to, size_t first) {
    constant(to, std::bit_cast<uint64_t>(kPowerTerms[first]), 8);
    cc_.vfmadd213pd(to, r, everywhere_wide(std::bit_cast<uint64_t>(kPowerTerms[first + 1])));
  };
  cc_.vmulpd(r2, r, r);
  terms(high, 0);
  terms(more, 2);
  cc_.vfmadd213pd(high, r2, more);
  terms(x, 4);
  terms(more, 6);
  cc_.vfmadd213pd(x, r2, more);
  cc_.vmulpd(more, r2, r2);
  cc_.vfmadd213pd(high, more, x);
  terms(more, 8);
  cc_.vfmadd213pd(high, r2, more);
  cc_.vpsllq(whole, whole, 52);
  cc_.vpaddq(x, high, whole);
}

// Adding to the exponent of a NaN may turn it into a number, so NaNs are put back.
template <class Vector>
void X64Vectors<Vector>::power_of_two(const Vector& to, const Vector& a) {
  const Vector low = temporary(), high = temporary();
  constant(low, 0xc3480000u, 4);  // -200; if one operand is a NaN, the result is the second
  cc_.vmaxps(low, low, a);
  constant(high, 0x43480000u, 4);
  cc_.vminps(low, high, low);
  extract_upper(lower(high), low);
  cc_.vcvtps2pd(low, lower(low));
  cc_.vcvtps2pd(high, lower(high));
  for (const Vector& half : {low, high}) {
    const Mark mark = this->mark();
    power_of_two_double(half);
    cc_.vcvtpd2ps(lower(half), half);
    release(mark);
  }
  join_halves(low, low, lower(high));
  choose(kUnordered, Number::F32, a, a, to, low, a);
}

template <class Vector>
bool X64Vectors<Vector>::binary_double(Does does, const Vector& to, const Vector& a,
                                       const Vector& b) {
  switch (does) {
    case Does::Add:
      cc_.vaddpd(to, a, b);
      return true;
    case Does::Sub:
      cc_.vsubpd(to, a, b);
      return true;
    case Does::Mul:
      cc_.vmulpd(to, a, b);
      return true;
    case Does::Divide:
      cc_.vdivpd(to, a, b);
      return true;
    case Does::Min:
    case Does::Max:
      pick_floats(does == Does::Min, Number::F64, to, a, b);
      return true;
    default:
      return false;
  }
}

// 32-bit integers, as in numbers/integer_operations.h.
template <class Vector>
void X64Vectors<Vector>::divide_integers(Does does, Number type, const Vector& to, const Vector& a,
                                         const Vector& b) {
  const std::array<Vector, 2> halves{temporary(), temporary()};
  const Vector by = temporary(), none = temporary();
  for (uint32_t h = 0; h < 2; ++h) {
    const Mark mark = this->mark();
    to_double(type, h == 1, halves[h], a);
    to_double(type, h == 1, by, b);
    cc_.vdivpd(halves[h], halves[h], by);
    round_vector(halves[h], halves[h], kToZero, true);
    cc_.vaddpd(halves[h], halves[h], everywhere_wide(kWholeDouble));
    release(mark);
  }
  narrow(by, halves[0], halves[1]);
  constant(none, 0, 4);
  compare(Comparison::Eq, Number::U32, none, b, none);
  if (does == Does::Remainder) {
    cc_.vpmulld(by, by, b);
    cc_.vpsubd(by, a, by);
  }
  bit_or(to, by, none);
}

template <class Vector>
void X64Vectors<Vector>::widen(bool is_signed_value, bool high, Reg to, Reg a) {
  const Half from = half(v(a), high);
  is_signed_value ? cc_.vpmovsxdq(v(to), from) : cc_.vpmovzxdq(v(to), from);
}

// The instructions read the low words of lanes of 64 bits.
template <class Vector>
void X64Vectors<Vector>::mul_wide(bool is_signed_value, bool high, Reg to, Reg a, Reg b) {
  const Vector l = temporary(), r = temporary();
  widen(false, high, l, a);
  widen(false, high, r, b);
  is_signed_value ? cc_.vpmuldq(v(to), l, r) : cc_.vpmuludq(v(to), l, r);
}

template <class Vector>
void X64Vectors<Vector>::mul_wide_by_one(bool is_signed_value, bool high, const Reg& to,
                                         const Reg& a, const Reg& b) {
  const Vector wide = temporary();
  widen(false, high, wide, a);
  is_signed_value ? cc_.vpmuldq(v(to), wide, v(b)) : cc_.vpmuludq(v(to), wide, v(b));
}

template <class Vector>
bool X64Vectors<Vector>::from_double(Number to_type, Reg to, Reg low, Reg high) {
  const Vector first = temporary(), second = temporary();
  if (to_type == Number::F32) {
    cc_.vcvtpd2ps(lower(first), v(low));
    cc_.vcvtpd2ps(lower(second), v(high));
  } else if (to_type == Number::S32) {
    // The instruction returns the smallest integer for every number that does not fit, so numbers
    // that are too large are reduced first. If one operand is a NaN, the result is the second one.
    const Vector most = temporary();
    constant(most, 0x41dfffffffc00000u, 8);  // 2^31 - 1
    cc_.vminpd(first, most, v(low));
    cc_.vminpd(second, most, v(high));
    cc_.vcvttpd2dq(lower(first), first);
    cc_.vcvttpd2dq(lower(second), second);
  } else {
    return false;
  }
  join_halves(v(to), first, lower(second));
  return true;
}

template <class Vector>
bool X64Vectors<Vector>::to_double(Number from, bool high, Reg to, Reg a) {
  if (from == Number::F32)
    cc_.vcvtps2pd(v(to), half(v(a), high));
  else if (from == Number::S32)
    cc_.vcvtdq2pd(v(to), half(v(a), high));
  else if (from == Number::U32)
    unsigned_to_double(v(to), v(a), high);
  else
    return false;
  return true;
}

// A pair of f16 lanes is a vector of half the bits, so neighbours stay neighbours. bf16 is the
// upper half of f32.
template <class Vector>
void X64Vectors<Vector>::unpack(Small small, uint32_t part, const Reg& to, const Reg& a) {
  switch (small) {
    case Small::F16: {
      const Vector words = temporary();
      low_words(words, v(a));
      cc_.vcvtph2ps(v(to), lower(words));
      return;
    }
    case Small::F16x2:
      cc_.vcvtph2ps(v(to), half(v(a), part == 1));
      return;
    case Small::Bf16x2:
      if (part == 1) return bit_and(v(to), v(a), everywhere(0xffff0000u));
      [[fallthrough]];
    default:
      cc_.vpslld(v(to), v(a), 16);
  }
}

// Rounds to nearest even, into the upper half. The lower half of a NaN must be 0.
template <class Vector>
void X64Vectors<Vector>::round_to_bf16(const Vector& to, const Vector& value) {
  const Vector sum = temporary();
  cc_.vpsrld(sum, value, 16);
  bit_and(sum, sum, everywhere(1));
  cc_.vpaddd(sum, sum, everywhere(0x7fff));
  cc_.vpaddd(to, sum, value);
}

template <class Vector>
void X64Vectors<Vector>::pack(Small small, const Reg& to, const std::array<Reg, 2>& parts) {
  const bool is_bf16 = small == Small::Bf16 || small == Small::Bf16x2;
  std::array<Vector, 2> made;
  for (uint32_t part = 0; part < (is_pair(small) ? 2 : 1); ++part) {
    const Vector value = v(parts[part]), nan = temporary();
    made[part] = temporary();
    constant(nan, is_bf16 ? 0x7fff0000u : 0x7fffffffu, 4);
    choose(kUnordered, Number::F32, value, value, made[part], value, nan);
    is_bf16 ? round_to_bf16(made[part], made[part])
            : (void)cc_.vcvtps2ph(lower(made[part]), made[part], 0);
  }
  switch (small) {
    case Small::F16:
      cc_.vpmovzxwd(v(to), lower(made[0]));
      return;
    case Small::F16x2:
      join_halves(v(to), made[0], lower(made[1]));
      return;
    case Small::Bf16x2:
      bit_and(made[1], made[1], everywhere(0xffff0000u));
      cc_.vpsrld(made[0], made[0], 16);
      bit_or(v(to), made[0], made[1]);
      return;
    default:
      cc_.vpsrld(v(to), made[0], 16);
  }
}

}  // namespace kiln::engine
