// SPDX-License-Identifier: Apache-2.0
// How does x86-64 compare, and compute with general registers what all lanes share?
#if defined(__x86_64__)
#include "engine/compile/x64/target.h"

namespace kiln::engine {
namespace {

// The operand of vcmpps; none of these raises an exception for a NaN.
x86::VCmpImm float_condition(Comparison comparison) {
  switch (comparison) {
    case Comparison::Eq:
      return x86::VCmpImm::kEQ_OQ;
    case Comparison::Ne:
      return x86::VCmpImm::kNEQ_OQ;
    case Comparison::Lt:
      return x86::VCmpImm::kLT_OQ;
    case Comparison::Le:
      return x86::VCmpImm::kLE_OQ;
    case Comparison::Gt:
      return x86::VCmpImm::kGT_OQ;
    case Comparison::Ge:
      return x86::VCmpImm::kGE_OQ;
    case Comparison::Equ:
      return x86::VCmpImm::kEQ_UQ;
    case Comparison::Neu:
      return x86::VCmpImm::kNEQ_UQ;
    case Comparison::Ltu:
      return x86::VCmpImm::kNGE_UQ;
    case Comparison::Leu:
      return x86::VCmpImm::kNGT_UQ;
    case Comparison::Gtu:
      return x86::VCmpImm::kNLE_UQ;
    case Comparison::Geu:
      return x86::VCmpImm::kNLT_UQ;
    case Comparison::Num:
      return x86::VCmpImm::kORD_Q;
    case Comparison::Nan:
      break;
  }
  return x86::VCmpImm::kUNORD_Q;
}

x86::CondCode word_condition(Comparison comparison, bool sign) {
  switch (comparison) {
    case Comparison::Ne:
    case Comparison::Neu:
      return x86::CondCode::kNE;
    case Comparison::Lt:
    case Comparison::Ltu:
      return sign ? x86::CondCode::kL : x86::CondCode::kB;
    case Comparison::Le:
    case Comparison::Leu:
      return sign ? x86::CondCode::kLE : x86::CondCode::kBE;
    case Comparison::Gt:
    case Comparison::Gtu:
      return sign ? x86::CondCode::kG : x86::CondCode::kA;
    case Comparison::Ge:
    case Comparison::Geu:
      return sign ? x86::CondCode::kGE : x86::CondCode::kAE;
    default:
      return x86::CondCode::kE;
  }
}

}  // namespace

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

bool X64::word_unary(Does does, Number type, Reg to, Reg a) {
  if (does != Does::Not && does != Does::Negate) return false;
  const Gp d = sized(to, type);
  if (to.id() != a.id()) cc_.mov(d, sized(a, type));
  does == Does::Not ? cc_.not_(d) : cc_.neg(d);
  return true;
}

bool X64::word_binary(Does does, Number type, Reg to, Reg a, Reg b) {
  if (type == Number::F32 || type == Number::F64) return false;
  const Gp d = sized(to, type), l = sized(a, type), r = sized(b, type);
  // An instruction changes its first operand: where the result has the place of the second, that is
  // a register of its own until the end.
  const Gp sum = to.id() == b.id() ? sized(temporary_word(), type) : d;
  const auto begin = [&] {
    if (sum.id() != l.id()) cc_.mov(sum, l);
  };
  const bool sign = is_signed(type);
  switch (does) {
    case Does::Add:
      begin();
      cc_.add(sum, r);
      break;
    case Does::Sub:
      begin();
      cc_.sub(sum, r);
      break;
    case Does::Mul:
      begin();
      cc_.imul(sum, r);
      break;
    case Does::And:
      begin();
      cc_.and_(sum, r);
      break;
    case Does::Or:
      begin();
      cc_.or_(sum, r);
      break;
    case Does::Xor:
      begin();
      cc_.xor_(sum, r);
      break;
    case Does::Min:
    case Does::Max: {
      const bool least = does == Does::Min;
      begin();
      cc_.cmp(r, sum);
      sign ? (least ? cc_.cmovl(sum, r) : cc_.cmovg(sum, r))
           : (least ? cc_.cmovb(sum, r) : cc_.cmova(sum, r));
      break;
    }
    case Does::ShiftLeft:
    case Does::ShiftRight: {
      // The hardware takes the count modulo the width.
      const uint32_t most = bytes_of(type) * 8 - 1;
      const bool keeps_sign = does == Does::ShiftRight && sign;
      const Gp other = sized(temporary_word(), type);
      if (keeps_sign) {
        cc_.mov(other.r32(), most);
        cc_.cmp(w(b), most);
        cc_.cmovb(other.r32(), w(b));
        cc_.sarx(sum, l, other);
      } else {
        does == Does::ShiftLeft ? cc_.shlx(sum, l, r) : cc_.shrx(sum, l, r);
        cc_.mov(other, 0);
        cc_.cmp(w(b), most);
        cc_.cmova(sum, other);
      }
      break;
    }
    default:
      return false;
  }
  if (sum.id() != d.id()) cc_.mov(d, sum);
  return true;
}

void X64::word_add(Reg to, Reg a, int64_t number) {
  if (number == 0)
    copy(to, a);
  else
    cc_.lea(x(to), at(a, number));
}

void X64::word_compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) {
  const bool apart = to.id() != a.id() && to.id() != b.id();
  Gp is_so = apart ? x(to) : temporary_word();
  cc_.mov(is_so, 0);
  cc_.cmp(sized(a, type), sized(b, type));
  cc_.set(word_condition(comparison, is_signed(type)), is_so.r8());
  cc_.neg(is_so);  // all ones: a predicate of all lanes
  if (!apart) cc_.mov(x(to), is_so);
}

