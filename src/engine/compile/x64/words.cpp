// SPDX-License-Identifier: Apache-2.0
// How does x86-64 compute with general registers, which hold values that all lanes share?
#if defined(__x86_64__)
#include "engine/compile/x64/words.h"

namespace kiln::engine {
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

bool X64Words::finish(std::vector<std::byte>* bytes) {
  cc_.bind(end_);
  cc_.vzeroupper();  // what follows may be code without AVX
  cc_._emitI(x86::Inst::kIdRet);
  return generator_->registers.run(cc_, bytes);
}

void X64Words::load_small_word(const Reg& to, const Reg& base, int64_t offset, Number from,
                               uint32_t bytes) {
  Mem at = this->at(base, offset);
  at.setSize(bytes_of(from));
  const bool is_signed_value = from == Number::S8 || from == Number::S16;
  is_signed_value ? cc_.movsx(w(to), at) : cc_.movzx(w(to), at);
  if (is_signed_value && bytes == 2) cc_.and_(w(to), 0xffff);
}

void X64Words::round(int64_t how) {
  const Gp mode = temporary_word();
  const auto before = static_cast<int64_t>(offsetof(Pass, rounded)),
             now = static_cast<int64_t>(offsetof(Pass, rounds));
  cc_.vstmxcsr(at(pass(), before));
  cc_.mov(mode.r32(), at(pass(), before));
  cc_.and_(mode.r32(), ~0x6000);
  cc_.or_(mode.r32(), static_cast<int32_t>(how << 3));
  cc_.mov(at(pass(), now), mode.r32());
  cc_.vldmxcsr(at(pass(), now));
}

bool X64Words::word_unary(Does does, Number type, Reg to, Reg a) {
  if (does != Does::Not && does != Does::Negate) return false;
  const Gp d = sized(to, type);
  if (to.id() != a.id()) cc_.mov(d, sized(a, type));
  does == Does::Not ? cc_.not_(d) : cc_.neg(d);
  return true;
}

bool X64Words::word_binary(Does does, Number type, Reg to, Reg a, Reg b) {
  if (type == Number::F32 || type == Number::F64) return false;
  const Gp d = sized(to, type), l = sized(a, type), r = sized(b, type);
  // An instruction overwrites its first operand. If the result shares a register with the second
  // operand, the instruction works on a temporary until the end.
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

void X64Words::word_add(Reg to, Reg a, int64_t number) {
  if (number == 0)
    copy(to, a);
  else
    cc_.lea(x(to), at(a, number));
}

void X64Words::word_compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) {
  const bool apart = to.id() != a.id() && to.id() != b.id();
  Gp is_so = apart ? x(to) : temporary_word();
  cc_.mov(is_so, 0);
  cc_.cmp(sized(a, type), sized(b, type));
  cc_.set(word_condition(comparison, is_signed(type)), is_so.r8());
  cc_.neg(is_so);  // all ones: a predicate that holds in all lanes
  if (!apart) cc_.mov(x(to), is_so);
}

void X64Words::word_select(Reg to, Reg condition, Reg a, Reg b) {
  Gp chosen = temporary_word();
  cc_.mov(chosen, x(b));
  cc_.test(x(condition), x(condition));
  cc_.cmovnz(chosen, x(a));
  cc_.mov(x(to), chosen);
}

void X64Words::jump_if_bits(Reg word, uint64_t bits, Label to) {
  if (bits <= 0x7fffffffu) {
    cc_.test(w(word), static_cast<uint32_t>(bits));
  } else {
    Gp mask = temporary_word();
    cc_.mov(mask, bits);
    cc_.test(x(word), mask);
  }
  cc_.jnz(to);
}

}  // namespace kiln::engine
#endif
