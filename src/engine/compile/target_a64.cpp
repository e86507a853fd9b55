// SPDX-License-Identifier: Apache-2.0
// How does aarch64 do what the compiler asks? With NEON, which every such CPU has.
#if defined(__aarch64__)
#include <asmjit/arm.h>
#include <asmjit/arm/a64compiler.h>

#include "engine/compile/target.h"

namespace kiln::engine {
namespace {

using asmjit::a64::Compiler;
using asmjit::a64::Gp;
using asmjit::a64::Mem;
using asmjit::a64::Vec;
namespace a64 = asmjit::a64;
using Cond = asmjit::a64::CondCode;

Vec v(const Reg& reg) { return reg.as<Vec>(); }
Gp x(const Reg& reg) { return reg.as<Gp>().x(); }
Gp w(const Reg& reg) { return reg.as<Gp>().w(); }
Gp sized(const Reg& reg, Number type) { return bytes_of(type) == 8 ? x(reg) : w(reg); }

bool is_signed(Number type) { return type == Number::S32 || type == Number::S64; }

class A64 final : public Target {
 public:
  A64() {
    code_.init(asmjit::Environment::host());
    code_.attach(&cc_);
  }
  uint32_t vector_lanes() const override { return 4; }
  uint32_t vector_count() const override { return 32; }

  void begin() override {
    asmjit::FuncNode* function = cc_.addFunc(asmjit::FuncSignatureT<uint32_t, Pass*>());
    pass_ = cc_.newGpx();
    function->setArg(0, pass_);
    result_ = cc_.newGpw();
    end_ = cc_.newLabel();
  }
  Reg pass() override { return pass_; }
  bool finish() override {
    cc_.bind(end_);
    cc_.ret(result_);
    cc_.endFunc();
    return cc_.finalize() == asmjit::kErrorOk;
  }
  asmjit::CodeHolder& code() override { return code_; }

  Reg vector() override { return cc_.newVecQ(); }
  Reg word() override { return cc_.newGpx(); }
  Label label() override { return cc_.newLabel(); }
  void bind(Label at) override { cc_.bind(at); }
  void jump(Label to) override { cc_.b(to); }
  void leave(uint32_t exit) override {
    cc_.mov(result_, exit);
    cc_.b(end_);
  }

  // What an address can hold depends on the size of the access; the rest is added first.
  Mem at(const Reg& base, int64_t offset, uint32_t bytes) {
    const bool fits = (offset >= 0 && offset < int64_t{4096} * bytes && offset % bytes == 0) ||
                      (offset >= -256 && offset < 256);
    if (fits) return a64::ptr(x(base), static_cast<int32_t>(offset));
    Gp sum = cc_.newGpx();
    if (offset > 0 && offset < (int64_t{1} << 24)) {
      cc_.add(sum, x(base), static_cast<uint64_t>(offset & ~int64_t{4095}));
      const int64_t rest = offset & 4095;
      if (rest % bytes == 0 || rest < 256) return a64::ptr(sum, static_cast<int32_t>(rest));
      cc_.add(sum, sum, static_cast<uint64_t>(rest));
      return a64::ptr(sum);
    }
    cc_.mov(sum, static_cast<uint64_t>(offset));
    cc_.add(sum, sum, x(base));
    return a64::ptr(sum);
  }
  void load(Reg to, Reg base, int64_t offset) override { cc_.ldr(v(to), at(base, offset, 16)); }
  void store(Reg from, Reg base, int64_t offset) override {
    cc_.str(v(from), at(base, offset, 16));
  }
  void load_splat(Reg to, Reg base, int64_t offset, uint32_t bytes) override {
    Gp where = cc_.newGpx();
    word_add(where, base, offset);
    if (bytes == 8)
      cc_.ld1r(v(to).d2(), a64::ptr(where));
    else
      cc_.ld1r(v(to).s4(), a64::ptr(where));
  }
  void load_word(Reg to, Reg base, int64_t offset, uint32_t bytes) override {
    cc_.ldr(bytes == 8 ? x(to) : w(to), at(base, offset, bytes));
  }
  void store_word(Reg from, Reg base, int64_t offset, uint32_t bytes) override {
    cc_.str(bytes == 8 ? x(from) : w(from), at(base, offset, bytes));
  }

