// SPDX-License-Identifier: Apache-2.0
// How does x86-64 do what the compiler asks? With AVX2, FMA and BMI2, the level x86-64-v3.
#if defined(__x86_64__)
#include "engine/compile/x64/target.h"

#include <cstdlib>

#include "engine/compile/x64/v4.h"

namespace kiln::engine {

bool X64::unary(Does does, Number type, Reg to, Reg a) {
  const Ymm d = v(to), s = v(a);
  if (does == Does::Not) {
    cc_.vpxor(d, s, everywhere(0xffffffffu));
    return true;
  }
  if (type == Number::F64) return unary_wide(does, d, s);
  if (does == Does::Negate && type != Number::F32) {
    Ymm zero = temporary();
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
      Ymm above = temporary(), zero = temporary();
      constant(zero, 0, 4);
      cc_.vmaxps(above, s, zero);
      cc_.vminps(d, above, everywhere(0x3f800000u));
      return true;
    }
    case Does::Nearest:
      cc_.vroundps(d, s, 8);  // 8: no exception
      return true;
    case Does::Floor:
      cc_.vroundps(d, s, 9);
      return true;
    case Does::Ceiling:
      cc_.vroundps(d, s, 10);
      return true;
    case Does::Truncate:
      cc_.vroundps(d, s, 11);
      return true;
    case Does::Reciprocal: {
      Ymm one = temporary();
      constant(one, 0x3f800000u, 4);
      cc_.vdivps(d, one, s);
      return true;
    }
    case Does::ReciprocalRoot: {
      Ymm low = temporary(), high = temporary(), one = temporary();
      constant(one, 0x3ff0000000000000u, 8);
      cc_.vextractf128(high.xmm(), s, 1);
      cc_.vcvtps2pd(low, s.xmm());
      cc_.vcvtps2pd(high, high.xmm());
      for (const Ymm& half : {low, high}) {
        cc_.vsqrtpd(half, half);
        cc_.vdivpd(half, one, half);
        cc_.vcvtpd2ps(half.xmm(), half);
      }
      cc_.vinsertf128(d, low, high.xmm(), 1);
      return true;
    }
    default:
      return false;
  }
}

// The number where the other is a NaN, and -0 as less than 0; an instruction takes the second of
// two zeros, and whatever the second is where one is a NaN.
void X64::pick(bool least, Number type, const Reg& to, const Reg& a, const Reg& b) {
  if (type != Number::F32) {
    Ymm above = temporary();
    compare(Comparison::Gt, type, above, a, b);
    least ? cc_.vblendvpd(v(to), v(a), v(b), above) : cc_.vblendvpd(v(to), v(b), v(a), above);
    return;
  }
  Ymm one = temporary(), other = temporary(), is_nan = temporary();
  const auto unordered = static_cast<int>(x86::VCmpImm::kUNORD_Q);
  if (least) {
    cc_.vminps(one, v(a), v(b));
    cc_.vminps(other, v(b), v(a));
    cc_.vorps(one, one, other);
  } else {
    cc_.vmaxps(one, v(a), v(b));
    cc_.vmaxps(other, v(b), v(a));
    cc_.vandps(one, one, other);
  }
  cc_.vcmpps(is_nan, v(a), v(a), unordered);
  cc_.vblendvps(one, one, v(b), is_nan);
  cc_.vcmpps(is_nan, v(b), v(b), unordered);
  cc_.vblendvps(v(to), one, v(a), is_nan);
}

// The low 64 bits: the products of the halves that reach them.
void X64::multiply_wide(const Ymm& to, const Ymm& a, const Ymm& b) {
  Ymm across = temporary(), other = temporary(), low = temporary();
  cc_.vpsrlq(across, a, 32);
  cc_.vpmuludq(across, across, b);
  cc_.vpsrlq(other, b, 32);
  cc_.vpmuludq(other, other, a);
  cc_.vpaddq(across, across, other);
  cc_.vpsllq(across, across, 32);
  cc_.vpmuludq(low, a, b);
  cc_.vpaddq(to, low, across);
}

void X64::compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) {
  if (type == Number::F32)
    cc_.vcmpps(v(to), v(a), v(b), static_cast<int>(float_condition(comparison)));
  else if (type == Number::F64)
    cc_.vcmppd(v(to), v(a), v(b), static_cast<int>(float_condition(comparison)));
  else
    compare_integers(comparison, type, to, a, b);
}

