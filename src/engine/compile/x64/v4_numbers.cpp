// SPDX-License-Identifier: Apache-2.0
// How does x86-64-v4 compute with f64, and what it computes by way of it; and with floats of 16
// bits? As x64/wide.cpp, whose results these are, with the instructions that AVX-512 adds.
#if defined(__x86_64__)
#include "engine/compile/x64/v4.h"
#include "engine/numbers/exponential.h"

namespace kiln::engine {
namespace {

constexpr auto kOrdered = static_cast<int>(x86::VCmpImm::kORD_Q);
constexpr uint64_t kSignWide = uint64_t{1} << 63;
constexpr uint64_t kWholeWide = 0x4338000000000000;  // 1.5 * 2^52: what is added to it is whole

}  // namespace

bool X64V4::unary_wide(Does does, const Zmm& to, const Zmm& a) {
  switch (does) {
    case Does::Negate: {  // -0 less the number: a NaN keeps its sign
      const Zmm zero = temporary();
      constant(zero, kSignWide, 8);
      cc_.vsubpd(to, zero, a);
      return true;
    }
    case Does::Absolute: {
      const Zmm number = temporary();
      copy(number, a);
      cc_.vcmppd(x86::k1, a, a, kOrdered);
      cc_.k(x86::k1).vandpd(number, a, everywhere_wide(~kSignWide));
      copy(to, number);
      return true;
    }
    case Does::Root:
      cc_.vsqrtpd(to, a);
      return true;
    case Does::Reciprocal: {
      const Zmm one = temporary();
      constant(one, 0x3ff0000000000000u, 8);
      cc_.vdivpd(to, one, a);
      return true;
    }
    default:
      return false;
  }
}

bool X64V4::binary_wide(Does does, const Zmm& to, const Zmm& a, const Zmm& b) {
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
      pick(does == Does::Min, Number::F64, to, a, b);
      return true;
    default:
      return false;
  }
}

bool X64V4::from_double(Number to_type, Reg to, Reg low, Reg high) {
  const Zmm first = temporary(), second = temporary();
  if (to_type == Number::F32) {
    cc_.vcvtpd2ps(first.ymm(), z(low));
    cc_.vcvtpd2ps(second.ymm(), z(high));
  } else if (to_type == Number::S32) {
    // Too large numbers are made smaller first. Where one operand is a NaN, the result is the
    // second, and the instruction gives the least integer.
    const Zmm most = temporary();
    constant(most, 0x41dfffffffc00000u, 8);  // 2^31 - 1
    cc_.vminpd(first, most, z(low));
    cc_.vminpd(second, most, z(high));
    cc_.vcvttpd2dq(first.ymm(), first);
    cc_.vcvttpd2dq(second.ymm(), second);
  } else {
    return false;
  }
  cc_.vinserti64x4(z(to), first, second.ymm(), 1);
  return true;
}

bool X64V4::to_double(Number from, bool high, Reg to, Reg a) {
  x86::Ymm half = z(a).ymm();
  if (high) {
    half = temporary().ymm();
    cc_.vextracti64x4(half, z(a), 1);
  }
  if (from == Number::F32)
    cc_.vcvtps2pd(z(to), half);
  else if (from == Number::S32)
    cc_.vcvtdq2pd(z(to), half);
  else if (from == Number::U32)
    cc_.vcvtudq2pd(z(to), half);
  else
    return false;
  return true;
}