void X64::word_select(Reg to, Reg condition, Reg a, Reg b) {
  Gp chosen = temporary_word();
  cc_.mov(chosen, x(b));
  cc_.test(x(condition), x(condition));
  cc_.cmovnz(chosen, x(a));
  cc_.mov(x(to), chosen);
}

void X64::jump_if_bits(Reg word, uint64_t bits, Label to) {
  if (bits <= 0x7fffffffu) {
    cc_.test(w(word), static_cast<uint32_t>(bits));
  } else {
    Gp mask = temporary_word();
    cc_.mov(mask, bits);
    cc_.test(x(word), mask);
  }
  cc_.jnz(to);
}

// Four rows of four words become columns, in each 128 bits.
void X64::turn(const std::array<Ymm, 4>& rows, const std::array<Ymm, 4>& to) {
  const Ymm low = temporary(), high = temporary(), more_low = temporary(), more_high = temporary();
  cc_.vshufps(low, rows[0], rows[1], 0x44);
  cc_.vshufps(high, rows[0], rows[1], 0xee);
  cc_.vshufps(more_low, rows[2], rows[3], 0x44);
  cc_.vshufps(more_high, rows[2], rows[3], 0xee);
  cc_.vshufps(to[0], low, more_low, 0x88);
  cc_.vshufps(to[1], low, more_low, 0xdd);
  cc_.vshufps(to[2], high, more_high, 0x88);
  cc_.vshufps(to[3], high, more_high, 0xdd);
}

// Of four elements a row is those of one lane, and of the lane four behind it.
bool X64::load_elements(const List<Reg>& to, const Reg& base, int64_t offset) {
  if (to.size() == 2) {
    const Ymm first = temporary(), second = temporary(), even = temporary(), odd = temporary();
    load(first, base, offset);
    load(second, base, offset + 32);
    cc_.vshufps(even, first, second, 0x88);
    cc_.vshufps(odd, first, second, 0xdd);
    cc_.vpermq(v(to[0]), even, 0xd8);
    cc_.vpermq(v(to[1]), odd, 0xd8);
    return true;
  }
  std::array<Ymm, 4> rows;
  for (uint32_t i = 0; i < 4; ++i) {
    rows[i] = temporary();
    const Ymm upper = temporary();
    cc_.vmovups(rows[i].xmm(), at(base, offset + int64_t{i} * 16));
    cc_.vmovups(upper.xmm(), at(base, offset + int64_t{i} * 16 + 64));
    cc_.vinsertf128(rows[i], rows[i], upper.xmm(), 1);
  }
  turn(rows, {v(to[0]), v(to[1]), v(to[2]), v(to[3])});
  return true;
}

bool X64::store_elements(const List<Reg>& from, const Reg& base, int64_t offset) {
  if (from.size() == 2) {
    // Lanes 0, 1, 4, 5 and 2, 3, 6, 7 of each, so that their pairs are neighbours.
    const Ymm a = temporary(), b = temporary(), low = temporary(), high = temporary();
    cc_.vpermq(a, v(from[0]), 0xd8);
    cc_.vpermq(b, v(from[1]), 0xd8);
    cc_.vshufps(low, a, b, 0x44);
    cc_.vshufps(low, low, low, 0xd8);
    cc_.vshufps(high, a, b, 0xee);
    cc_.vshufps(high, high, high, 0xd8);
    store(low, base, offset);
    store(high, base, offset + 32);
    return true;
  }
  const std::array<Ymm, 4> rows{temporary(), temporary(), temporary(), temporary()};
  turn({v(from[0]), v(from[1]), v(from[2]), v(from[3])}, rows);
  for (uint32_t i = 0; i < 4; ++i) {
    const Ymm upper = temporary();
    cc_.vextracti128(upper.xmm(), rows[i], 1);
    cc_.vmovups(at(base, offset + int64_t{i} * 16), rows[i].xmm());
    cc_.vmovups(at(base, offset + int64_t{i} * 16 + 64), upper.xmm());
  }
  return true;
}

}  // namespace kiln::engine
#endif