  void copy(Reg to, Reg from) override {
    if (to.id() == from.id()) return;
    if (to.isVec())
      cc_.mov(v(to).b16(), v(from).b16());
    else
      cc_.mov(x(to), x(from));
  }
  void splat(Reg to, Reg word, uint32_t bytes) override {
    if (bytes == 8)
      cc_.dup(v(to).d2(), x(word));
    else
      cc_.dup(v(to).s4(), w(word));
  }
  void constant(Reg to, uint64_t bits, uint32_t bytes) override {
    if (bits == 0) {
      cc_.movi(v(to).b16(), 0);
      return;
    }
    Gp word = cc_.newGpx();
    cc_.mov(word, bytes == 8 ? bits : bits & 0xffffffffu);
    splat(to, word, bytes);
  }
  void steps(Reg to, uint64_t step, uint32_t bytes) override {
    Gp word = cc_.newGpx();
    cc_.movi(v(to).b16(), 0);
    for (uint32_t lane = 1; lane < 16 / bytes; ++lane) {
      const uint64_t value = lane * step;
      cc_.mov(word, bytes == 8 ? value : value & 0xffffffffu);
      set_lane(to, word, lane, bytes);
    }
  }
  void constant_word(Reg to, uint64_t bits) override { cc_.mov(x(to), bits); }
  void lane_word(Reg to, Reg vector, uint32_t lane, uint32_t bytes) override {
    if (bytes == 8)
      cc_.umov(x(to), v(vector).d(lane));
    else
      cc_.umov(w(to), v(vector).s(lane));
  }
  void set_lane(Reg to, Reg word, uint32_t lane, uint32_t bytes) override {
    if (bytes == 8)
      cc_.ins(v(to).d(lane), x(word));
    else
      cc_.ins(v(to).s(lane), w(word));
  }

  bool unary(Does does, Number type, Reg to, Reg a) override;
  bool binary(Does does, Number type, Reg to, Reg a, Reg b) override;
  bool ternary(Does does, Number type, Reg to, Reg a, Reg b, Reg c) override;
  bool shift(Does does, Number type, Reg to, Reg a, uint32_t by) override;
  bool convert(Number to_type, Number from, Reg to, Reg a) override;
  void compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) override;

  void widen(bool is_signed_value, bool high, Reg to, Reg a) override {
    if (is_signed_value)
      high ? cc_.sxtl2(v(to).d2(), v(a).s4()) : cc_.sxtl(v(to).d2(), v(a).s2());
    else
      high ? cc_.uxtl2(v(to).d2(), v(a).s4()) : cc_.uxtl(v(to).d2(), v(a).s2());
  }
  void mul_wide(bool is_signed_value, bool high, Reg to, Reg a, Reg b) override {
    if (is_signed_value)
      high ? cc_.smull2(v(to).d2(), v(a).s4(), v(b).s4())
           : cc_.smull(v(to).d2(), v(a).s2(), v(b).s2());
    else
      high ? cc_.umull2(v(to).d2(), v(a).s4(), v(b).s4())
           : cc_.umull(v(to).d2(), v(a).s2(), v(b).s2());
  }
  void narrow(Reg to, Reg low, Reg high) override {
    cc_.uzp1(v(to).s4(), v(low).s4(), v(high).s4());
  }
  void select(Reg to, Reg mask, Reg a, Reg b) override {
    Vec chosen = cc_.newVecQ();
    cc_.mov(chosen.b16(), v(mask).b16());
    cc_.bsl(chosen.b16(), v(a).b16(), v(b).b16());
    cc_.mov(v(to).b16(), chosen.b16());
  }
  void canonicalize(Reg value, Reg nan) override {
    Vec is_number = cc_.newVecQ();
    cc_.fcmeq(is_number.s4(), v(value).s4(), v(value).s4());
    cc_.bif(v(value).b16(), v(nan).b16(), is_number.b16());
  }
  void bits_to_mask(Reg to, Reg word, uint32_t first) override {
    Gp moved = cc_.newGpx();
    cc_.lsr(moved, x(word), first);
    Vec lanes = cc_.newVecQ(), bits = cc_.newVecQ();
    lane_bits(bits);
    cc_.dup(lanes.s4(), moved.w());
    cc_.cmtst(v(to).s4(), lanes.s4(), bits.s4());
  }
  void mask_to_bits(Reg word, Reg mask, uint32_t first) override {
    Vec bits = cc_.newVecQ();
    lane_bits(bits);
    cc_.and_(bits.b16(), bits.b16(), v(mask).b16());
    cc_.addv(bits.s(), bits.s4());
    Gp lanes = cc_.newGpx();
    cc_.umov(lanes.w(), bits.s(0));
    cc_.orr(x(word), x(word), lanes, a64::lsl(first));
  }

