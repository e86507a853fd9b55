// SPDX-License-Identifier: Apache-2.0
// How does x86-64 do what the compiler asks with AVX-512, the level x86-64-v4?
#if defined(__x86_64__)
#include "engine/compile/x64/v4.h"

namespace kiln::engine {

bool X64V4::unary(Does does, Number type, Reg to, Reg a) {
  const Zmm d = z(to), s = z(a);
  if (does == Does::Not) {
    cc_.vpxord(d, s, everywhere(0xffffffffu));
    return true;
  }
  if (type == Number::F64) return unary_wide(does, d, s);
  if (does == Does::Negate && type != Number::F32) {
    const Zmm zero = temporary();
    constant(zero, 0, 4);
    bytes_of(type) == 8 ? cc_.vpsubq(d, zero, s) : cc_.vpsubd(d, zero, s);
    return true;
  }
  if (does == Does::Absolute && type == Number::S32) {
    cc_.vpabsd(d, s);
    return true;
  }
  if (type != Number::F32) return false;
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
      // Of a NaN, and of two zeros, an instruction takes the second operand.
      const Zmm above = temporary(), zero = temporary();
      constant(zero, 0, 4);
      cc_.vmaxps(above, s, zero);
      cc_.vminps(d, above, everywhere(0x3f800000u));
      return true;
    }
    case Does::Nearest:
      cc_.vrndscaleps(d, s, 8);  // 8: no exception
      return true;
    case Does::Floor:
      cc_.vrndscaleps(d, s, 9);
      return true;
    case Does::Ceiling:
      cc_.vrndscaleps(d, s, 10);
      return true;
    case Does::Truncate:
      cc_.vrndscaleps(d, s, 11);
      return true;
    case Does::Reciprocal: {
      const Zmm one = temporary();
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

// The number where the other is a NaN, and -0 as less than 0; an instruction takes the second of
// two zeros, and whatever the second is where one is a NaN.
void X64V4::pick(bool least, Number type, const Zmm& to, const Zmm& a, const Zmm& b) {
  const Zmm one = temporary(), other = temporary();
  if (type == Number::F64) {
    least ? cc_.vminpd(one, a, b) : cc_.vmaxpd(one, a, b);
    least ? cc_.vminpd(other, b, a) : cc_.vmaxpd(other, b, a);
    least ? cc_.vorpd(one, one, other) : cc_.vandpd(one, one, other);
    cc_.vcmppd(x86::k1, a, a, kUnordered);
    cc_.k(x86::k1).vmovupd(one, b);
    cc_.vcmppd(x86::k1, b, b, kUnordered);
    cc_.k(x86::k1).vmovupd(one, a);
  } else {
    least ? cc_.vminps(one, a, b) : cc_.vmaxps(one, a, b);
    least ? cc_.vminps(other, b, a) : cc_.vmaxps(other, b, a);
    least ? cc_.vorps(one, one, other) : cc_.vandps(one, one, other);
    cc_.vcmpps(x86::k1, a, a, kUnordered);
    cc_.k(x86::k1).vmovaps(one, b);
    cc_.vcmpps(x86::k1, b, b, kUnordered);
    cc_.k(x86::k1).vmovaps(one, a);
  }
  copy(to, one);
}

bool X64V4::binary(Does does, Number type, Reg to, Reg a, Reg b) {
  const Zmm d = z(to), l = z(a), r = z(b);
  const bool wide = bytes_of(type) == 8, real = type == Number::F32;
  if (type == Number::F64) return binary_wide(does, d, l, r);
  switch (does) {
    case Does::And:
      cc_.vpandd(d, l, r);
      return true;
    case Does::Or:
      cc_.vpord(d, l, r);
      return true;
    case Does::Xor:
      cc_.vpxord(d, l, r);
      return true;
    case Does::Add:
      real ? cc_.vaddps(d, l, r) : wide ? cc_.vpaddq(d, l, r) : cc_.vpaddd(d, l, r);
      return true;
    case Does::Sub:
      real ? cc_.vsubps(d, l, r) : wide ? cc_.vpsubq(d, l, r) : cc_.vpsubd(d, l, r);
      return true;
    case Does::Mul:
      real ? cc_.vmulps(d, l, r) : wide ? cc_.vpmullq(d, l, r) : cc_.vpmulld(d, l, r);
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
      if (real)
        pick(true, type, d, l, r);
      else if (wide)
        is_signed(type) ? cc_.vpminsq(d, l, r) : cc_.vpminuq(d, l, r);
      else
        is_signed(type) ? cc_.vpminsd(d, l, r) : cc_.vpminud(d, l, r);
      return true;
    case Does::Max:
      if (real)
        pick(false, type, d, l, r);
      else if (wide)
        is_signed(type) ? cc_.vpmaxsq(d, l, r) : cc_.vpmaxuq(d, l, r);
      else
        is_signed(type) ? cc_.vpmaxsd(d, l, r) : cc_.vpmaxud(d, l, r);
      return true;
    // By the width or more: nothing is left, or copies of the sign, as in PTX.
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

bool X64V4::ternary(Does does, Number type, Reg to, Reg a, Reg b, Reg c) {
  if (does == Does::FunnelLeft || does == Does::FunnelRight) {
    // A shift by 32, the rest of one by 0, leaves nothing.
    const bool right = does == Does::FunnelRight;
    const Zmm by = temporary(), rest = temporary(), low = temporary(), high = temporary();
    cc_.vpandd(by, z(c), everywhere(31));
    constant(rest, 32, 4);
    cc_.vpsubd(rest, rest, by);
    cc_.vpsrlvd(low, z(a), right ? by : rest);
    cc_.vpsllvd(high, z(b), right ? rest : by);
    cc_.vpord(z(to), low, high);
    return true;
  }
  if (does != Does::Mad) return false;
  const bool wide = bytes_of(type) == 8;
  if (type != Number::F64 && type != Number::F32) {
    const Zmm product = temporary();
    wide ? cc_.vpmullq(product, z(a), z(b)) : cc_.vpmulld(product, z(a), z(b));
    wide ? cc_.vpaddq(z(to), product, z(c)) : cc_.vpaddd(z(to), product, z(c));
    return true;
  }
  // The first operand is read and written.
  if (to.id() == a.id() || to.id() == b.id()) {
    const Reg& other = to.id() == a.id() ? b : a;
    wide ? cc_.vfmadd213pd(z(to), z(other), z(c)) : cc_.vfmadd213ps(z(to), z(other), z(c));
  } else {
    copy(to, c);
    wide ? cc_.vfmadd231pd(z(to), z(a), z(b)) : cc_.vfmadd231ps(z(to), z(a), z(b));
  }
  return true;
}

bool X64V4::shift(Does does, Number type, Reg to, Reg a, uint32_t by) {
  const Zmm d = z(to), s = z(a);
  const bool wide = bytes_of(type) == 8;
  if (by == 0)
    copy(to, a);
  else if (does == Does::ShiftLeft)
    wide ? cc_.vpsllq(d, s, by) : cc_.vpslld(d, s, by);
  else if (is_signed(type))
    wide ? cc_.vpsraq(d, s, by) : cc_.vpsrad(d, s, by);
  else
    wide ? cc_.vpsrlq(d, s, by) : cc_.vpsrld(d, s, by);
  return true;
}

void X64V4::funnel(Does does, Reg to, Reg low, Reg high, uint32_t by) {
  const bool right = does == Does::FunnelRight;
  if (low.id() == high.id()) {  // a rotation
    cc_.vprord(z(to), z(low), right ? by : 32 - by);
    return;
  }
  const Zmm upper = temporary(), lower = temporary();
  cc_.vpslld(upper, z(high), right ? 32 - by : by);
  cc_.vpsrld(lower, z(low), right ? by : 32 - by);
  cc_.vpord(z(to), upper, lower);
}

bool X64V4::convert(Number to_type, Number from, Reg to, Reg a) {
  if (to_type == Number::F32 && from == Number::S32) {
    cc_.vcvtdq2ps(z(to), z(a));
  } else if (to_type == Number::F32 && from == Number::U32) {
    cc_.vcvtudq2ps(z(to), z(a));
  } else if (to_type == Number::S32 && from == Number::F32) {
    // The instruction gives the least integer for all that has none: above the most it is the most,
    // and of a NaN 0.
    const Zmm whole = temporary();
    cc_.vcvttps2dq(whole, z(a));
    cc_.vcmpps(x86::k1, z(a), everywhere(0x4f000000u), static_cast<int>(x86::VCmpImm::kGE_OQ));
    cc_.k(x86::k1).vbroadcastss(whole, once(0x7fffffff'7fffffffu));
    cc_.vcmpps(x86::k1, z(a), z(a), static_cast<int>(x86::VCmpImm::kORD_Q));
    cc_.k(x86::k1).z().vmovaps(z(to), whole);
  } else if (to_type == Number::U32 && from == Number::F32) {
    // It gives the most for all that has none. Of a NaN, and below 0, it is 0: an instruction takes
    // the second operand.
    const Zmm value = temporary(), zero = temporary();
    constant(zero, 0, 4);
    cc_.vmaxps(value, z(a), zero);
    cc_.vcvttps2udq(z(to), value);
  } else {
    return false;
  }
  return true;
}

namespace {

// The operand of VPCMPD and its like.
uint32_t integer_condition(Comparison comparison) {
  switch (word_condition(comparison, true)) {
    case x86::CondCode::kNE:
      return 4;
    case x86::CondCode::kL:
      return 1;
    case x86::CondCode::kLE:
      return 2;
    case x86::CondCode::kG:
      return 6;
    case x86::CondCode::kGE:
      return 5;
    default:
      return 0;
  }
}

}  // namespace

void X64V4::compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) {
  const bool wide = bytes_of(type) == 8;
  if (type == Number::F32) {
    cc_.vcmpps(x86::k1, z(a), z(b), static_cast<int>(float_condition(comparison)));
  } else if (type == Number::F64) {
    cc_.vcmppd(x86::k1, z(a), z(b), static_cast<int>(float_condition(comparison)));
  } else {
    const uint32_t when = integer_condition(comparison);
    if (is_signed(type))
      wide ? cc_.vpcmpq(x86::k1, z(a), z(b), when) : cc_.vpcmpd(x86::k1, z(a), z(b), when);
    else
      wide ? cc_.vpcmpuq(x86::k1, z(a), z(b), when) : cc_.vpcmpud(x86::k1, z(a), z(b), when);
  }
  wide ? cc_.vpmovm2q(z(to), x86::k1) : cc_.vpmovm2d(z(to), x86::k1);
}

void X64V4::widen(bool is_signed_value, bool high, Reg to, Reg a) {
  x86::Ymm half = z(a).ymm();
  if (high) {
    half = temporary().ymm();
    cc_.vextracti64x4(half, z(a), 1);
  }
  is_signed_value ? cc_.vpmovsxdq(z(to), half) : cc_.vpmovzxdq(z(to), half);
}

// Of the low words of 64 bits, whatever the high ones are.
void X64V4::mul_wide(bool is_signed_value, bool high, Reg to, Reg a, Reg b) {
  const Zmm l = temporary(), r = temporary();
  widen(false, high, l, a);
  widen(false, high, r, b);
  is_signed_value ? cc_.vpmuldq(z(to), l, r) : cc_.vpmuludq(z(to), l, r);
}

}  // namespace kiln::engine
#endif
