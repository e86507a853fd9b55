// SPDX-License-Identifier: Apache-2.0
// How does x86-64 compute with f64, and what it computes by way of it; and with floats of 16 bits?
// A NaN that an instruction makes in f64 has the bits of a GPU's.
#if defined(__x86_64__)
#include "engine/compile/x64/target.h"
#include "engine/numbers/exponential.h"

namespace kiln::engine {
namespace {

constexpr auto kUnordered = static_cast<int>(x86::VCmpImm::kUNORD_Q);
constexpr uint64_t kSign = uint64_t{1} << 63;
constexpr uint64_t kRoundWide = 0x4338000000000000;  // 1.5 * 2^52: what is added to it is whole

}  // namespace

bool X64::unary_wide(Does does, const Ymm& to, const Ymm& a) {
  switch (does) {
    case Does::Negate: {  // -0 less the number: a NaN keeps its sign
      Ymm zero = temporary();
      constant(zero, kSign, 8);
      cc_.vsubpd(to, zero, a);
      return true;
    }
    case Does::Absolute: {
      Ymm is_nan = temporary(), plain = temporary();
      cc_.vcmppd(is_nan, a, a, kUnordered);
      cc_.vandpd(plain, a, everywhere_wide(~kSign));
      cc_.vblendvpd(to, plain, a, is_nan);
      return true;
    }
    case Does::Root:
      cc_.vsqrtpd(to, a);
      return true;
    case Does::Reciprocal: {
      Ymm one = temporary();
      constant(one, 0x3ff0000000000000u, 8);
      cc_.vdivpd(to, one, a);
      return true;
    }
    default:
      return false;
  }
}

bool X64::binary_wide(Does does, const Ymm& to, const Ymm& a, const Ymm& b) {
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
    case Does::Max: {  // as pick() does it
      const bool least = does == Does::Min;
      Ymm one = temporary(), other = temporary(), is_nan = temporary();
      least ? cc_.vminpd(one, a, b) : cc_.vmaxpd(one, a, b);
      least ? cc_.vminpd(other, b, a) : cc_.vmaxpd(other, b, a);
      least ? cc_.vorpd(one, one, other) : cc_.vandpd(one, one, other);
      cc_.vcmppd(is_nan, a, a, kUnordered);
      cc_.vblendvpd(one, one, b, is_nan);
      cc_.vcmppd(is_nan, b, b, kUnordered);
      cc_.vblendvpd(to, one, a, is_nan);
      return true;
    }
    default:
      return false;
  }
}

bool X64::from_double(Number to_type, Reg to, Reg low, Reg high) {
  Ymm first = temporary(), second = temporary();
  if (to_type == Number::F32) {
    cc_.vcvtpd2ps(first.xmm(), v(low));
    cc_.vcvtpd2ps(second.xmm(), v(high));
  } else if (to_type == Number::S32) {
    // Of what has no integer, the instruction gives the least: too large ones are made smaller
    // first. Where one operand is a NaN, the result is the second.
    Ymm most = temporary();
    constant(most, 0x41dfffffffc00000u, 8);  // 2^31 - 1
    cc_.vminpd(first, most, v(low));
    cc_.vminpd(second, most, v(high));
    cc_.vcvttpd2dq(first.xmm(), first);
    cc_.vcvttpd2dq(second.xmm(), second);
  } else {
    return false;
  }
  cc_.vinserti128(v(to), first, second.xmm(), 1);
  return true;
}

bool X64::to_double(Number from, bool high, Reg to, Reg a) {
  Ymm half = temporary();
  if (high)
    cc_.vextracti128(half.xmm(), v(a), 1);
  else
    cc_.vmovaps(half, v(a));
  if (from == Number::F32) {
    cc_.vcvtps2pd(v(to), half.xmm());
  } else if (from == Number::S32) {
    cc_.vcvtdq2pd(v(to), half.xmm());
  } else if (from == Number::U32) {
    // Less 2^31 with sign, and back: both are exact.
    cc_.vpxor(half, half, everywhere(0x80000000u));
    cc_.vcvtdq2pd(v(to), half.xmm());
    cc_.vaddpd(v(to), v(to), everywhere_wide(0x41e0000000000000u));
  } else {
    return false;
  }
  return true;
}