// As numbers/exponential.h, whose terms these are, of eight lanes.
void X64V4::power_of_two_wide(const Zmm& x) {
  const Zmm whole = temporary(), r = temporary(), r2 = temporary(), high = temporary(),
            more = temporary();
  constant(r, kWholeWide, 8);
  cc_.vaddpd(whole, x, r);
  cc_.vsubpd(r, whole, r);
  cc_.vsubpd(r, x, r);
  const auto terms = [&](const Zmm& to, size_t first) {
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
void X64V4::power_of_two(const Zmm& to, const Zmm& a) {
  const Zmm low = temporary(), high = temporary();
  constant(low, 0xc3480000u, 4);  // -200; of a NaN an instruction gives the second operand
  cc_.vmaxps(low, low, a);
  constant(high, 0x43480000u, 4);
  cc_.vminps(low, high, low);
  cc_.vextractf64x4(high.ymm(), low, 1);
  cc_.vcvtps2pd(low, low.ymm());
  cc_.vcvtps2pd(high, high.ymm());
  for (const Zmm& half : {low, high}) {
    const Mark mark = this->mark();
    power_of_two_wide(half);
    cc_.vcvtpd2ps(half.ymm(), half);
    release(mark);
  }
  cc_.vinsertf64x4(low, low, high.ymm(), 1);
  cc_.vcmpps(x86::k1, a, a, kUnordered);
  cc_.k(x86::k1).vmovaps(low, a);
  copy(to, low);
}

// In f64, rounded to f32 at the end, as the interpreter does it by a root and a division, which
// take three times as long: of the 2^24 numbers of f32 that are no powers of four apart, one has a
// result within 1.4 units of the last place of f64 from where f32 rounds the other way, and no
// other one within 11. An estimate of 14 bits, a step of the third order and one of the second are
// within 1. Where no number comes out, the estimate is the result: infinities, zeros and NaNs.
void X64V4::reciprocal_root(const Zmm& to, const Zmm& a) {
  const Zmm low = temporary(), high = temporary(), one = temporary(), half = temporary();
  constant(one, 0x3ff0000000000000u, 8);
  constant(half, 0x3fe0000000000000u, 8);
  cc_.vextractf64x4(high.ymm(), a, 1);
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
    cc_.vcmppd(x86::k1, root, root, kUnordered);
    cc_.k(x86::k1).vmovupd(root, estimate);
    cc_.vcvtpd2ps(x.ymm(), root);
    release(mark);
  }
  cc_.vinsertf64x4(to, low, high.ymm(), 1);
}

// Integers of 32 bits: as numbers/integer_operations.h says.
void X64V4::divide_integers(Does does, Number type, const Zmm& to, const Zmm& a, const Zmm& b) {
  const std::array<Zmm, 2> halves{temporary(), temporary()};
  const Zmm by = temporary(), quotient = temporary();
  for (uint32_t h = 0; h < 2; ++h) {
    const Mark mark = this->mark();
    to_double(type, h == 1, halves[h], a);
    to_double(type, h == 1, by, b);
    cc_.vdivpd(halves[h], halves[h], by);
    cc_.vrndscalepd(halves[h], halves[h], 11);
    cc_.vaddpd(halves[h], halves[h], everywhere_wide(kWholeWide));
    release(mark);
  }
  narrow(quotient, halves[0], halves[1]);
  if (does == Does::Remainder) {
    cc_.vpmulld(quotient, quotient, b);
    cc_.vpsubd(quotient, a, quotient);
  }
  constant(by, 0, 4);
  cc_.vpcmpd(x86::k1, b, by, 0);
  cc_.vpmovm2d(by, x86::k1);
  cc_.vpord(to, quotient, by);
}

// The products of even lanes and of odd ones, whose upper halves are put together.
void X64V4::multiply_high(Number type, const Zmm& to, const Zmm& a, const Zmm& b) {
  const Zmm even = temporary(), odd = temporary(), other = temporary();
  const auto multiply = [&](const Zmm& d, const Zmm& l, const Zmm& r) {
    is_signed(type) ? cc_.vpmuldq(d, l, r) : cc_.vpmuludq(d, l, r);
  };
  multiply(even, a, b);
  cc_.vpsrlq(even, even, 32);
  cc_.vpsrlq(odd, a, 32);
  cc_.vpsrlq(other, b, 32);
  multiply(odd, odd, other);
  cc_.vpternlogd(even, odd, lanes_in_memory(0xaaaa, 4), kOfMask);
  copy(to, even);
}

// By what is above 2^126 a GPU multiplies with its reciprocal, which is flushed to 0.
void X64V4::divide_nearly(const Zmm& to, const Zmm& a, const Zmm& b) {
  const Zmm quotient = temporary(), sign = temporary(), size = temporary(), most = temporary();
  cc_.vandps(sign, b, everywhere(0x80000000u));
  cc_.vandps(size, b, everywhere(0x7fffffffu));
  cc_.vdivps(quotient, a, b);
  constant(most, 0x7e800000u, 4);
  cc_.vcmpps(x86::k1, size, most, static_cast<int>(x86::VCmpImm::kGT_OQ));
  cc_.k(x86::k1).vmulps(quotient, sign, a);
  copy(to, quotient);
}

// Of a magnitude below the least normal number the sign alone is left.
void X64V4::flush(const Reg& to, const Reg& a) {
  const Zmm size = temporary();
  cc_.vandps(size, z(a), everywhere(0x7fffffffu));
  cc_.vcmpps(x86::k1, size, everywhere(0x00800000u), static_cast<int>(x86::VCmpImm::kLT_OQ));
  copy(to, a);
  cc_.k(x86::k1).vandps(z(to), z(to), everywhere(0x80000000u));
}

// Of a pair of f16 a vector is that of 256 bits: neighbours stay so. bf16 is the upper half of f32.
void X64V4::unpack(Small small, uint32_t part, const Reg& to, const Reg& a) {
  const Zmm half = temporary();
  switch (small) {
    case Small::F16:
      cc_.vpmovdw(half.ymm(), z(a));
      cc_.vcvtph2ps(z(to), half.ymm());
      return;
    case Small::F16x2:
      if (part == 1) cc_.vextracti64x4(half.ymm(), z(a), 1);
      cc_.vcvtph2ps(z(to), part == 1 ? half.ymm() : z(a).ymm());
      return;
    case Small::Bf16x2:
      if (part == 1) {
        cc_.vpandd(z(to), z(a), everywhere(0xffff0000u));
        return;
      }
      [[fallthrough]];
    default:
      cc_.vpslld(z(to), z(a), 16);
  }
}

// To nearest even, in the upper half; a NaN has nothing in the lower one.
void X64V4::nearest_even_bf16(const Zmm& to, const Zmm& value) {
  const Zmm sum = temporary();
  cc_.vpsrld(sum, value, 16);
  cc_.vpandd(sum, sum, everywhere(1));
  cc_.vpaddd(sum, sum, everywhere(0x7fff));
  cc_.vpaddd(to, sum, value);
}

void X64V4::pack(Small small, const Reg& to, const std::array<Reg, 2>& parts) {
  const bool is_bf16 = small == Small::Bf16 || small == Small::Bf16x2;
  std::array<Zmm, 2> made;
  for (uint32_t part = 0; part < (is_pair(small) ? 2 : 1); ++part) {
    const Zmm value = z(parts[part]);
    made[part] = temporary();
    copy(made[part], value);
    cc_.vcmpps(x86::k1, value, value, kUnordered);
    cc_.k(x86::k1).vbroadcastss(
        made[part], once((is_bf16 ? 0x7fff0000u : 0x7fffffffu) * uint64_t{0x100000001}));
    is_bf16 ? nearest_even_bf16(made[part], made[part])
            : (void)cc_.vcvtps2ph(made[part].ymm(), made[part], 0);
  }
  switch (small) {
    case Small::F16:
      cc_.vpmovzxwd(z(to), made[0].ymm());
      return;
    case Small::F16x2:
      cc_.vinserti64x4(z(to), made[0], made[1].ymm(), 1);
      return;
    case Small::Bf16x2:
      cc_.vpandd(made[1], made[1], everywhere(0xffff0000u));
      cc_.vpsrld(made[0], made[0], 16);
      cc_.vpord(z(to), made[0], made[1]);
      return;
    default:
      cc_.vpsrld(z(to), made[0], 16);
  }
}

}  // namespace kiln::engine
#endif
