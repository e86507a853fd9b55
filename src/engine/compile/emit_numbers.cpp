// SPDX-License-Identifier: Apache-2.0
// How does arithmetic of f64, of 8 and 16 bits, and of 16-bit floats become instructions? A strip
// of f64 is two vectors. NaNs that arithmetic did not create would keep bits that depend on the
// CPU: if there are any, the interpreter continues (Variable::clean).
#include <algorithm>
#include <cstddef>

#include "engine/compile/emitter.h"
#include "engine/numbers/convert_parts.h"

namespace kiln::engine {
namespace {

bool is_wide_nan(uint64_t bits) { return bits << 1 > uint64_t{0x7ff0} << 49; }

}  // namespace

// Jumps to `otherwise` if an active lane has a NaN in one of these values.
void Emitter::expect_numbers(const List<uint32_t>& all, const Label& otherwise) {
  const Target::Mark mark = t_.mark();
  Reg some = t_.vector();
  t_.constant(some, 0, 8);
  for (size_t i = 0; i < all.size(); i += 2) {
    const uint32_t a = all[i], b = all[std::min(i + 1, all.size() - 1)];
    const uint32_t strips = std::max(strip_count(a), strip_count(b));
    for (uint32_t s = 0; s < strips; ++s) {
      for (uint32_t h = 0; h < 2; ++h) {
        const Target::Mark inner = t_.mark();
        Reg is_nan = t_.vector();
        t_.compare(Comparison::Nan, Number::F64, is_nan, vector_of(a, s, h), vector_of(b, s, h));
        if (plan_.masked) t_.binary(Does::And, Number::U64, is_nan, is_nan, active(s, h, 8));
        t_.binary(Does::Or, Number::U64, some, some, is_nan);
        t_.release(inner);
      }
    }
  }
  Reg any = t_.word(), differ = t_.word();
  t_.any_and_differ(any, differ, {some});
  t_.jump_if(any, true, otherwise);
  t_.release(mark);
}

// Checks an input where it is read; nothing has been stored before the first Op.
void Emitter::expect_number(uint32_t index) {
  const Variable& v = plan_.variables[index];
  if (!v.clean || !v.counted || v.bytes != 8) return;
  if (v.is_constant && !is_wide_nan(v.constant)) return;
  if (!now_) bails_ = true;
  expect_numbers({index}, now_ ? bail() : bail_);
}

// Checks the operands of f64 arithmetic that may have other NaNs.
void Emitter::expect_operands(const Step& step) {
  List<uint32_t> unknown;
  for (const auto& from : {step.a, step.b, step.c}) {
    if (!from || plan_.variables[*from].clean || values_[*from].checked) continue;
    if (std::find(unknown.begin(), unknown.end(), *from) == unknown.end()) unknown.push_back(*from);
  }
  if (unknown.empty()) return;
  expect_numbers(unknown, bail());
  // A value that ends with its block is written only once.
  for (uint32_t index : unknown) values_[index].checked = !plan_.variables[index].home;
}

// Between f64 and types of 32 bits.
bool Emitter::convert_wide(const Step& step, uint32_t s) {
  const Meaning& m = step.meaning;
  const Kept kept = plan_.variables[*step.d].kept;
  const bool is_one = kept != Kept::Vector, to_word = kept == Kept::Word;
  const Reg first = to_word ? t_.vector() : result(*step.d, s, 0);
  bool done = true;
  if (m.from == Number::F64) {
    const Reg low = vector_of(*step.a, s, 0), high = is_one ? low : vector_of(*step.a, s, 1);
    done = t_.from_double(m.type, first, low, high);
  } else {
    Reg from = bits_of(*step.a, s, 0);
    if (!is_one && first.id() == from.id()) return false;
    done = t_.to_double(m.from, false, first, from);
    if (!is_one) done &= t_.to_double(m.from, true, result(*step.d, s, 1), from);
  }
  if (to_word) t_.lane_word(result(*step.d, 0, 0), first, 0, bytes_of(m.type));
  return done;
}

// A 64-bit value, or its halves, in one strip.
bool Emitter::wide_float(const Step& step, uint32_t s) {
  const Meaning& m = step.meaning;
  const Variable& d = plan_.variables[*step.d];
  const bool to_word = d.kept == Kept::Word;
  if (m.does == Does::Convert) return convert_wide(step, s);
  for (uint32_t h = 0; h < (d.kept == Kept::Vector ? 2 : 1); ++h) {
    const Reg to = to_word ? t_.vector() : result(*step.d, s, h);
    const Reg a = vector_of(*step.a, s, h);
    const bool done =
        m.operands == 1 ? t_.unary(m.does, m.type, to, a)
        : m.operands == 2
            ? t_.binary(m.does, m.type, to, a, vector_of(*step.b, s, h))
            : t_.ternary(m.does, m.type, to, a, vector_of(*step.b, s, h), vector_of(*step.c, s, h));
    if (!done) return false;
    t_.canonicalize_wide(to);
    if (to_word) t_.lane_word(result(*step.d, 0, 0), to, 0, 8);
  }
  return true;
}

// f32 computed in f64, in which no f32 number is subnormal. 53 bits are enough for a product to be
// exact, and for a quotient or a root to be rounded once; a fused sum is rounded to odd (see
// below).
bool Emitter::by_way_of_double(Does does, const Reg& to, const std::array<Reg, 3>& from,
                               uint32_t operands) {
  constexpr Number kType = Number::F64;
  if (does != Does::Mul && does != Does::Mad && does != Does::Divide && does != Does::Root &&
      does != Does::Reciprocal)
    return false;
  const std::array<Reg, 2> halves{t_.vector(), t_.vector()};
  for (const bool high : {false, true}) {
    const Target::Mark mark = t_.mark();
    const Reg& half = halves[high];
    std::array<Reg, 3> wide;
    for (uint32_t k = 0; k < operands; ++k) {
      wide[k] = t_.vector();
      t_.to_double(Number::F32, high, wide[k], from[k]);
    }
    if (does == Does::Mad) {
      t_.binary(Does::Mul, kType, wide[0], wide[0], wide[1]);
      wide_sum_to_odd(half, wide[0], wide[2]);
    } else if (does == Does::Reciprocal) {
      t_.constant(half, 0x3ff0000000000000u, 8);
      t_.binary(Does::Divide, kType, half, half, wide[0]);
    } else {
      const bool done = operands == 1 ? t_.unary(does, kType, half, wide[0])
                                      : t_.binary(does, kType, half, wide[0], wide[1]);
      if (!done) return false;
    }
    t_.release(mark);
  }
  return t_.from_double(Number::F32, to, halves[0], halves[1]);
}

// Like sum_to_odd(), for a product that is exact.
void Emitter::wide_sum_to_odd(const Reg& to, const Reg& product, const Reg& addend) {
  constexpr Number kType = Number::F64;
  const Reg sum = t_.vector(), seen = t_.vector(), error = t_.vector(), zero = t_.vector();
  t_.binary(Does::Add, kType, sum, product, addend);
  t_.binary(Does::Sub, kType, seen, sum, product);
  t_.binary(Does::Sub, kType, error, sum, seen);
  t_.binary(Does::Sub, kType, error, product, error);
  t_.binary(Does::Sub, kType, seen, addend, seen);
  t_.binary(Does::Add, kType, error, error, seen);
  t_.constant(zero, 0, 8);
  const Reg& lost = seen;
  t_.compare(Comparison::Ne, kType, lost, error, zero);
  t_.binary(Does::Xor, Number::U64, error, error, sum);
  t_.compare(Comparison::Lt, Number::S64, error, error, zero);
  t_.binary(Does::And, Number::U64, error, error, lost);
  t_.shift(Does::ShiftRight, Number::U64, lost, lost, 63);
  t_.binary(Does::Add, Number::U64, to, sum, error);
  t_.binary(Does::Or, Number::U64, to, to, lost);
}

// Floats of 16 bits are computed in f32: 24 bits are enough for sums and products of 11 bits to be
// rounded once. In a fused multiply-add the product is exact, and the sum is rounded to odd: if
// bits are lost, the last bit is set, so that the second rounding takes them into account.

// A product of bf16 may be inexact if it is very small or large. If this could affect the second
// rounding, the interpreter continues.
void Emitter::sum_to_odd(const Step& step, uint32_t s, const Reg& to,
                         const std::array<Reg, 3>& from) {
  constexpr Number kType = Number::F32;
  const Small small = step.meaning.floats.small;
  const Reg product = t_.vector(), sum = t_.vector(), seen = t_.vector(), error = t_.vector();
  t_.binary(Does::Mul, kType, product, from[0], from[1]);
  if (small == Small::F16 || small == Small::F16x2)
    t_.binary(Does::Add, kType, sum, product, from[2]);
  else
    t_.ternary(Does::Mad, kType, sum, from[0], from[1], from[2]);
  t_.binary(Does::Sub, kType, seen, sum, product);
  t_.binary(Does::Sub, kType, error, sum, seen);
  t_.binary(Does::Sub, kType, error, product, error);
  t_.binary(Does::Sub, kType, seen, from[2], seen);
  t_.binary(Does::Add, kType, error, error, seen);
  const Reg lost = t_.vector();
  t_.constant(lost, 0, 4);
  t_.compare(Comparison::Ne, kType, lost, error, lost);  // infinity: a NaN, and nothing is lost
  // Toward zero if the sum was rounded away from it, and then to odd.
  t_.binary(Does::Xor, Number::U32, error, error, sum);
  t_.shift(Does::ShiftRight, Number::S32, error, error, 31);
  t_.binary(Does::And, Number::U32, error, error, lost);
  t_.shift(Does::ShiftRight, Number::U32, lost, lost, 31);
  t_.binary(Does::Add, Number::U32, to, sum, error);
  t_.binary(Does::Or, Number::U32, to, to, lost);
  if (small == Small::F16 || small == Small::F16x2) return;
  // In doubt: the sum is exactly half a unit, and the product is near the ends of the range.
  const Reg half = t_.vector(), low = t_.vector();
  t_.shift(Does::ShiftLeft, Number::U32, half, sum, 16);
  t_.constant(low, 0x80000000u, 4);
  t_.compare(Comparison::Eq, Number::U32, half, half, low);
  t_.shift(Does::ShiftLeft, Number::U32, seen, product, 1);
  t_.constant(low, 0x40000000u, 4);  // twice the bits of 2^-63
  t_.binary(Does::Sub, Number::U32, seen, seen, low);
  t_.constant(low, 0xb0000000u, 4);  // up to 2^113
  t_.compare(Comparison::Ge, Number::U32, seen, seen, low);
  t_.binary(Does::And, Number::U32, half, half, seen);
  if (plan_.masked) t_.binary(Does::And, Number::U32, half, half, active(s, 0, 4));
  t_.jump_if_lanes(half, 0xffffffffu, 4, bail());
}

bool Emitter::on_parts_of(const Step& step, uint32_t s, uint32_t part, const Reg& to) {
  const Meaning& m = step.meaning;
  const Does does = m.floats.does;
  std::array<Reg, 3> from;
  const std::optional<uint32_t> operands[] = {step.a, step.b, step.c};
  for (uint32_t k = 0; k < m.operands; ++k) {
    from[k] = t_.vector();
    t_.unpack(m.floats.small, part, from[k], bits_of(*operands[k], s, 0));
    if ((does == Does::Min || does == Does::Max) && t_.needs_quiet_operands())
      t_.canonicalize(from[k], nan());
  }
  if (does == Does::Mad) {
    sum_to_odd(step, s, to, from);
    return true;
  }
  return m.operands == 1 ? t_.unary(does, Number::F32, to, from[0])
                         : t_.binary(does, Number::F32, to, from[0], from[1]);
}

bool Emitter::small_float(const Step& step, uint32_t s, const Reg& to) {
  const Meaning& m = step.meaning;
  const Variable& d = plan_.variables[*step.d];
  const Small small = m.floats.small;
  const bool to_word = d.kept == Kept::Word, converts = m.floats.does == Does::Convert;
  bool done = true;
  if (m.type == Number::F32) {
    t_.unpack(small, 0, to, bits_of(*step.a, s, 0));
    if (!d.lazy || to_word) t_.canonicalize(to, nan());
  } else if (converts && is_pair(small)) {  // the second of two numbers is the low one
    const Small one = small == Small::F16x2 ? Small::F16 : Small::Bf16;
    const Reg high = t_.vector(), low = t_.vector();
    t_.pack(one, high, {vector_of(*step.a, s, 0), Reg()});
    t_.pack(one, low, {vector_of(*step.b, s, 0), Reg()});
    t_.shift(Does::ShiftLeft, Number::U32, high, high, 16);
    t_.binary(Does::Or, Number::U32, to, high, low);
  } else if (converts) {
    t_.pack(small, to, {vector_of(*step.a, s, 0), Reg()});
  } else {
    std::array<Reg, 2> parts{t_.vector(), is_pair(small) ? t_.vector() : Reg()};
    for (uint32_t part = 0; part < (is_pair(small) ? 2 : 1); ++part) {
      const Target::Mark mark = t_.mark();
      done &= on_parts_of(step, s, part, parts[part]);
      t_.release(mark);
    }
    t_.pack(small, to, parts);
  }
  if (done && to_word) t_.lane_word(result(*step.d, 0, 0), to, 0, 4);
  return done;
}

bool Emitter::small_floats(const Step& step) {
  const Meaning& m = step.meaning;
  const bool to_word = plan_.variables[*step.d].kept == Kept::Word;
  const bool is_bf16 = m.floats.small == Small::Bf16 || m.floats.small == Small::Bf16x2;
  // If a sum is in doubt (above), the operands of all strips must still be there, and the result
  // may be one of them.
  const bool puts_aside = to_word || (is_bf16 && m.floats.does == Does::Mad);
  List<Reg> aside;
  for (uint32_t s = 0; s < strip_count(*step.d); ++s) {
    if (puts_aside) aside.push_back(t_.vector());
    const Target::Mark mark = t_.mark();
    if (!small_float(step, s, puts_aside ? aside.back() : result(*step.d, s, 0))) return false;
    t_.release(mark);
  }
  for (uint32_t s = 0; !to_word && s < aside.size(); ++s) t_.copy(result(*step.d, s, 0), aside[s]);
  return true;
}

// The low bits of an integer, sign-extended or zero-extended.
void Emitter::extend(const Reg& to, const Reg& from, uint32_t bits, bool is_signed) {
  if (bits >= 32) return t_.copy(to, from);
  t_.shift(Does::ShiftLeft, Number::U32, to, from, 32 - bits);
  t_.shift(Does::ShiftRight, is_signed ? Number::S32 : Number::U32, to, to, 32 - bits);
}

// An integer of up to 32 bits, from another integer or from f32: saturates, and a NaN becomes 0.
bool Emitter::converted(const Step& step, uint32_t s) {
  const Meaning& m = step.meaning;
  const WideParts how = WideParts::of(step.op.imm);
  const bool to_word = plan_.variables[*step.d].kept == Kept::Word;
  const Reg to = to_word ? t_.vector() : result(*step.d, s, 0);
  Reg value = t_.vector();
  bool done = true;
  if (m.does == Does::Cast) {
    extend(value, bits_of(*step.a, s, 0), how.from_bits, how.from_signed);
    if (m.type == Number::F32)
      done = t_.convert(Number::F32, Number::S32, to, value);
    else
      extend(to, value, how.to_bits, how.to_signed);
  } else {
    constexpr Does kRounds[] = {Does::Nearest, Does::Truncate, Does::Floor, Does::Ceiling};
    t_.unary(kRounds[static_cast<size_t>(how.rounding)], Number::F32, value,
             vector_of(*step.a, s, 0));
    const Number type = how.to_bits < 32 ? Number::S32 : m.type;
    done = t_.convert(type, Number::F32, to, value);
    if (how.to_bits < 32) {
      const uint32_t values = 1u << how.to_bits, least = how.to_signed ? 0 - values / 2 : 0;
      t_.constant(value, least, 4);
      t_.binary(Does::Max, Number::S32, to, to, value);
      t_.constant(value, least + values - 1, 4);
      t_.binary(Does::Min, Number::S32, to, to, value);
    }
  }
  if (m.type != Number::F32) keep_low(to, m.type);
  if (done && to_word) t_.lane_word(result(*step.d, 0, 0), to, 0, 4);
  return done;
}

// Values of 8 and 16 bits have a 32-bit lane whose upper half is zero, so that 32-bit operations
// work on them. Bits that an operation may set in the upper half are cleared after it, and values
// are sign-extended first where the sign matters.

// Reads from the frame; all lanes are in one pass.
void Emitter::read_small(uint32_t index) {
  for (uint32_t s = 0; s < strips_; ++s)
    t_.load_small(place_of(index, s, 0), registers_, frame_place(index, s), Number::U16);
}

// If `one` is valid, it is the value of all strips.
void Emitter::write_small(uint32_t index, const Reg& one) {
  for (uint32_t s = 0; s < strips_; ++s) {
    const Target::Mark mark = t_.mark();
    t_.store_small(one.isValid() ? one : bits_of(index, s, 0), registers_, frame_place(index, s),
                   2);
    t_.release(mark);
  }
}

// Clears the bits above a register of this type.
void Emitter::keep_low(const Reg& reg, Number type) {
  if (!is_small(type)) return;
  const Target::Mark mark = t_.mark();
  Reg low = t_.vector();
  t_.constant(low, 0xffffu, 4);
  t_.binary(Does::And, Number::U32, reg, reg, low);
  t_.release(mark);
}

// mov.b64 {low, high} and similar, in both directions.
bool Emitter::on_parts(const Step& step) {
  const bool joins = step.writes.size() == 1,
             wide = (joins ? step.meaning.type : step.meaning.from) == Number::U64;
  const uint32_t whole = joins ? step.writes[0] : step.reads[0];
  const uint32_t low = joins ? step.reads[0] : step.writes[0];
  const uint32_t high = joins ? step.reads[1] : step.writes[1];
  for (uint32_t s = 0; s < strips_; ++s) {
    const Target::Mark mark = t_.mark();
    Reg upper = t_.vector(), second = t_.vector();
    if (joins && wide) {
      const Reg from = bits_of(low, s, 0), above = bits_of(high, s, 0);
      for (uint32_t h = 0; h < 2; ++h) {
        t_.widen(false, h == 1, upper, above);
        t_.widen(false, h == 1, second, from);
        t_.shift(Does::ShiftLeft, Number::U64, upper, upper, 32);
        t_.binary(Does::Or, Number::U64, result(whole, s, h), second, upper);
      }
    } else if (joins) {
      t_.shift(Does::ShiftLeft, Number::U32, upper, bits_of(high, s, 0), 16);
      t_.binary(Does::Or, Number::U32, result(whole, s, 0), upper, bits_of(low, s, 0));
    } else if (wide) {
      const Reg a = vector_of(whole, s, 0), b = vector_of(whole, s, 1);
      t_.narrow(result(low, s, 0), a, b);
      t_.shift(Does::ShiftRight, Number::U64, upper, a, 32);
      t_.shift(Does::ShiftRight, Number::U64, second, b, 32);
      t_.narrow(result(high, s, 0), upper, second);
    } else {
      const Reg from = bits_of(whole, s, 0);
      t_.copy(result(low, s, 0), from);
      keep_low(result(low, s, 0), Number::U16);
      t_.shift(Does::ShiftRight, Number::U32, result(high, s, 0), from, 16);
    }
    t_.release(mark);
  }
  return true;
}

// As a 32-bit number.
Reg Emitter::signed_of(uint32_t index, Number type, uint32_t s) {
  Reg value = bits_of(index, s, 0);
  if (type != Number::S16) return value;
  Reg wide = t_.vector();
  t_.shift(Does::ShiftLeft, Number::U32, wide, value, 16);
  t_.shift(Does::ShiftRight, Number::S32, wide, wide, 16);
  return wide;
}

bool Emitter::small_arithmetic(const Step& step, uint32_t s, const Reg& to) {
  const Meaning& m = step.meaning;
  const bool shifts = m.does == Does::ShiftLeft || m.does == Does::ShiftRight;
  const Number type = m.from == Number::S16 ? Number::S32 : Number::U32;
  const Reg a = signed_of(*step.a, m.from, s);
  if (m.operands == 1) return t_.unary(m.does, type, to, a);
  if (shifts && plan_.variables[*step.b].is_constant) {
    const auto by = static_cast<uint32_t>(plan_.variables[*step.b].constant);
    if (by < 32) return t_.shift(m.does, type, to, a, by);
  }
  const Reg b = shifts ? bits_of(*step.b, s, 0) : signed_of(*step.b, m.from, s);
  const Does does = m.does == Does::MulWide ? Does::Mul : m.does;
  if (m.operands == 2) return t_.binary(does, type, to, a, b);
  return t_.ternary(does, type, to, a, b, signed_of(*step.c, m.from, s));
}

// 16 bits to 64 bits, and 64 to 16.
bool Emitter::convert_small_wide(const Step& step, uint32_t s) {
  const Meaning& m = step.meaning;
  if (m.does != Does::Convert) return false;
  const bool to_word = plan_.variables[*step.d].kept == Kept::Word;
  const auto place = [&](uint32_t half) {
    return to_word ? t_.vector() : result(*step.d, s, half);
  };
  if (is_small(m.type)) {
    const Reg to = place(0);
    t_.narrow(to, vector_of(*step.a, s, 0), vector_of(*step.a, s, 1));
    keep_low(to, m.type);
    if (to_word) t_.lane_word(result(*step.d, 0, 0), to, 0, 4);
    return true;
  }
  const Reg from = signed_of(*step.a, m.from, s);
  for (uint32_t half = 0; half < (to_word ? 1 : 2); ++half) {
    const Reg to = place(half);
    t_.widen(m.from == Number::S16, half == 1, to, from);
    if (to_word) t_.lane_word(result(*step.d, 0, 0), to, 0, 8);
  }
  return true;
}

bool Emitter::small_step(const Step& step, uint32_t s) {
  const Meaning& m = step.meaning;
  const bool to_word = plan_.variables[*step.d].kept == Kept::Word;
  const Reg to = to_word ? t_.vector() : result(*step.d, s, 0);
  bool done = true;
  switch (m.does) {
    case Does::Copy:
    case Does::Spread:
      t_.copy(to, bits_of(*step.a, s, 0));
      break;
    case Does::Select:
      t_.select(to, vector_of(*step.c, s, 0), bits_of(*step.a, s, 0), bits_of(*step.b, s, 0));
      break;
    case Does::Convert: {
      const Reg from = signed_of(*step.a, m.from, s);
      if (m.type == Number::F32)
        done = t_.convert(Number::F32, Number::S32, to, from);
      else
        t_.copy(to, from);
      break;
    }
    default:
      done = small_arithmetic(step, s, to);
  }
  const bool fits = m.does == Does::Copy || m.does == Does::Spread || m.does == Does::Select;
  if (done && !fits) keep_low(to, m.type);
  if (done && to_word) t_.lane_word(result(*step.d, 0, 0), to, 0, 4);
  return done;
}

// Cuts a value of 8 or 16 bits out of a lane with 32 bits of memory.
void Emitter::cut_small(const Step& step, const Reg& reg) {
  const Number from = step.meaning.from;
  const uint32_t above = 32 - bytes_of(from) * 8;
  const bool is_signed = from == Number::S8 || from == Number::S16;
  t_.shift(Does::ShiftLeft, Number::U32, reg, reg, above);
  t_.shift(Does::ShiftRight, is_signed ? Number::S32 : Number::U32, reg, reg, above);
  keep_low(reg, step.meaning.type);
}

// Loads a strip from one place per lane, as bytes or halfwords that are widened together. Returns
// false if this CPU has no such operation.
template <class Place>
bool Emitter::load_small_lanes(const Step& step, const Reg& to, const Place& place) {
  const Target::Mark mark = t_.mark();
  const uint32_t bytes = memory_bytes(step);
  Reg all = t_.vector();
  if (!t_.gathers_small()) return false;
  t_.constant(all, 0, 4);
  for (uint32_t lane = 0; lane < t_.vector_lanes(); ++lane) {
    const Target::Mark inner = t_.mark();
    const Placed at = place(lane);
    t_.insert_small(all, at.base, at.offset, lane, bytes);
    t_.release(inner);
  }
  t_.widen_small(to, all, step.meaning.from);
  keep_low(to, step.meaning.type);
  t_.release(mark);
  return true;
}

bool Emitter::load_small_apart(const Step& step, const Reg& to, const Reg& base, int64_t offset,
                               const Pattern2& steps, uint32_t first) {
  return load_small_lanes(step, to, [&](uint32_t lane) {
    return Placed{base, offset + rise(steps, first + lane)};
  });
}

// The addresses are in memory (Pass::scratch), so each is one load.
bool Emitter::load_small_aside(const Step& step, const Reg& to, uint32_t strip) {
  return load_small_lanes(step, to, [&](uint32_t lane) {
    const Reg address = t_.word();
    t_.load_word(address, t_.pass(),
                 static_cast<int64_t>(offsetof(Pass, scratch)) +
                     int64_t{strip * t_.vector_lanes() + lane} * 8,
                 8);
    return Placed{address, 0};
  });
}

// Loads one lane of a strip; the first lane must be loaded first.
void Emitter::load_small_lane(const Step& step, const Reg& to, uint32_t lane, const Reg& base,
                              int64_t offset) {
  const Target::Mark mark = t_.mark();
  Reg word = t_.word();
  t_.load_small_word(word, base, offset, step.meaning.from, bytes_of(step.meaning.type));
  lane == 0 ? t_.splat(to, word, 4) : t_.set_lane(to, word, lane, 4);
  t_.release(mark);
}

}  // namespace kiln::engine