// There are instructions for equal ones and, with sign, for the greater: the others are made of
// these. Without sign, the top bits are inverted first.
void X64::compare_integers(Comparison comparison, Number type, const Reg& to, const Reg& a,
                           const Reg& b) {
  const bool wide = bytes_of(type) == 8;
  const x86::CondCode when = word_condition(comparison, true);
  if (when == x86::CondCode::kE || when == x86::CondCode::kNE) {
    wide ? cc_.vpcmpeqq(v(to), v(a), v(b)) : cc_.vpcmpeqd(v(to), v(a), v(b));
  } else {
    Ymm l = v(a), r = v(b);
    if (!is_signed(type)) {
      Ymm top = temporary();
      constant(top, wide ? uint64_t{1} << 63 : uint64_t{1} << 31, bytes_of(type));
      l = temporary(), r = temporary();
      cc_.vpxor(l, v(a), top);
      cc_.vpxor(r, v(b), top);
    }
    // a < b is b > a; a >= b is not (b > a).
    if (when == x86::CondCode::kL || when == x86::CondCode::kGE) std::swap(l, r);
    wide ? cc_.vpcmpgtq(v(to), l, r) : cc_.vpcmpgtd(v(to), l, r);
  }
  const bool inverse =
      when == x86::CondCode::kNE || when == x86::CondCode::kLE || when == x86::CondCode::kGE;
  if (inverse) unary(Does::Not, type, to, to);
}

