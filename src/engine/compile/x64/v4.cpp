// SPDX-License-Identifier: Apache-2.0
// How does x86-64-v4 compute, where AVX-512 has instructions that AVX2 lacks?
#if defined(__x86_64__)
#include "engine/compile/x64/v4.h"

namespace kiln::engine {
namespace {

// The condition operand of VPCMPD and similar instructions.
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
    cc_.vcmpps(x86::k1, v(a), v(b), static_cast<int>(float_condition(comparison)));
  } else if (type == Number::F64) {
    cc_.vcmppd(x86::k1, v(a), v(b), static_cast<int>(float_condition(comparison)));
  } else {
    const uint32_t when = integer_condition(comparison);
    if (is_signed(type))
      wide ? cc_.vpcmpq(x86::k1, v(a), v(b), when) : cc_.vpcmpd(x86::k1, v(a), v(b), when);
    else
      wide ? cc_.vpcmpuq(x86::k1, v(a), v(b), when) : cc_.vpcmpud(x86::k1, v(a), v(b), when);
  }
  wide ? cc_.vpmovm2q(v(to), x86::k1) : cc_.vpmovm2d(v(to), x86::k1);
}

void X64V4::pick_wide(bool least, Number type, const Zmm& to, const Zmm& a, const Zmm& b) {
  if (least)
    is_signed(type) ? cc_.vpminsq(to, a, b) : cc_.vpminuq(to, a, b);
  else
    is_signed(type) ? cc_.vpmaxsq(to, a, b) : cc_.vpmaxuq(to, a, b);
}

// Computed in f64, and rounded to f32 at the end. The interpreter uses a root and a division, which
// take three times as long. Of the 2^24 f32 numbers between two powers of four, one has a result
// within 1.4 units in the last place of f64 of the point where f32 rounds the other way, and no
// other has one within 11. An estimate of 14 bits, one step of the third order and one of the
// second stay within 1. If the steps give a NaN, the estimate is the result: for infinities, zeros
// and NaNs.
void X64V4::reciprocal_root(const Zmm& to, const Zmm& a) {
  const Zmm low = temporary(), high = temporary(), one = temporary(), half = temporary();
  constant(one, 0x3ff0000000000000u, 8);
  constant(half, 0x3fe0000000000000u, 8);
  extract_upper(high.ymm(), a);
  cc_.vcvtps2pd(low, a.ymm());
  cc_.vcvtps2pd(high, high.ymm());
  for (const Zmm& x : {low, high}) {
    const Mark mark = this->mark();
    const Zmm estimate = temporary(), error = temporary(), root = temporary();
    cc_.vrsqrt14pd(estimate, x);
    cc_.vmulpd(error, x, estimate);
    cc_.vfnmadd213pd(error, estimate, one);
    constant(root, 0x3fd8000000000000u, 8);  // 3/8
    cc_.vfmadd213pd(root, error, half);
    cc_.vmulpd(root, root, error);
    cc_.vfmadd213pd(root, estimate, estimate);
    cc_.vmulpd(error, x, root);
    cc_.vfnmadd213pd(error, root, one);
    cc_.vmulpd(error, error, half);
    cc_.vfmadd213pd(root, error, root);
    choose(kUnordered, Number::F64, root, root, root, root, estimate);
    cc_.vcvtpd2ps(x.ymm(), root);
    release(mark);
  }
  join_halves(to, low, high.ymm());
}

bool X64V4::convert(Number to_type, Number from, Reg to, Reg a) {
  if (to_type == Number::F32 && from == Number::S32) {
    cc_.vcvtdq2ps(v(to), v(a));
  } else if (to_type == Number::F32 && from == Number::U32) {
    cc_.vcvtudq2ps(v(to), v(a));
  } else if (to_type == Number::S32 && from == Number::F32) {
    // The instruction returns the smallest integer for every number that does not fit. If the
    // number is too large, the result is the largest integer; a NaN becomes 0.
    const Zmm whole = temporary();
    cc_.vcvttps2dq(whole, v(a));
    choose(x86::VCmpImm::kGE_OQ, Number::F32, v(a), everywhere(0x4f000000u), whole, whole,
           everywhere(0x7fffffffu));
    cc_.vcmpps(x86::k1, v(a), v(a), static_cast<int>(kOrdered));
    cc_.k(x86::k1).z().vmovaps(v(to), whole);
  } else if (to_type == Number::U32 && from == Number::F32) {
    // The instruction returns the largest integer for every number that does not fit. A NaN and
    // numbers below 0 become 0: if one operand of VMAXPS is a NaN, the result is the second one.
    const Zmm value = temporary(), zero = temporary();
    constant(zero, 0, 4);
    cc_.vmaxps(value, v(a), zero);
    cc_.vcvttps2udq(v(to), value);
  } else {
    return false;
  }
  return true;
}

void X64V4::funnel(Does does, Reg to, Reg low, Reg high, uint32_t by) {
  if (low.id() != high.id()) return X64Vectors::funnel(does, to, low, high, by);
  cc_.vprord(v(to), v(low), does == Does::FunnelRight ? by : 32 - by);
}

}  // namespace kiln::engine
#endif