// As numbers/exponential.h, whose terms these are, of four lanes.
void X64::power_of_two_wide(const Ymm& x) {
  Ymm whole = temporary(), r = temporary(), r2 = temporary(), high = temporary(),
      more = temporary();
  constant(r, kRoundWide, 8);
  cc_.vaddpd(whole, x, r);
  cc_.vsubpd(r, whole, r);
  cc_.vsubpd(r, x, r);
  const auto terms = [&](const Ymm& to, size_t first) {
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

// Of a NaN what is added to its exponent may be a number: it is put in its place again.
void X64::power_of_two(const Ymm& to, const Ymm& a) {
  Ymm low = temporary(), high = temporary(), is_nan = temporary();
  constant(low, 0xc3480000u, 4);  // -200; of a NaN an instruction gives the second operand
  cc_.vmaxps(low, low, a);
  constant(high, 0x43480000u, 4);
  cc_.vminps(low, high, low);
  cc_.vextractf128(high.xmm(), low, 1);
  cc_.vcvtps2pd(low, low.xmm());
  cc_.vcvtps2pd(high, high.xmm());
  cc_.vcmpps(is_nan, a, a, kUnordered);
  for (const Ymm& half : {low, high}) {
    const Mark mark = this->mark();
    power_of_two_wide(half);
    cc_.vcvtpd2ps(half.xmm(), half);
    release(mark);
  }
  cc_.vinsertf128(low, low, high.xmm(), 1);
  cc_.vblendvps(to, low, a, is_nan);
}

// Integers of 32 bits: as numbers/integer_operations.h says.
void X64::divide_integers(Does does, Number type, const Reg& to, const Reg& a, const Reg& b) {
  std::array<Ymm, 2> halves{temporary(), temporary()};
  Ymm by = temporary(), none = temporary();
  for (uint32_t h = 0; h < 2; ++h) {
    const Mark mark = this->mark();
    to_double(type, h == 1, halves[h], a);
    to_double(type, h == 1, by, b);
    cc_.vdivpd(halves[h], halves[h], by);
    cc_.vroundpd(halves[h], halves[h], 11);
    cc_.vaddpd(halves[h], halves[h], everywhere_wide(kRoundWide));
    release(mark);
  }
  narrow(by, halves[0], halves[1]);
  constant(none, 0, 4);
  cc_.vpcmpeqd(none, v(b), none);
  if (does == Does::Remainder) {
    cc_.vpmulld(by, by, v(b));
    cc_.vpsubd(by, v(a), by);
  }
  cc_.vpor(v(to), by, none);
}

// The products of even lanes and of odd ones, whose upper halves are put together.
void X64::multiply_high(Number type, const Ymm& to, const Ymm& a, const Ymm& b) {
  Ymm even = temporary(), odd = temporary(), other = temporary();
  const auto multiply = [&](const Ymm& d, const Ymm& l, const Ymm& r) {
    is_signed(type) ? cc_.vpmuldq(d, l, r) : cc_.vpmuludq(d, l, r);
  };
  multiply(even, a, b);
  cc_.vpsrlq(even, even, 32);
  cc_.vpsrlq(odd, a, 32);
  cc_.vpsrlq(other, b, 32);
  multiply(odd, odd, other);
  cc_.vpblendd(to, even, odd, 0xaa);
}

// By what is above 2^126 a GPU multiplies with its reciprocal, which is flushed to 0.
void X64::divide_nearly(const Ymm& to, const Ymm& a, const Ymm& b) {
  Ymm product = temporary(), quotient = temporary(), large = temporary();
  cc_.vandps(product, b, everywhere(0x80000000u));
  cc_.vmulps(product, product, a);
  cc_.vdivps(quotient, a, b);
  cc_.vandps(large, b, everywhere(0x7fffffffu));
  cc_.vcmpps(large, large, everywhere(0x7e800000u), static_cast<int>(x86::VCmpImm::kGT_OQ));
  cc_.vblendvps(to, quotient, product, large);
}

// Of a pair of f16 a vector is that of 128 bits: neighbours stay so. bf16 is the upper half of f32.
void X64::unpack(Small small, uint32_t part, const Reg& to, const Reg& a) {
  Ymm half = temporary();
  switch (small) {
    case Small::F16:
      cc_.vpackusdw(half, v(a), v(a));
      cc_.vpermq(half, half, 0x08);
      cc_.vcvtph2ps(v(to), half.xmm());
      return;
    case Small::F16x2:
      if (part == 1) cc_.vextracti128(half.xmm(), v(a), 1);
      cc_.vcvtph2ps(v(to), part == 1 ? half.xmm() : v(a).xmm());
      return;
    case Small::Bf16x2:
      if (part == 1) {
        cc_.vpand(v(to), v(a), everywhere(0xffff0000u));
        return;
      }
      [[fallthrough]];
    default:
      cc_.vpslld(v(to), v(a), 16);
  }
}

// To nearest even, in the upper half; a NaN has nothing in the lower one.
Ymm X64::round_to_bf16(const Ymm& value) {
  Ymm sum = temporary();
  cc_.vpsrld(sum, value, 16);
  cc_.vpand(sum, sum, everywhere(1));
  cc_.vpaddd(sum, sum, everywhere(0x7fff));
  cc_.vpaddd(sum, sum, value);
  return sum;
}

void X64::pack(Small small, const Reg& to, const std::array<Reg, 2>& parts) {
  std::array<Ymm, 2> made;
  for (uint32_t part = 0; part < (is_pair(small) ? 2 : 1); ++part) {
    const bool is_bf16 = small == Small::Bf16 || small == Small::Bf16x2;
    const Ymm value = v(parts[part]);
    Ymm is_nan = temporary(), nan = temporary();
    cc_.vcmpps(is_nan, value, value, kUnordered);
    constant(nan, is_bf16 ? 0x7fff0000u : 0x7fffffffu, 4);
    cc_.vblendvps(nan, value, nan, is_nan);
    made[part] = is_bf16 ? round_to_bf16(nan) : temporary();
    if (!is_bf16) cc_.vcvtps2ph(made[part].xmm(), nan, 0);
  }
  switch (small) {
    case Small::F16:
      cc_.vpmovzxwd(v(to), made[0].xmm());
      return;
    case Small::F16x2:
      cc_.vinserti128(v(to), made[0], made[1].xmm(), 1);
      return;
    case Small::Bf16x2:
      cc_.vpand(made[1], made[1], everywhere(0xffff0000u));
      cc_.vpsrld(made[0], made[0], 16);
      cc_.vpor(v(to), made[0], made[1]);
      return;
    default:
      cc_.vpsrld(v(to), made[0], 16);
  }
}

}  // namespace kiln::engine
#endif
