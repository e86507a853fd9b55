// SPDX-License-Identifier: Apache-2.0
// How does aarch64 do what the compiler asks? With NEON, which every such CPU has.
#if defined(__aarch64__)
#include "engine/compile/a64/target.h"

namespace kiln::engine {

void A64::any_and_differ(Reg any, Reg differ, const List<Reg>& masks) {
  Vec some = temporary(), every = temporary();
  cc_.mov(some.b16(), v(masks[0]).b16());
  cc_.mov(every.b16(), v(masks[0]).b16());
  for (size_t i = 1; i < masks.size(); ++i) {
    cc_.orr(some.b16(), some.b16(), v(masks[i]).b16());
    cc_.and_(every.b16(), every.b16(), v(masks[i]).b16());
  }
  cc_.umaxv(some.s(), some.s4());
  cc_.uminv(every.s(), every.s4());
  Gp all = temporary_word();
  cc_.umov(w(any), some.s(0));
  cc_.umov(all.w(), every.s(0));
  cc_.eor(x(differ), x(any), all);
}

bool A64::unary(Does does, Number type, Reg to, Reg a) {
  const Vec d = v(to), s = v(a);
  if (does == Does::Not) {
    cc_.not_(d.b16(), s.b16());
    return true;
  }
  if (type == Number::F64) return unary_wide(does, d, s);
  if (does == Does::Negate && type != Number::F32) {
    bytes_of(type) == 8 ? cc_.neg(d.d2(), s.d2()) : cc_.neg(d.s4(), s.s4());
    return true;
  }
  if (does == Does::Absolute && type == Number::S32) {
    cc_.abs(d.s4(), s.s4());
    return true;
  }
  if (is_on_bits(does)) return unary_bits(does, d, s);
  if (type != Number::F32) return false;
  switch (does) {
    case Does::PowerOfTwo:
      power_of_two(d, s);
      return true;
    case Does::Negate:
      cc_.fneg(d.s4(), s.s4());
      return true;
    case Does::Absolute:
      cc_.fabs(d.s4(), s.s4());
      return true;
    case Does::Root:
      cc_.fsqrt(d.s4(), s.s4());
      return true;
    case Does::Saturate: {
      // The minimum of the value and 1 if it is above 0, which a NaN is not; otherwise 0.
      Vec above = temporary(), one = temporary();
      constant(one, 0x3f800000u, 4);
      cc_.fcmgt(above.s4(), s.s4(), 0);
      cc_.fminnm(one.s4(), s.s4(), one.s4());
      cc_.and_(d.b16(), above.b16(), one.b16());
      return true;
    }
    case Does::Nearest:
      cc_.frintn(d.s4(), s.s4());
      return true;
    case Does::Truncate:
      cc_.frintz(d.s4(), s.s4());
      return true;
    case Does::Floor:
      cc_.frintm(d.s4(), s.s4());
      return true;
    case Does::Ceiling:
      cc_.frintp(d.s4(), s.s4());
      return true;
    case Does::Reciprocal: {
      Vec one = temporary();
      constant(one, 0x3f800000u, 4);
      cc_.fdiv(d.s4(), one.s4(), s.s4());
      return true;
    }
    case Does::ReciprocalRoot: {
      Vec low = temporary(), high = temporary(), one = temporary();
      constant(one, 0x3ff0000000000000u, 8);
      cc_.fcvtl2(high.d2(), s.s4());
      cc_.fcvtl(low.d2(), s.s2());
      cc_.fsqrt(high.d2(), high.d2());
      cc_.fsqrt(low.d2(), low.d2());
      cc_.fdiv(high.d2(), one.d2(), high.d2());
      cc_.fdiv(low.d2(), one.d2(), low.d2());
      cc_.fcvtn(low.s2(), low.d2());
      cc_.fcvtn2(low.s4(), high.d2());
      cc_.mov(d.b16(), low.b16());
      return true;
    }
    default:
      return false;
  }
}

bool A64::binary_real(Does does, const Vec& d, const Vec& l, const Vec& r) {
  switch (does) {
    case Does::Add:
      cc_.fadd(d.s4(), l.s4(), r.s4());
      return true;
    case Does::Sub:
      cc_.fsub(d.s4(), l.s4(), r.s4());
      return true;
    case Does::Mul:
      cc_.fmul(d.s4(), l.s4(), r.s4());
      return true;
    case Does::Divide:
      cc_.fdiv(d.s4(), l.s4(), r.s4());
      return true;
    case Does::Min:
      cc_.fminnm(d.s4(), l.s4(), r.s4());
      return true;
    case Does::Max:
      cc_.fmaxnm(d.s4(), l.s4(), r.s4());
      return true;
    case Does::DivideNearly:
      divide_nearly(d, l, r);
      return true;
    default:
      return false;
  }
}

bool A64::binary(Does does, Number type, Reg to, Reg a, Reg b) {
  const Vec d = v(to), l = v(a), r = v(b);
  const bool wide = bytes_of(type) == 8;
  switch (does) {
    case Does::And:
      cc_.and_(d.b16(), l.b16(), r.b16());
      return true;
    case Does::Or:
      cc_.orr(d.b16(), l.b16(), r.b16());
      return true;
    case Does::Xor:
      cc_.eor(d.b16(), l.b16(), r.b16());
      return true;
    default:
      break;
  }
  if (type == Number::F64) return binary_wide(does, d, l, r);
  if (type == Number::F32) return binary_real(does, d, l, r);
  switch (does) {
    case Does::Add:
      wide ? cc_.add(d.d2(), l.d2(), r.d2()) : cc_.add(d.s4(), l.s4(), r.s4());
      return true;
    case Does::Sub:
      wide ? cc_.sub(d.d2(), l.d2(), r.d2()) : cc_.sub(d.s4(), l.s4(), r.s4());
      return true;
    case Does::Mul:
      wide ? multiply_wide(d, l, r) : static_cast<void>(cc_.mul(d.s4(), l.s4(), r.s4()));
      return true;
    case Does::MulHigh:
      if (wide) return false;
      multiply_high(type, d, l, r);
      return true;
    case Does::Divide:
    case Does::Remainder:
      if (wide) return false;
      divide_integers(does, type, to, a, b);
      return true;
    case Does::Min:
    case Does::Max: {
      const bool least = does == Does::Min;
      if (wide) {
        Vec above = temporary();
        is_above(type, above, l, r);
        select(to, above, least ? b : a, least ? a : b);
      } else if (is_signed(type)) {
        least ? cc_.smin(d.s4(), l.s4(), r.s4()) : cc_.smax(d.s4(), l.s4(), r.s4());
      } else {
        least ? cc_.umin(d.s4(), l.s4(), r.s4()) : cc_.umax(d.s4(), l.s4(), r.s4());
      }
      return true;
    }
    case Does::ShiftLeft:
    case Does::ShiftRight: {
      if (wide) return false;
      // SSHL and USHL shift to the left by the signed low byte of each count.
      Vec count = temporary(), most = temporary();
      constant(most, does == Does::ShiftRight && is_signed(type) ? 31 : 32, 4);
      cc_.umin(count.s4(), r.s4(), most.s4());
      if (does == Does::ShiftRight) cc_.neg(count.s4(), count.s4());
      does == Does::ShiftRight&& is_signed(type) ? cc_.sshl(d.s4(), l.s4(), count.s4())
                                                 : cc_.ushl(d.s4(), l.s4(), count.s4());
      return true;
    }
    default:
      return false;
  }
}

bool A64::ternary(Does does, Number type, Reg to, Reg a, Reg b, Reg c) {
  if (does == Does::FunnelLeft || does == Does::FunnelRight) {
    // Negative counts shift to the right. One half is shifted by 1 and then by 31 - count, as in
    // the handler.
    const bool right = does == Does::FunnelRight;
    Vec most = temporary(), by = temporary(), rest = temporary(), moved = temporary();
    constant(most, 31, 4);
    cc_.and_(by.b16(), v(c).b16(), most.b16());
    cc_.sub(rest.s4(), most.s4(), by.s4());
    if (right) {
      cc_.neg(by.s4(), by.s4());
      cc_.shl(moved.s4(), v(b).s4(), 1);
    } else {
      cc_.neg(rest.s4(), rest.s4());
      cc_.ushr(moved.s4(), v(a).s4(), 1);
    }
    cc_.ushl(moved.s4(), moved.s4(), rest.s4());
    cc_.ushl(by.s4(), v(right ? a : b).s4(), by.s4());
    cc_.orr(v(to).b16(), moved.b16(), by.b16());
    return true;
  }
  if (does != Does::Mad) return false;
  if (type == Number::U64 || type == Number::S64) {
    Vec product = temporary();
    multiply_wide(product, v(a), v(b));
    cc_.add(v(to).d2(), product.d2(), v(c).d2());
    return true;
  }
  Vec sum = v(to);
  // FMLA and MLA also read the sum, so it must not be one of the factors.
  const bool apart = to.id() == a.id() || to.id() == b.id();
  if (apart) sum = temporary();
  if (sum.id() != c.id()) cc_.mov(sum.b16(), v(c).b16());
  if (type == Number::F64)
    cc_.fmla(sum.d2(), v(a).d2(), v(b).d2());
  else if (type == Number::F32)
    cc_.fmla(sum.s4(), v(a).s4(), v(b).s4());
  else
    cc_.mla(sum.s4(), v(a).s4(), v(b).s4());
  if (apart) cc_.mov(v(to).b16(), sum.b16());
  return true;
}

bool A64::shift(Does does, Number type, Reg to, Reg a, uint32_t by) {
  const Vec d = v(to), s = v(a);
  const bool wide = bytes_of(type) == 8;
  if (by == 0) {
    copy(to, a);
  } else if (does == Does::ShiftLeft) {
    wide ? cc_.shl(d.d2(), s.d2(), by) : cc_.shl(d.s4(), s.s4(), by);
  } else if (is_signed(type)) {
    wide ? cc_.sshr(d.d2(), s.d2(), by) : cc_.sshr(d.s4(), s.s4(), by);
  } else {
    wide ? cc_.ushr(d.d2(), s.d2(), by) : cc_.ushr(d.s4(), s.s4(), by);
  }
  return true;
}

bool A64::convert(Number to_type, Number from, Reg to, Reg a) {
  if (to_type == Number::F32 && from == Number::S32)
    cc_.scvtf(v(to).s4(), v(a).s4());
  else if (to_type == Number::F32 && from == Number::U32)
    cc_.ucvtf(v(to).s4(), v(a).s4());
  else if (to_type == Number::S32 && from == Number::F32)
    cc_.fcvtzs(v(to).s4(), v(a).s4());
  else if (to_type == Number::U32 && from == Number::F32)
    cc_.fcvtzu(v(to).s4(), v(a).s4());
  else
    return false;
  return true;
}

// d = l > r, l >= r and l == r: all other comparisons are made of these.
void A64::is_above(Number type, const Reg& d, const Reg& l, const Reg& r) {
  const bool wide = bytes_of(type) == 8;
  if (is_real(type))
    wide ? cc_.fcmgt(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.fcmgt(v(d).s4(), v(l).s4(), v(r).s4());
  else if (is_signed(type))
    wide ? cc_.cmgt(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.cmgt(v(d).s4(), v(l).s4(), v(r).s4());
  else
    wide ? cc_.cmhi(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.cmhi(v(d).s4(), v(l).s4(), v(r).s4());
}

void A64::is_from(Number type, const Reg& d, const Reg& l, const Reg& r) {
  const bool wide = bytes_of(type) == 8;
  if (is_real(type))
    wide ? cc_.fcmge(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.fcmge(v(d).s4(), v(l).s4(), v(r).s4());
  else if (is_signed(type))
    wide ? cc_.cmge(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.cmge(v(d).s4(), v(l).s4(), v(r).s4());
  else
    wide ? cc_.cmhs(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.cmhs(v(d).s4(), v(l).s4(), v(r).s4());
}

void A64::is_same(Number type, const Reg& d, const Reg& l, const Reg& r) {
  const bool wide = bytes_of(type) == 8;
  if (is_real(type))
    wide ? cc_.fcmeq(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.fcmeq(v(d).s4(), v(l).s4(), v(r).s4());
  else
    wide ? cc_.cmeq(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.cmeq(v(d).s4(), v(l).s4(), v(r).s4());
}

void A64::compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) {
  const bool real = is_real(type);
  const auto above = [&](const Reg& d, const Reg& l, const Reg& r) { is_above(type, d, l, r); };
  const auto from = [&](const Reg& d, const Reg& l, const Reg& r) { is_from(type, d, l, r); };
  const auto same = [&](const Reg& d, const Reg& l, const Reg& r) { is_same(type, d, l, r); };
  const auto invert = [&](const Reg& d) { cc_.not_(v(d).b16(), v(d).b16()); };
  // l < r or l > r: false if one is a NaN.
  const auto apart = [&](const Reg& d, const Reg& l, const Reg& r) {
    Vec other = temporary();
    above(other, r, l);
    Vec one = temporary();
    above(one, l, r);
    cc_.orr(v(d).b16(), one.b16(), other.b16());
  };
  const auto ordered = [&](const Reg& d, const Reg& l, const Reg& r) {
    Vec first = temporary(), second = temporary();
    same(first, l, l);
    same(second, r, r);
    cc_.and_(v(d).b16(), first.b16(), second.b16());
  };
  switch (comparison) {
    case Comparison::Eq:
      return same(to, a, b);
    case Comparison::Equ:
      if (!real) return same(to, a, b);
      apart(to, a, b);
      return invert(to);
    case Comparison::Ne:
      if (real) return apart(to, a, b);
      same(to, a, b);
      return invert(to);
    case Comparison::Neu:
      same(to, a, b);
      return invert(to);
    case Comparison::Gt:
      return above(to, a, b);
    case Comparison::Ge:
      return from(to, a, b);
    case Comparison::Lt:
      return above(to, b, a);
    case Comparison::Le:
      return from(to, b, a);
    // Unordered comparisons: the inverse of the opposite one, which is false if one is a NaN.
    case Comparison::Gtu:
      from(to, b, a);
      return invert(to);
    case Comparison::Geu:
      above(to, b, a);
      return invert(to);
    case Comparison::Ltu:
      from(to, a, b);
      return invert(to);
    case Comparison::Leu:
      above(to, a, b);
      return invert(to);
    case Comparison::Num:
      return ordered(to, a, b);
    case Comparison::Nan:
      ordered(to, a, b);
      return invert(to);
  }
}

bool has_target() { return true; }
uint32_t least_row_lanes() { return 4; }

std::unique_ptr<Target> make_target(uint32_t) { return std::make_unique<A64>(); }

}  // namespace kiln::engine
#endif
