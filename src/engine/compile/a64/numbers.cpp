// SPDX-License-Identifier: Apache-2.0
// How does aarch64 compute what takes several instructions: powers of two, quotients and products
// of integers, and floats of 16 bits?
#if defined(__aarch64__)
#include "engine/compile/a64/target.h"
#include "engine/numbers/exponential.h"

namespace kiln::engine {

// The polynomial of numbers/exponential.h, in f64 for each half. The addition to the exponent may
// turn a NaN into a number, so NaNs are put back at the end.
void A64::power_of_two(const Vec& to, const Vec& a) {
  using Both = std::array<Vec, 2>;
  const auto new_both = [&] { return Both{temporary(), temporary()}; };
  Vec limited = temporary(), round = temporary(), factor = temporary();
  const Both whole = new_both(), r = new_both(), r2 = new_both(), high = new_both(),
             low = new_both(), more = new_both();
  const auto make = [&](const Both& sum, uint32_t first) {
    constant(factor, std::bit_cast<uint64_t>(kPowerTerms[first]), 8);
    for (uint32_t h = 0; h < 2; ++h) {
      constant(sum[h], std::bit_cast<uint64_t>(kPowerTerms[first + 1]), 8);
      cc_.fmla(sum[h].d2(), r[h].d2(), factor.d2());
    }
  };
  // sum += left * right
  const auto add_product = [&](const Both& sum, const Both& left, const Both& right) {
    for (uint32_t h = 0; h < 2; ++h) cc_.fmla(sum[h].d2(), left[h].d2(), right[h].d2());
  };
  constant(limited, 0xc3480000u, 4);  // -200
  cc_.fmaxnm(limited.s4(), v(a).s4(), limited.s4());
  constant(round, 0x43480000u, 4);
  cc_.fminnm(limited.s4(), limited.s4(), round.s4());
  constant(round, 0x4338000000000000u, 8);  // 1.5 * 2^52: adding it rounds to an integer
  cc_.fcvtl(low[0].d2(), limited.s2());
  cc_.fcvtl2(low[1].d2(), limited.s4());
  for (uint32_t h = 0; h < 2; ++h) {
    cc_.fadd(whole[h].d2(), low[h].d2(), round.d2());
    cc_.fsub(r[h].d2(), whole[h].d2(), round.d2());
    cc_.fsub(r[h].d2(), low[h].d2(), r[h].d2());
    cc_.fmul(r2[h].d2(), r[h].d2(), r[h].d2());
  }
  make(high, 0);
  make(more, 2);
  add_product(more, high, r2);
  make(high, 4);
  make(low, 6);
  add_product(low, high, r2);
  for (uint32_t h = 0; h < 2; ++h) cc_.fmul(high[h].d2(), r2[h].d2(), r2[h].d2());
  add_product(low, more, high);
  make(more, 8);
  add_product(more, low, r2);
  for (uint32_t h = 0; h < 2; ++h) {
    cc_.shl(whole[h].d2(), whole[h].d2(), 52);
    cc_.add(more[h].d2(), more[h].d2(), whole[h].d2());
  }
  cc_.fcvtn(limited.s2(), more[0].d2());
  cc_.fcvtn2(limited.s4(), more[1].d2());
  Vec is_number = temporary();
  cc_.fcmeq(is_number.s4(), v(a).s4(), v(a).s4());
  cc_.bif(limited.b16(), v(a).b16(), is_number.b16());
  copy(to, limited);
}

bool A64::unary_bits(Does does, const Vec& to, const Vec& a) {
  Vec bytes = temporary();
  switch (does) {
    case Does::PopCount:
      cc_.cnt(bytes.b16(), a.b16());
      cc_.uaddlp(bytes.h8(), bytes.b16());
      cc_.uaddlp(to.s4(), bytes.h8());
      return true;
    case Does::LeadingZeros:
      cc_.clz(to.s4(), a.s4());
      return true;
    case Does::ReverseBits:
      cc_.rbit(bytes.b16(), a.b16());
      cc_.rev32(to.b16(), bytes.b16());
      return true;
    default:
      return false;
  }
}

// A GPU multiplies by the reciprocal, which is flushed to 0 if the divisor is above 2^126.
void A64::divide_nearly(const Vec& to, const Vec& a, const Vec& b) {
  Vec product = temporary(), quotient = temporary(), large = temporary();
  constant(product, 0x80000000u, 4);
  cc_.and_(product.b16(), product.b16(), b.b16());
  cc_.fmul(product.s4(), product.s4(), a.s4());
  cc_.fdiv(quotient.s4(), a.s4(), b.s4());
  constant(large, 0x7e800000u, 4);
  cc_.facgt(large.s4(), b.s4(), large.s4());
  cc_.bsl(large.b16(), product.b16(), quotient.b16());
  copy(to, large);
}

// 32-bit integers, in f64 as in numbers/integer_operations.h.
void A64::divide_integers(Does does, Number type, const Reg& to, const Reg& a, const Reg& b) {
  std::array<Vec, 2> halves{temporary(), temporary()};
  Vec by = temporary(), none = temporary();
  for (uint32_t h = 0; h < 2; ++h) {
    to_double(type, h == 1, halves[h], a);
    to_double(type, h == 1, by, b);
    cc_.fdiv(halves[h].d2(), halves[h].d2(), by.d2());
    cc_.fcvtzs(halves[h].d2(), halves[h].d2());
  }
  narrow(by, halves[0], halves[1]);
  cc_.cmeq(none.s4(), v(b).s4(), 0);
  if (does == Does::Remainder) {
    cc_.mul(by.s4(), by.s4(), v(b).s4());
    cc_.sub(by.s4(), v(a).s4(), by.s4());
  }
  cc_.orr(v(to).b16(), by.b16(), none.b16());
}

void A64::multiply_high(Number type, const Vec& to, const Vec& a, const Vec& b) {
  Vec low = temporary(), high = temporary();
  mul_wide(is_signed(type), false, low, a, b);
  mul_wide(is_signed(type), true, high, a, b);
  cc_.uzp2(to.s4(), low.s4(), high.s4());
}

// The low 64 bits: adds the products of halves that contribute to them.
void A64::multiply_wide(const Vec& to, const Vec& a, const Vec& b) {
  Vec across = temporary(), low = temporary(), other = temporary();
  cc_.rev64(across.s4(), b.s4());
  cc_.mul(across.s4(), across.s4(), a.s4());
  cc_.uaddlp(across.d2(), across.s4());
  cc_.shl(across.d2(), across.d2(), 32);
  cc_.xtn(low.s2(), a.d2());
  cc_.xtn(other.s2(), b.d2());
  cc_.umull(low.d2(), low.s2(), other.s2());
  cc_.add(to.d2(), low.d2(), across.d2());
}

// Of values below the smallest normal magnitude, only the sign remains.
void A64::flush(const Reg& to, const Reg& a) {
  Vec least = temporary(), sign = temporary();
  constant(least, 0x00800000u, 4);
  constant(sign, 0x80000000u, 4);
  cc_.facgt(least.s4(), least.s4(), v(a).s4());
  cc_.bic(least.b16(), least.b16(), sign.b16());
  cc_.bic(v(to).b16(), v(a).b16(), least.b16());
}

// The numbers of <cfenv> are the bits of the register.
void A64::round(int64_t how) {
  constexpr auto kRegister = a64::Predicate::SysReg::kFPCR;
  const Gp mode = temporary_word(), bits = temporary_word();
  cc_.mrs(mode, kRegister);
  cc_.str(mode.w(), at(pass(), static_cast<int64_t>(offsetof(Pass, rounded)), 4));
  cc_.mov(bits, uint64_t{0xc00000});
  cc_.bic(mode, mode, bits);
  cc_.mov(bits, static_cast<uint64_t>(how));
  cc_.orr(mode, mode, bits);
  cc_.msr(kRegister, mode);
}

void A64::round_as_before() {
  const Gp mode = temporary_word();
  cc_.ldr(mode.w(), at(pass(), static_cast<int64_t>(offsetof(Pass, rounded)), 4));
  cc_.msr(a64::Predicate::SysReg::kFPCR, mode);
}

// A pair of f16 becomes two vectors with the halves of the register, so neighbours stay
// neighbours. A bf16 is the upper half of an f32.
void A64::unpack(Small small, uint32_t part, const Reg& to, const Reg& a) {
  switch (small) {
    case Small::F16: {
      Vec halves = temporary();
      cc_.xtn(halves.h4(), v(a).s4());
      cc_.fcvtl(v(to).s4(), halves.h4());
      return;
    }
    case Small::F16x2:
      part == 1 ? cc_.fcvtl2(v(to).s4(), v(a).h8()) : cc_.fcvtl(v(to).s4(), v(a).h4());
      return;
    case Small::Bf16x2:
      if (part == 1) {
        Vec upper = temporary();
        constant(upper, 0xffff0000u, 4);
        cc_.and_(v(to).b16(), v(a).b16(), upper.b16());
        return;
      }
      [[fallthrough]];
    default:
      cc_.shl(v(to).s4(), v(a).s4(), 16);
  }
}

// Rounds to nearest even, in the upper half. A NaN must have zeros in the lower half, so that it
// stays one.
Vec A64::round_to_bf16(const Vec& value) {
  Vec sum = temporary(), bits = temporary();
  cc_.ushr(sum.s4(), value.s4(), 16);
  constant(bits, 1, 4);
  cc_.and_(sum.b16(), sum.b16(), bits.b16());
  constant(bits, 0x7fff, 4);
  cc_.add(sum.s4(), sum.s4(), bits.s4());
  cc_.add(sum.s4(), sum.s4(), value.s4());
  return sum;
}

void A64::pack(Small small, const Reg& to, const std::array<Reg, 2>& parts) {
  const bool is_bf16 = small == Small::Bf16 || small == Small::Bf16x2;
  std::array<Vec, 2> made;
  for (uint32_t part = 0; part < (is_pair(small) ? 2 : 1); ++part) {
    const Vec value = v(parts[part]);
    Vec is_number = temporary(), nan = temporary();
    cc_.fcmeq(is_number.s4(), value.s4(), value.s4());
    constant(nan, is_bf16 ? 0x7fff0000u : 0x7fffffffu, 4);
    cc_.bsl(is_number.b16(), value.b16(), nan.b16());
    made[part] = is_bf16 ? round_to_bf16(is_number) : is_number;
  }
  switch (small) {
    case Small::F16:
      cc_.fcvtn(made[0].h4(), made[0].s4());
      cc_.ushll(v(to).s4(), made[0].h4(), 0);
      return;
    case Small::F16x2:
      cc_.fcvtn(made[0].h4(), made[0].s4());
      cc_.fcvtn2(made[0].h8(), made[1].s4());
      copy(to, made[0]);
      return;
    case Small::Bf16x2: {
      Vec upper = temporary();
      constant(upper, 0xffff0000u, 4);
      cc_.and_(made[1].b16(), made[1].b16(), upper.b16());
      cc_.ushr(made[0].s4(), made[0].s4(), 16);
      cc_.orr(v(to).b16(), made[0].b16(), made[1].b16());
      return;
    }
    default:
      cc_.ushr(v(to).s4(), made[0].s4(), 16);
  }
}

}  // namespace kiln::engine
#endif
