// SPDX-License-Identifier: Apache-2.0
// How does aarch64 compute on general registers, and on f64 in vectors? A NaN that an instruction
// creates is positive; a GPU's is negative (canonicalize_wide).
#if defined(__aarch64__)
#include "engine/compile/a64/target.h"

namespace kiln::engine {

bool A64::word_unary(Does does, Number type, Reg to, Reg a) {
  if (does == Does::Not)
    cc_.mvn(sized(to, type), sized(a, type));
  else if (does == Does::Negate)
    cc_.neg(sized(to, type), sized(a, type));
  else
    return false;
  return true;
}

bool A64::word_binary(Does does, Number type, Reg to, Reg a, Reg b) {
  const Gp d = sized(to, type), l = sized(a, type), r = sized(b, type);
  const uint32_t bits = bytes_of(type) * 8;
  switch (does) {
    case Does::Add:
      cc_.add(d, l, r);
      return true;
    case Does::Sub:
      cc_.sub(d, l, r);
      return true;
    case Does::Mul:
      cc_.mul(d, l, r);
      return true;
    case Does::And:
      cc_.and_(d, l, r);
      return true;
    case Does::Or:
      cc_.orr(d, l, r);
      return true;
    case Does::Xor:
      cc_.eor(d, l, r);
      return true;
    case Does::Min:
    case Does::Max: {
      const bool least = does == Does::Min;
      cc_.cmp(l, r);
      cc_.csel(d, l, r,
               is_signed(type) ? (least ? Cond::kLT : Cond::kGT) : (least ? Cond::kLO : Cond::kHI));
      return true;
    }
    case Does::ShiftLeft:
    case Does::ShiftRight: {
      // The CPU takes the count modulo the width.
      const bool sign = does == Does::ShiftRight && is_signed(type);
      Gp count = temporary_word(), most = temporary_word(), shifted = temporary_word();
      cc_.mov(most.w(), bits - 1);
      cc_.cmp(w(b), most.w());
      if (sign) cc_.csel(count.w(), w(b), most.w(), Cond::kLS);
      const Gp by = bits == 64 ? (sign ? count : x(b)) : (sign ? count.w() : w(b));
      const Gp out = bits == 64 ? shifted : shifted.w();
      does == Does::ShiftLeft ? cc_.lsl(out, l, by)
      : sign                  ? cc_.asr(out, l, by)
                              : cc_.lsr(out, l, by);
      if (!sign) {
        const Gp none = bits == 64 ? most : most.w();
        cc_.cmp(w(b), bits - 1);
        cc_.mov(none, 0);
        cc_.csel(d, out, none, Cond::kLS);
      } else {
        cc_.mov(d, out);
      }
      return true;
    }
    default:
      return false;
  }
}

void A64::word_compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) {
  const bool sign = is_signed(type);
  Cond when = Cond::kEQ;
  switch (comparison) {
    case Comparison::Ne:
    case Comparison::Neu:
      when = Cond::kNE;
      break;
    case Comparison::Lt:
    case Comparison::Ltu:
      when = sign ? Cond::kLT : Cond::kLO;
      break;
    case Comparison::Le:
    case Comparison::Leu:
      when = sign ? Cond::kLE : Cond::kLS;
      break;
    case Comparison::Gt:
    case Comparison::Gtu:
      when = sign ? Cond::kGT : Cond::kHI;
      break;
    case Comparison::Ge:
    case Comparison::Geu:
      when = sign ? Cond::kGE : Cond::kHS;
      break;
    default:
      break;
  }
  cc_.cmp(sized(a, type), sized(b, type));
  cc_.csetm(x(to), when);  // all ones, as predicates in words are
}

void A64::widen_neighbours(const Vec& to, const Vec& a, Number from) {
  const bool is_signed_value = from == Number::S8 || from == Number::S16;
  Vec halves = a;
  if (bytes_of(from) == 1) {
    is_signed_value ? cc_.sshll(to.h8(), a.b8(), 0) : cc_.ushll(to.h8(), a.b8(), 0);
    halves = to;
  }
  is_signed_value ? cc_.sshll(to.s4(), halves.h4(), 0) : cc_.ushll(to.s4(), halves.h4(), 0);
}

void A64::load_small(const Reg& to, const Reg& base, int64_t offset, Number from) {
  const Vec d = v(to);
  bytes_of(from) == 1 ? cc_.ldr(d.s(), at(base, offset, 4)) : cc_.ldr(d.d(), at(base, offset, 8));
  widen_neighbours(d, d, from);
}