bool X64::binary(Does does, Number type, Reg to, Reg a, Reg b) {
  const Ymm d = v(to), l = v(a), r = v(b);
  const bool wide = bytes_of(type) == 8, real = type == Number::F32;
  if (type == Number::F64) return binary_wide(does, d, l, r);
  switch (does) {
    case Does::And:
      cc_.vpand(d, l, r);
      return true;
    case Does::Or:
      cc_.vpor(d, l, r);
      return true;
    case Does::Xor:
      cc_.vpxor(d, l, r);
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
      real ? (void)cc_.vdivps(d, l, r) : divide_integers(does, type, to, a, b);
      return true;
    case Does::DivideNearly:
      divide_nearly(d, l, r);
      return true;
    case Does::MulHigh:
      if (wide) return false;
      multiply_high(type, d, l, r);
      return true;
    case Does::Min:
      if (real || wide)
        pick(true, type, to, a, b);
      else
        is_signed(type) ? cc_.vpminsd(d, l, r) : cc_.vpminud(d, l, r);
      return true;
    case Does::Max:
      if (real || wide)
        pick(false, type, to, a, b);
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

bool X64::ternary(Does does, Number type, Reg to, Reg a, Reg b, Reg c) {
  if (does == Does::FunnelLeft || does == Does::FunnelRight) {
    // A shift by 32, the rest of one by 0, leaves nothing.
    const bool right = does == Does::FunnelRight;
    Ymm by = temporary(), rest = temporary(), low = temporary(), high = temporary();
    cc_.vpand(by, v(c), everywhere(31));
    constant(rest, 32, 4);
    cc_.vpsubd(rest, rest, by);
    cc_.vpsrlvd(low, v(a), right ? by : rest);
    cc_.vpsllvd(high, v(b), right ? rest : by);
    cc_.vpor(v(to), low, high);
    return true;
  }
  if (does != Does::Mad) return false;
  if (type == Number::U64 || type == Number::S64) {
    Ymm product = temporary();
    multiply_wide(product, v(a), v(b));
    cc_.vpaddq(v(to), product, v(c));
    return true;
  }
  const bool wide = type == Number::F64;
  if (!wide && type != Number::F32) {
    Ymm product = temporary();
    cc_.vpmulld(product, v(a), v(b));
    cc_.vpaddd(v(to), product, v(c));
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

// There is no instruction for the sign of 64 bits.
void X64::move_right_wide(const Ymm& to, const Ymm& a, uint32_t by) {
  Ymm sign = temporary(), moved = temporary();
  constant(sign, 0, 8);
  cc_.vpcmpgtq(sign, sign, a);
  cc_.vpsllq(sign, sign, 64 - by);
  cc_.vpsrlq(moved, a, by);
  cc_.vpor(to, moved, sign);
}

bool X64::shift(Does does, Number type, Reg to, Reg a, uint32_t by) {
  const Ymm d = v(to), s = v(a);
  const bool wide = bytes_of(type) == 8;
  if (by == 0) {
    copy(to, a);
  } else if (does == Does::ShiftLeft) {
    wide ? cc_.vpsllq(d, s, by) : cc_.vpslld(d, s, by);
  } else if (is_signed(type) && wide) {
    move_right_wide(d, s, by);
  } else if (is_signed(type)) {
    cc_.vpsrad(d, s, by);
  } else {
    wide ? cc_.vpsrlq(d, s, by) : cc_.vpsrld(d, s, by);
  }
  return true;
}

bool X64::convert(Number to_type, Number from, Reg to, Reg a) {
  if (to_type == Number::F32 && from == Number::S32) {
    cc_.vcvtdq2ps(v(to), v(a));
  } else if (to_type == Number::F32 && from == Number::U32) {
    // Both halves are exact; their sum is rounded once.
    Ymm high = temporary(), low = temporary();
    cc_.vpsrld(high, v(a), 16);
    cc_.vpand(low, v(a), everywhere(0xffff));
    cc_.vcvtdq2ps(high, high);
    cc_.vcvtdq2ps(low, low);
    cc_.vfmadd132ps(high, low, everywhere(0x47800000u));  // 65536
    copy(to, high);
  } else if (to_type == Number::S32 && from == Number::F32) {
    // The instruction gives the least integer for all that has none: above the most, invert it; of
    // a NaN it is 0.
    Ymm above = temporary(), is_number = temporary(), whole = temporary();
    cc_.vcmpps(above, v(a), everywhere(0x4f000000u), static_cast<int>(x86::VCmpImm::kGE_OQ));
    cc_.vcmpps(is_number, v(a), v(a), static_cast<int>(x86::VCmpImm::kORD_Q));
    cc_.vcvttps2dq(whole, v(a));
    cc_.vpxor(whole, whole, above);
    cc_.vpand(v(to), whole, is_number);
  } else if (to_type == Number::U32 && from == Number::F32) {
    // Less 2^31 where it is no less than that; from 2^32 on the most. Of a NaN, and below 0, it is
    // 0: an instruction takes the second operand.
    Ymm value = temporary(), large = temporary(), less = temporary();
    constant(less, 0, 4);
    cc_.vmaxps(value, v(a), less);
    cc_.vcmpps(large, value, everywhere(0x4f000000u), static_cast<int>(x86::VCmpImm::kGE_OQ));
    cc_.vandps(less, large, everywhere(0x4f000000u));
    cc_.vsubps(less, value, less);
    cc_.vcvttps2dq(less, less);
    cc_.vpslld(large, large, 31);
    cc_.vpxor(less, less, large);
    cc_.vcmpps(large, value, everywhere(0x4f800000u), static_cast<int>(x86::VCmpImm::kGE_OQ));
    cc_.vpor(v(to), less, large);
  } else {
    return false;
  }
  return true;
}

void X64::widen(bool is_signed_value, bool high, Reg to, Reg a) {
  x86::Xmm half = v(a).xmm();
  if (high) {
    half = temporary().xmm();
    cc_.vextracti128(half, v(a), 1);
  }
  is_signed_value ? cc_.vpmovsxdq(v(to), half) : cc_.vpmovzxdq(v(to), half);
}

// Of the low words of 64 bits, whatever the high ones are.
void X64::mul_wide(bool is_signed_value, bool high, Reg to, Reg a, Reg b) {
  Ymm l = temporary(), r = temporary();
  widen(false, high, l, a);
  widen(false, high, r, b);
  is_signed_value ? cc_.vpmuldq(v(to), l, r) : cc_.vpmuludq(v(to), l, r);
}

uint32_t least_row_lanes() { return 8; }

namespace {

// clang 14 does not know the name of it; every CPU with AVX2 has it.
bool has_f16c() {
#if defined(__clang__)
  return true;
#else
  return __builtin_cpu_supports("f16c") != 0;
#endif
}

}  // namespace

bool has_target() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2") && has_f16c();
}

std::unique_ptr<Target> make_target(uint32_t row_lanes) {
  if (!has_target()) return nullptr;
  if (row_lanes < X64V4::kLanes) return std::make_unique<X64>();
  return std::make_unique<X64V4>();
}

}  // namespace kiln::engine

// Debian's archive for x86-64 has one object that a shared library cannot hold: it names stderr as
// programs do. Its three functions are here instead, so that the linker does not take it. What
// asmjit would print has no reader; a failed check of its own ends the process, as there.
ASMJIT_BEGIN_NAMESPACE
namespace DebugUtils {

const char* errorAsString(Error) noexcept { return "an error of asmjit"; }

void debugOutput(const char*) noexcept {}

void assertionFailed(const char*, int, const char*) noexcept { std::abort(); }

}  // namespace DebugUtils
ASMJIT_END_NAMESPACE
#endif
