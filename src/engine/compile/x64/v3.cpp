// SPDX-License-Identifier: Apache-2.0
// How does x86-64-v3 do with AVX2, FMA and F16C what AVX-512 has instructions for?
#if defined(__x86_64__)
#include "engine/compile/x64/v3.h"

#include <utility>

namespace kiln::engine {

void X64V3::compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) {
  if (type == Number::F32)
    cc_.vcmpps(v(to), v(a), v(b), static_cast<int>(float_condition(comparison)));
  else if (type == Number::F64)
    cc_.vcmppd(v(to), v(a), v(b), static_cast<int>(float_condition(comparison)));
  else
    compare_integers(comparison, type, v(to), v(a), v(b));
}

// There are instructions for "equal" and for signed "greater"; the other comparisons are made from
// these. For unsigned numbers, the top bits are inverted first.
void X64V3::compare_integers(Comparison comparison, Number type, const Ymm& to, const Ymm& a,
                             const Ymm& b) {
  const bool wide = bytes_of(type) == 8;
  const x86::CondCode when = word_condition(comparison, true);
  if (when == x86::CondCode::kE || when == x86::CondCode::kNE) {
    wide ? cc_.vpcmpeqq(to, a, b) : cc_.vpcmpeqd(to, a, b);
  } else {
    Ymm l = a, r = b;
    if (!is_signed(type)) {
      const Ymm top = temporary();
      constant(top, wide ? uint64_t{1} << 63 : uint64_t{1} << 31, bytes_of(type));
      l = temporary(), r = temporary();
      cc_.vpxor(l, a, top);
      cc_.vpxor(r, b, top);
    }
    // a < b is b > a; a >= b is not (b > a).
    if (when == x86::CondCode::kL || when == x86::CondCode::kGE) std::swap(l, r);
    wide ? cc_.vpcmpgtq(to, l, r) : cc_.vpcmpgtd(to, l, r);
  }
  const bool inverse =
      when == x86::CondCode::kNE || when == x86::CondCode::kLE || when == x86::CondCode::kGE;
  if (inverse) unary(Does::Not, type, to, to);
}

void X64V3::pick_wide(bool least, Number type, const Ymm& to, const Ymm& a, const Ymm& b) {
  const Ymm above = temporary();
  compare_integers(Comparison::Gt, type, above, a, b);
  least ? cc_.vblendvpd(to, a, b, above) : cc_.vblendvpd(to, b, a, above);
}

// The low 64 bits: the sum of the products of halves that contribute to them.
void X64V3::multiply_wide(const Ymm& to, const Ymm& a, const Ymm& b) {
  const Ymm across = temporary(), other = temporary(), low = temporary();
  cc_.vpsrlq(across, a, 32);
  cc_.vpmuludq(across, across, b);
  cc_.vpsrlq(other, b, 32);
  cc_.vpmuludq(other, other, a);
  cc_.vpaddq(across, across, other);
  cc_.vpsllq(across, across, 32);
  cc_.vpmuludq(low, a, b);
  cc_.vpaddq(to, low, across);
}

void X64V3::move_right_wide(const Ymm& to, const Ymm& a, uint32_t by) {
  const Ymm sign = temporary(), moved = temporary();
  constant(sign, 0, 8);
  cc_.vpcmpgtq(sign, sign, a);
  cc_.vpsllq(sign, sign, 64 - by);
  cc_.vpsrlq(moved, a, by);
  cc_.vpor(to, moved, sign);
}

// Computed in f64, and rounded to f32 at the end.
void X64V3::reciprocal_root(const Ymm& to, const Ymm& a) {
  const Ymm low = temporary(), high = temporary(), one = temporary();
  constant(one, 0x3ff0000000000000u, 8);
  extract_upper(high.xmm(), a);
  cc_.vcvtps2pd(low, a.xmm());
  cc_.vcvtps2pd(high, high.xmm());
  for (const Ymm& half : {low, high}) {
    cc_.vsqrtpd(half, half);
    cc_.vdivpd(half, one, half);
    cc_.vcvtpd2ps(half.xmm(), half);
  }
  join_halves(to, low, high.xmm());
}

// Subtracts 2^31, converts as signed, and adds 2^31 again. Both steps are exact.
void X64V3::unsigned_to_double(const Ymm& to, const Ymm& a, bool high) {
  const Ymm moved = temporary();
  if (high) extract_upper(moved.xmm(), a);
  cc_.vpxor(moved, high ? moved : a, everywhere(0x80000000u));
  cc_.vcvtdq2pd(to, moved.xmm());
  cc_.vaddpd(to, to, everywhere_wide(0x41e0000000000000u));
}

bool X64V3::convert(Number to_type, Number from, Reg to, Reg a) {
  if (to_type == Number::F32 && from == Number::S32) {
    cc_.vcvtdq2ps(v(to), v(a));
  } else if (to_type == Number::F32 && from == Number::U32) {
    // Both halves are exact; their sum is rounded once.
    const Ymm high = temporary(), low = temporary();
    cc_.vpsrld(high, v(a), 16);
    cc_.vpand(low, v(a), everywhere(0xffff));
    cc_.vcvtdq2ps(high, high);
    cc_.vcvtdq2ps(low, low);
    cc_.vfmadd132ps(high, low, everywhere(0x47800000u));  // 65536
    copy(to, high);
  } else if (to_type == Number::S32 && from == Number::F32) {
    // The instruction returns the smallest integer for every number that does not fit. If the
    // number is too large, that is inverted; a NaN becomes 0.
    const Ymm above = temporary(), is_number = temporary(), whole = temporary();
    cc_.vcmpps(above, v(a), everywhere(0x4f000000u), static_cast<int>(x86::VCmpImm::kGE_OQ));
    cc_.vcmpps(is_number, v(a), v(a), static_cast<int>(kOrdered));
    cc_.vcvttps2dq(whole, v(a));
    cc_.vpxor(whole, whole, above);
    cc_.vpand(v(to), whole, is_number);
  } else if (to_type == Number::U32 && from == Number::F32) {
    // Converts as signed, after subtracting 2^31 from numbers that are at least that large. From
    // 2^32 on the result is the largest integer. A NaN and numbers below 0 become 0: if one operand
    // of VMAXPS is a NaN, the result is the second one.
    const Ymm value = temporary(), large = temporary(), less = temporary();
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

}  // namespace kiln::engine
#endif