void A64::store_small(const Reg& from, const Reg& base, int64_t offset, uint32_t bytes) {
  Vec low = vector().as<Vec>();
  cc_.xtn(low.h4(), v(from).s4());
  if (bytes == 2) {
    cc_.str(low.d(), at(base, offset, 8));
    return;
  }
  cc_.xtn(low.b8(), low.h8());
  cc_.str(low.s(), at(base, offset, 4));
}

void A64::load_small_word(const Reg& to, const Reg& base, int64_t offset, Number from,
                          uint32_t bytes) {
  const Mem from_place = at(base, offset, bytes_of(from));
  switch (from) {
    case Number::U8:
      cc_.ldrb(w(to), from_place);
      break;
    case Number::S8:
      cc_.ldrsb(w(to), from_place);
      break;
    case Number::S16:
      cc_.ldrsh(w(to), from_place);
      break;
    default:
      cc_.ldrh(w(to), from_place);
  }
  const bool is_signed_value = from == Number::S8 || from == Number::S16;
  if (bytes == 2 && is_signed_value) cc_.and_(w(to), w(to), 0xffff);
}

bool A64::unary_wide(Does does, const Vec& to, const Vec& a) {
  switch (does) {
    case Does::Negate:
      cc_.fneg(to.d2(), a.d2());
      return true;
    case Does::Absolute:
      cc_.fabs(to.d2(), a.d2());
      return true;
    case Does::Root:
      cc_.fsqrt(to.d2(), a.d2());
      return true;
    case Does::Reciprocal: {
      Vec one = temporary();
      constant(one, 0x3ff0000000000000u, 8);
      cc_.fdiv(to.d2(), one.d2(), a.d2());
      return true;
    }
    default:
      return false;
  }
}

bool A64::binary_wide(Does does, const Vec& to, const Vec& a, const Vec& b) {
  switch (does) {
    case Does::Add:
      cc_.fadd(to.d2(), a.d2(), b.d2());
      return true;
    case Does::Sub:
      cc_.fsub(to.d2(), a.d2(), b.d2());
      return true;
    case Does::Mul:
      cc_.fmul(to.d2(), a.d2(), b.d2());
      return true;
    case Does::Divide:
      cc_.fdiv(to.d2(), a.d2(), b.d2());
      return true;
    case Does::Min:
      cc_.fminnm(to.d2(), a.d2(), b.d2());
      return true;
    case Does::Max:
      cc_.fmaxnm(to.d2(), a.d2(), b.d2());
      return true;
    default:
      return false;
  }
}

bool A64::from_double(Number to_type, Reg to, Reg low, Reg high) {
  Vec first = temporary(), second = temporary();
  if (to_type == Number::F32) {
    cc_.fcvtn(first.s2(), v(low).d2());
    cc_.fcvtn2(first.s4(), v(high).d2());
    cc_.mov(v(to).b16(), first.b16());
    return true;
  }
  if (to_type != Number::S32) return false;
  // Both conversions saturate. FCVTZS turns a NaN into 0; the result has to be the minimum.
  const auto whole = [&](const Vec& d, const Reg& from) {
    Vec is_number = temporary(), least = temporary();
    constant(least, 0xffffffff80000000u, 8);
    cc_.fcvtzs(d.d2(), v(from).d2());
    cc_.fcmeq(is_number.d2(), v(from).d2(), v(from).d2());
    cc_.bif(d.b16(), least.b16(), is_number.b16());
  };
  whole(first, low);
  whole(second, high);
  cc_.sqxtn(first.s2(), first.d2());
  cc_.sqxtn2(first.s4(), second.d2());
  cc_.mov(v(to).b16(), first.b16());
  return true;
}

bool A64::to_double(Number from, bool high, Reg to, Reg a) {
  if (from == Number::F32) {
    high ? cc_.fcvtl2(v(to).d2(), v(a).s4()) : cc_.fcvtl(v(to).d2(), v(a).s2());
    return true;
  }
  if (from != Number::S32 && from != Number::U32) return false;
  widen(from == Number::S32, high, to, a);  // exact, and so is the conversion
  from == Number::S32 ? cc_.scvtf(v(to).d2(), v(to).d2()) : cc_.ucvtf(v(to).d2(), v(to).d2());
  return true;
}

}  // namespace kiln::engine
#endif