  bool word_unary(Does does, Number type, Reg to, Reg a) override;
  bool word_binary(Does does, Number type, Reg to, Reg a, Reg b) override;
  void word_extend(bool is_signed_value, Reg to, Reg a) override {
    is_signed_value ? cc_.sxtw(x(to), w(a)) : cc_.mov(w(to), w(a));
  }
  void word_add(Reg to, Reg a, int64_t number) override {
    if (number >= 0 && number < 4096) {
      cc_.add(x(to), x(a), static_cast<uint64_t>(number));
    } else if (number < 0 && number > -4096) {
      cc_.sub(x(to), x(a), static_cast<uint64_t>(-number));
    } else {
      Gp word = cc_.newGpx();
      cc_.mov(word, static_cast<uint64_t>(number));
      cc_.add(x(to), x(a), word);
    }
  }
  void word_compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) override;
  void word_select(Reg to, Reg condition, Reg a, Reg b) override {
    cc_.cmp(x(condition), 0);
    cc_.csel(x(to), x(a), x(b), Cond::kNE);
  }
  void jump_if(Reg word, bool is_set, Label to) override {
    is_set ? cc_.cbnz(x(word), to) : cc_.cbz(x(word), to);
  }
  void jump_if_above(Reg a, Reg b, Label to) override {
    cc_.cmp(x(a), x(b));
    cc_.b_hi(to);
  }
  void jump_if_bits(Reg word, uint64_t bits, Label to) override {
    cc_.tst(x(word), bits);
    cc_.b_ne(to);
  }

 private:
  void lane_bits(const Vec& to) {  // 1, 2, 4, 8
    Gp word = cc_.newGpx();
    cc_.mov(word, uint64_t{2} << 32 | 1);
    cc_.ins(to.d(0), word);
    cc_.mov(word, uint64_t{8} << 32 | 4);
    cc_.ins(to.d(1), word);
  }

  asmjit::CodeHolder code_;
  Compiler cc_;
  Gp pass_, result_;
  Label end_;
};

