// SPDX-License-Identifier: Apache-2.0
// How do vectors of x86-64 compute with lanes of 32 bits and with integers? The definitions of
// vectors.h that only vectors.cpp includes.
#pragma once

#include "engine/compile/x64/vectors.h"

namespace kiln::engine {

template <class Vector>
bool X64Vectors<Vector>::unary_integer(Does does, Number type, const Vector& to, const Vector& a) {
  if (does == Does::Absolute && type == Number::S32) {
    cc_.vpabsd(to, a);
    return true;
  }
  if (does != Does::Negate) return false;
  const Vector zero = temporary();
  constant(zero, 0, 4);
  bytes_of(type) == 8 ? cc_.vpsubq(to, zero, a) : cc_.vpsubd(to, zero, a);
  return true;
}

template <class Vector>
bool X64Vectors<Vector>::unary(Does does, Number type, Reg to, Reg a) {
  const Vector d = v(to), s = v(a);
  if (does == Does::Not) {
    bit_xor(d, s, everywhere(0xffffffffu));
    return true;
  }
  if (type == Number::F64) return unary_double(does, d, s);
  if (type != Number::F32) return unary_integer(does, type, d, s);
  switch (does) {
    case Does::PowerOfTwo:
      power_of_two(d, s);
      return true;
    case Does::Negate:
      cc_.vxorps(d, s, everywhere(0x80000000u));
      return true;
    case Does::Absolute:
      cc_.vandps(d, s, everywhere(0x7fffffffu));
      return true;
    case Does::Root:
      cc_.vsqrtps(d, s);
      return true;
    case Does::Saturate: {
      // If one operand is a NaN or both are zeros, the result is the second operand.
      const Vector above = temporary(), zero = temporary();
      constant(zero, 0, 4);
      cc_.vmaxps(above, s, zero);
      cc_.vminps(d, above, everywhere(0x3f800000u));
      return true;
    }
    case Does::Nearest:
      round_vector(d, s, kToNearest);
      return true;
    case Does::Floor:
      round_vector(d, s, kDown);
      return true;
    case Does::Ceiling:
      round_vector(d, s, kUp);
      return true;
    case Does::Truncate:
      round_vector(d, s, kToZero);
      return true;
    case Does::Reciprocal: {
      const Vector one = temporary();
      constant(one, 0x3f800000u, 4);
      cc_.vdivps(d, one, s);
      return true;
    }
    case Does::ReciprocalRoot:
      reciprocal_root(d, s);
      return true;
    default:
      return false;
  }
}

// Replaces subnormal values by a zero of the same sign.
template <class Vector>
void X64Vectors<Vector>::flush(const Reg& to, const Reg& a) {
  const Vector size = temporary(), sign = temporary();
  cc_.vandps(size, v(a), everywhere(0x7fffffffu));
  cc_.vandps(sign, v(a), everywhere(0x80000000u));
  choose(x86::VCmpImm::kLT_OQ, Number::F32, size, everywhere(0x00800000u), v(to), v(a), sign);
}

// The operand that is not a NaN; -0 is less than 0. If one operand is a NaN or both are zeros, an
// instruction returns the second operand.
template <class Vector>
void X64Vectors<Vector>::pick_floats(bool least, Number type, const Vector& to, const Vector& a,
                                     const Vector& b) {
  const Vector one = temporary(), other = temporary();
  if (type == Number::F64) {
    least ? cc_.vminpd(one, a, b) : cc_.vmaxpd(one, a, b);
    least ? cc_.vminpd(other, b, a) : cc_.vmaxpd(other, b, a);
    least ? cc_.vorpd(one, one, other) : cc_.vandpd(one, one, other);
  } else {
    least ? cc_.vminps(one, a, b) : cc_.vmaxps(one, a, b);
    least ? cc_.vminps(other, b, a) : cc_.vmaxps(other, b, a);
    least ? cc_.vorps(one, one, other) : cc_.vandps(one, one, other);
  }
  choose(kUnordered, type, a, a, one, one, b);
  choose(kUnordered, type, b, b, to, one, a);
}

template <class Vector>
void X64Vectors<Vector>::pick(bool least, Number type, const Vector& to, const Vector& a,
                              const Vector& b) {
  if (type == Number::F32) return pick_floats(least, type, to, a, b);
  if (bytes_of(type) == 8) return pick_wide(least, type, to, a, b);
  if (least)
    is_signed(type) ? cc_.vpminsd(to, a, b) : cc_.vpminud(to, a, b);
  else
    is_signed(type) ? cc_.vpmaxsd(to, a, b) : cc_.vpmaxud(to, a, b);
}

template <class Vector>
bool X64Vectors<Vector>::binary(Does does, Number type, Reg to, Reg a, Reg b) {
  const Vector d = v(to), l = v(a), r = v(b);
  const bool wide = bytes_of(type) == 8, real = type == Number::F32;
  if (type == Number::F64) return binary_double(does, d, l, r);
  switch (does) {
    case Does::And:
      bit_and(d, l, r);
      return true;
    case Does::Or:
      bit_or(d, l, r);
      return true;
    case Does::Xor:
      bit_xor(d, l, r);
      return true;
    case Does::Add:
      real ? cc_.vaddps(d, l, r) : wide ? cc_.vpaddq(d, l, r) : cc_.vpaddd(d, l, r);
      return true;
    case Does::Sub:
      real ? cc_.vsubps(d, l, r) : wide ? cc_.vpsubq(d, l, r) : cc_.vpsubd(d, l, r);
      return true;
    case Does::Mul:
      if (wide)
        multiply_wide(d, l, r);
      else
        real ? cc_.vmulps(d, l, r) : cc_.vpmulld(d, l, r);
      return true;
    case Does::Divide:
    case Does::Remainder:
      if (wide) return false;
      real ? (void)cc_.vdivps(d, l, r) : divide_integers(does, type, d, l, r);
      return true;
    case Does::DivideNearly:
      divide_nearly(d, l, r);
      return true;
    case Does::MulHigh:
      if (wide) return false;
      multiply_high(type, d, l, r);
      return true;
    case Does::Min:
    case Does::Max:
      pick(does == Does::Min, type, d, l, r);
      return true;
    // A shift by the width or more leaves nothing, or copies of the sign, as in PTX.
    case Does::ShiftLeft:
      if (wide || real) return false;
      cc_.vpsllvd(d, l, r);
      return true;
    case Does::ShiftRight:
      if (wide || real) return false;
      is_signed(type) ? cc_.vpsravd(d, l, r) : cc_.vpsrlvd(d, l, r);
      return true;
    default:
      return false;
  }
}

// Joins the upper halves of the products of the even lanes and of the odd ones.
template <class Vector>
void X64Vectors<Vector>::multiply_high(Number type, const Vector& to, const Vector& a,
                                       const Vector& b) {
  const Vector even = temporary(), odd = temporary(), other = temporary();
  const auto multiply = [&](const Vector& d, const Vector& l, const Vector& r) {
    is_signed(type) ? cc_.vpmuldq(d, l, r) : cc_.vpmuludq(d, l, r);
  };
  multiply(even, a, b);
  cc_.vpsrlq(even, even, 32);
  cc_.vpsrlq(odd, a, 32);
  cc_.vpsrlq(other, b, 32);
  multiply(odd, odd, other);
  join(to, even, odd, kIs512 ? 0xaaaa : 0xaa);
}

// If the divisor is above 2^126, a GPU multiplies by its reciprocal, which is flushed to 0.
template <class Vector>
void X64Vectors<Vector>::divide_nearly(const Vector& to, const Vector& a, const Vector& b) {
  const Vector product = temporary(), quotient = temporary(), size = temporary();
  cc_.vandps(product, b, everywhere(0x80000000u));
  cc_.vmulps(product, product, a);
  cc_.vdivps(quotient, a, b);
  cc_.vandps(size, b, everywhere(0x7fffffffu));
  choose(x86::VCmpImm::kGT_OQ, Number::F32, size, everywhere(0x7e800000u), to, quotient, product);
}

template <class Vector>
bool X64Vectors<Vector>::ternary(Does does, Number type, Reg to, Reg a, Reg b, Reg c) {
  if (does == Does::FunnelLeft || does == Does::FunnelRight) {
    // A shift by 32, which is the rest of a shift by 0, gives 0.
    const bool right = does == Does::FunnelRight;
    const Vector by = temporary(), rest = temporary(), low = temporary(), high = temporary();
    bit_and(by, v(c), everywhere(31));
    constant(rest, 32, 4);
    cc_.vpsubd(rest, rest, by);
    cc_.vpsrlvd(low, v(a), right ? by : rest);
    cc_.vpsllvd(high, v(b), right ? rest : by);
    bit_or(v(to), low, high);
    return true;
  }
  if (does != Does::Mad) return false;
  const bool wide = bytes_of(type) == 8;
  if (type != Number::F64 && type != Number::F32) {
    const Vector product = temporary();
    wide ? multiply_wide(product, v(a), v(b)) : (void)cc_.vpmulld(product, v(a), v(b));
    wide ? cc_.vpaddq(v(to), product, v(c)) : cc_.vpaddd(v(to), product, v(c));
    return true;
  }
  // The first operand is read and written.
  if (to.id() == a.id() || to.id() == b.id()) {
    const Reg& other = to.id() == a.id() ? b : a;
    wide ? cc_.vfmadd213pd(v(to), v(other), v(c)) : cc_.vfmadd213ps(v(to), v(other), v(c));
  } else {
    copy(to, c);
    wide ? cc_.vfmadd231pd(v(to), v(a), v(b)) : cc_.vfmadd231ps(v(to), v(a), v(b));
  }
  return true;
}

template <class Vector>
bool X64Vectors<Vector>::shift(Does does, Number type, Reg to, Reg a, uint32_t by) {
  const Vector d = v(to), s = v(a);
  const bool wide = bytes_of(type) == 8;
  if (by == 0)
    copy(to, a);
  else if (does == Does::ShiftLeft)
    wide ? cc_.vpsllq(d, s, by) : cc_.vpslld(d, s, by);
  else if (is_signed(type))
    wide ? move_right_wide(d, s, by) : (void)cc_.vpsrad(d, s, by);
  else
    wide ? cc_.vpsrlq(d, s, by) : cc_.vpsrld(d, s, by);
  return true;
}

template <class Vector>
void X64Vectors<Vector>::funnel(Does does, Reg to, Reg low, Reg high, uint32_t by) {
  const bool right = does == Does::FunnelRight;
  const Vector upper = temporary(), under = temporary();
  cc_.vpslld(upper, v(high), right ? 32 - by : by);
  cc_.vpsrld(under, v(low), right ? by : 32 - by);
  bit_or(v(to), upper, under);
}

}  // namespace kiln::engine