bool A64::unary(Does does, Number type, Reg to, Reg a) {
  const Vec d = v(to), s = v(a);
  if (does == Does::Not) {
    cc_.not_(d.b16(), s.b16());
    return true;
  }
  if (does == Does::Negate && type != Number::F32) {
    bytes_of(type) == 8 ? cc_.neg(d.d2(), s.d2()) : cc_.neg(d.s4(), s.s4());
    return true;
  }
  if (type != Number::F32) return false;
  switch (does) {
    case Does::Negate:
      cc_.fneg(d.s4(), s.s4());
      return true;
    case Does::Absolute:
      cc_.fabs(d.s4(), s.s4());
      return true;
    case Does::Root:
      cc_.fsqrt(d.s4(), s.s4());
      return true;
    case Does::Reciprocal: {
      Vec one = cc_.newVecQ();
      constant(one, 0x3f800000u, 4);
      cc_.fdiv(d.s4(), one.s4(), s.s4());
      return true;
    }
    case Does::ReciprocalRoot: {
      Vec low = cc_.newVecQ(), high = cc_.newVecQ(), one = cc_.newVecQ();
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
  if (type == Number::F32) {
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
      default:
        return false;
    }
  }
  switch (does) {
    case Does::Add:
      wide ? cc_.add(d.d2(), l.d2(), r.d2()) : cc_.add(d.s4(), l.s4(), r.s4());
      return true;
    case Does::Sub:
      wide ? cc_.sub(d.d2(), l.d2(), r.d2()) : cc_.sub(d.s4(), l.s4(), r.s4());
      return true;
    case Does::Mul:
      if (wide) return false;
      cc_.mul(d.s4(), l.s4(), r.s4());
      return true;
    case Does::Min:
      if (wide) return false;
      is_signed(type) ? cc_.smin(d.s4(), l.s4(), r.s4()) : cc_.umin(d.s4(), l.s4(), r.s4());
      return true;
    case Does::Max:
      if (wide) return false;
      is_signed(type) ? cc_.smax(d.s4(), l.s4(), r.s4()) : cc_.umax(d.s4(), l.s4(), r.s4());
      return true;
    case Does::ShiftLeft:
    case Does::ShiftRight: {
      if (wide) return false;
      // A shift reads the low byte of each count, with its sign; to the left.
      Vec count = cc_.newVecQ(), most = cc_.newVecQ();
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
  if (does != Does::Mad || bytes_of(type) == 8) return false;
  Vec sum = v(to);
  // The sum is read and written: it must not be a factor as well.
  const bool apart = to.id() == a.id() || to.id() == b.id();
  if (apart) sum = cc_.newVecQ();
  if (sum.id() != c.id()) cc_.mov(sum.b16(), v(c).b16());
  if (type == Number::F32)
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
  else
    return false;
  return true;
}

void A64::compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) {
  const bool wide = bytes_of(type) == 8, real = type == Number::F32, sign = is_signed(type);
  // to = l > r, l >= r or l == r; every other comparison is made of these.
  const auto above = [&](const Reg& d, const Reg& l, const Reg& r) {
    if (real)
      cc_.fcmgt(v(d).s4(), v(l).s4(), v(r).s4());
    else if (sign)
      wide ? cc_.cmgt(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.cmgt(v(d).s4(), v(l).s4(), v(r).s4());
    else
      wide ? cc_.cmhi(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.cmhi(v(d).s4(), v(l).s4(), v(r).s4());
  };
  const auto from = [&](const Reg& d, const Reg& l, const Reg& r) {
    if (real)
      cc_.fcmge(v(d).s4(), v(l).s4(), v(r).s4());
    else if (sign)
      wide ? cc_.cmge(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.cmge(v(d).s4(), v(l).s4(), v(r).s4());
    else
      wide ? cc_.cmhs(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.cmhs(v(d).s4(), v(l).s4(), v(r).s4());
  };
  const auto same = [&](const Reg& d, const Reg& l, const Reg& r) {
    if (real)
      cc_.fcmeq(v(d).s4(), v(l).s4(), v(r).s4());
    else
      wide ? cc_.cmeq(v(d).d2(), v(l).d2(), v(r).d2()) : cc_.cmeq(v(d).s4(), v(l).s4(), v(r).s4());
  };
  const auto invert = [&](const Reg& d) { cc_.not_(v(d).b16(), v(d).b16()); };
  // l < r or l > r: false where one is NaN.
  const auto apart = [&](const Reg& d, const Reg& l, const Reg& r) {
    Vec other = cc_.newVecQ();
    above(other, r, l);
    Vec one = cc_.newVecQ();
    above(one, l, r);
    cc_.orr(v(d).b16(), one.b16(), other.b16());
  };
  const auto ordered = [&](const Reg& d, const Reg& l, const Reg& r) {
    Vec first = cc_.newVecQ(), second = cc_.newVecQ();
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
    // Unordered ones: the inverse of the opposite, which is false where one is NaN.
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
      // The hardware takes the count modulo the width.
      const bool sign = does == Does::ShiftRight && is_signed(type);
      Gp count = cc_.newGpx(), most = cc_.newGpx(), shifted = cc_.newGpx();
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
  cc_.csetm(x(to), when);  // all ones: a predicate of all lanes
}

}  // namespace

std::unique_ptr<Target> make_target() { return std::make_unique<A64>(); }

}  // namespace kiln::engine
#endif
