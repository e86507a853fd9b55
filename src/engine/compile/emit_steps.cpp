// SPDX-License-Identifier: Apache-2.0
// How does each step of a plan become instructions, for every way of keeping its values?
#include <bit>

#include "engine/compile/emitter.h"

namespace kiln::engine {

// If vectors are made from base and step, broadcasts the base where it is computed; all uses come
// later.
void Emitter::splat_base(uint32_t index) {
  const Variable& v = plan_.variables[index];
  Value& value = values_[index];
  // The next warp has another base.
  const bool stays = v.home ? !v.written && !out_->goes_on : true;
  if (v.kept != Kept::Steps || !value.is_read_as_vector || !stays || !t_.adds_steps()) return;
  value.splat = t_.new_vector();
  t_.splat(value.splat, value.word, v.bytes);
}

bool Emitter::one(const Step& step) {
  switch (step.meaning.does) {
    case Does::Branch:
    case Does::BranchIf:
    case Does::BranchUnless:
      branch(step);
      return true;
    case Does::Load:
    case Does::LoadScalar:
      return load(step);
    case Does::Atomic:
      return atomic(step);
    case Does::Lanewise:
      return call_handler(step);
    case Does::Warpwide:
      if (is_parts(step.meaning)) return on_parts(step);
      if (step.vote != Vote::None)
        vote(step);
      else
        step.exchange ? exchange(step) : call_warpwide(step);
      return true;
    default:
      break;
  }
  const Variable& d = plan_.variables[*step.d];
  if (d.in == Slot::Predicate && d.kept == Kept::Vector) return on_predicates(step);
  if (plan_.alone && step.meaning.does == Does::Compare) return compare_alone(step);
  if (plan_.alone && d.kept == Kept::Word && is_small_step(step)) {
    if (small_alone(step)) return true;
    if (step.meaning.does == Does::Small) return false;
  }
  if (d.kept == Kept::Steps) return on_steps(step);
  const auto has_steps = [&](const std::optional<uint32_t>& from) {
    return from && plan_.variables[*from].kept == Kept::Steps;
  };
  if (step.meaning.does == Does::Compare && (has_steps(step.a) || has_steps(step.b))) {
    compare_ends(step);
    return true;
  }
  // Operations without instructions on general registers are done in one lane of a vector.
  const Does does = step.meaning.does;
  if (d.kept == Kept::Word && has_steps(step.a) &&
      (does == Does::Divide || does == Does::ShiftRight))
    return part_of_steps(step);
  const bool real = is_real(step.meaning.type) || is_real(step.meaning.from) ||
                    does == Does::Small || does == Does::Divide || does == Does::Remainder ||
                    does == Does::MulHigh || does == Does::Absolute || is_on_bits(does) ||
                    does == Does::Cast || does == Does::Whole || does == Does::FunnelLeft ||
                    does == Does::FunnelRight;
  const bool moves = step.meaning.does == Does::Copy || step.meaning.does == Does::Spread ||
                     step.meaning.does == Does::Select;
  const bool is_small =
      is_small_step(step) && step.meaning.does != Does::Copy && step.meaning.does != Does::Spread;
  if (d.kept == Kept::Word && (!real || moves) && !is_small) return on_words(step);
  return on_vectors(step);
}

bool Emitter::on_words(const Step& step) {
  const Meaning& m = step.meaning;
  const Reg a = word_of(*step.a);
  const Reg b = step.b ? word_of(*step.b) : Reg();
  const Reg d = result(*step.d, 0, 0);
  const Op& op = step.op;
  switch (m.does) {
    case Does::Copy:
    case Does::Spread:
      t_.copy(d, a);
      return true;
    case Does::Compare:
      t_.word_compare(m.comparison, m.type, d, a, b);
      return true;
    case Does::CopyPredicate:
      op.y ? (void)t_.word_unary(Does::Not, Number::U64, d, a) : t_.copy(d, a);
      return true;
    case Does::InvertPredicate:
      return t_.word_unary(Does::Not, Number::U64, d, a);
    case Does::Logic: {
      Reg first = a;
      if (op.y) {
        first = t_.word();
        t_.word_unary(Does::Not, Number::U64, first, a);
      }
      const Does how = op.x == 0 ? Does::And : op.x == 1 ? Does::Or : Does::Xor;
      return t_.word_binary(how, Number::U64, d, first, b);
    }
    case Does::Select:
      t_.word_select(d, word_of(*step.c), a, b);
      return true;
    case Does::Convert:
      bytes_of(m.type) == 8 ? t_.word_extend(m.from == Number::S32, d, a)
                            : t_.word_extend(false, d, a);
      return true;
    case Does::MulWide:
    case Does::MadWide: {
      Reg x = t_.word(), y = t_.word();
      t_.word_extend(m.from == Number::S32, x, a);
      t_.word_extend(m.from == Number::S32, y, b);
      t_.word_binary(Does::Mul, Number::U64, x, x, y);
      if (m.does == Does::MulWide)
        t_.copy(d, x);
      else
        t_.word_binary(Does::Add, Number::U64, d, x, word_of(*step.c));
      return true;
    }
    case Does::Mad: {
      Reg product = t_.word();
      t_.word_binary(Does::Mul, m.type, product, a, b);
      return t_.word_binary(Does::Add, m.type, d, product, word_of(*step.c));
    }
    default:
      return m.operands == 1 ? t_.word_unary(m.does, m.type, d, a)
                             : t_.word_binary(m.does, m.type, d, a, b);
  }
}

// A 32-bit value is extended to 64 bits lane by lane; base and step can be extended only if no lane
// wraps.
void Emitter::check_widening(const Step& step, bool is_signed) {
  const auto has_steps = [&](const std::optional<uint32_t>& from) {
    return from && plan_.variables[*from].kept == Kept::Steps;
  };
  if (has_steps(step.a))
    ends_of(*step.a, is_signed);
  else if (has_steps(step.b))
    ends_of(*step.b, is_signed);
}

// The lowest and the highest lane of a 32-bit value, after a check that no lane wraps around; with
// `of_all_warps`, over all warps that the code continues with.
Emitter::Ends Emitter::ends_of(uint32_t index, bool is_signed, bool of_all_warps) {
  const Pattern2& steps = plan_.variables[index].steps;
  const auto [low, high] = range(steps);
  Reg wide = t_.word(), behind;
  t_.word_extend(is_signed, wide, word_of(index));
  const int64_t each = of_all_warps ? warp_rise(steps, plan_.variables[index].warp_step) : 0;
  if (each) {
    behind = t_.word();
    t_.constant_word(behind, static_cast<uint64_t>(each));
    t_.word_binary(Does::Mul, Number::U64, behind, behind, left_);
  }
  const auto end = [&](int64_t rise, bool rises_on) {
    if (rise == 0 && !rises_on) return wide;
    Reg moved = t_.word(), back = t_.word();
    t_.word_add(moved, wide, rise);
    if (rises_on) t_.word_binary(Does::Add, Number::U64, moved, moved, behind);
    t_.word_extend(is_signed, back, moved);
    t_.jump_if_differ(back, moved, bail());
    return moved;
  };
  const Reg least = end(low, each < 0);
  return {least, end(high, each > 0)};
}

// All lanes agree if the lowest and the highest do.
void Emitter::compare_ends(const Step& step) {
  const Meaning& m = step.meaning;
  const bool is_signed = m.type == Number::S32;
  const bool first = plan_.variables[*step.a].kept == Kept::Steps;
  const Ends ends = ends_of(first ? *step.a : *step.b, is_signed, common_.count(*step.d) != 0);
  Reg other = t_.word(), low = t_.word();
  t_.word_extend(is_signed, other, word_of(first ? *step.b : *step.a));
  const Reg d = result(*step.d, 0, 0);
  const auto holds = [&](const Reg& to, const Reg& end) {
    t_.word_compare(m.comparison, Number::S64, to, first ? end : other, first ? other : end);
  };
  holds(low, ends.least);
  holds(d, ends.most);
  t_.jump_if_differ(low, d, bail());
}

bool Emitter::on_steps(const Step& step) {
  const Meaning& m = step.meaning;
  const bool is_signed = m.from == Number::S32;
  const bool widens = bytes_of(m.type) == 8 && bytes_of(m.from) == 4;
  if (m.does == Does::Min || m.does == Does::Max) return clamp_steps(step);
  if (m.does == Does::Remainder || m.does == Does::And) return part_of_steps(step);
  if (widens && (m.does == Does::Convert || m.does == Does::MulWide || m.does == Does::MadWide))
    check_widening(step, is_signed);
  if (m.does == Does::MulWide || m.does == Does::MadWide || m.does == Does::Mad ||
      m.does == Does::Convert || m.does == Does::Copy || m.does == Does::Spread)
    return on_words(step);
  return t_.word_binary(m.does, m.type, result(*step.d, 0, 0), word_of(*step.a), word_of(*step.b));
}

// The value without signaling NaNs.
Reg Emitter::quieted(const Reg& reg) {
  Reg clean = t_.vector();
  t_.copy(clean, reg);
  t_.canonicalize(clean, nan());
  return clean;
}

// Calls the handler of an Op that has no instructions here: the operands go where the handler reads
// them.
bool Emitter::call_handler(const Step& step) {
  if (plan_.alone) return false;  // see call_alone()
  for (const auto& from : {step.a, step.b, step.c}) {
    if (from) put_in_frame(*from);
  }
  const Variable& d = plan_.variables[*step.d];
  const Op* op = &flow_.program().ops[step.index];
  uint32_t slot = d.slot;
  if ((plan_.masked || step.under) && d.in != Slot::Scalar) {  // others have another value
    out_->calls.push_back(std::make_unique<Op>(*op));
    out_->calls.back()->d = slot = kScratch;
    op = out_->calls.back().get();
  } else {
    staged_.insert(d.slot);
  }
  t_.call(reinterpret_cast<const void*>(op->run), warp_, op);
  if (d.in == Slot::Scalar) {
    if (d.kept == Kept::Splat)
      t_.load_splat(result(*step.d, 0, 0), registers_, d.slot, d.bytes);
    else
      t_.load_word(result(*step.d, 0, 0), registers_, d.slot, d.bytes);
    return true;
  }
  if (d.kept != Kept::Vector) return false;
  const uint32_t halves = halves_of(d.bytes);
  for (uint32_t s = 0; s < strips_; ++s) {
    if (d.bytes < 4) {
      t_.load_small(result(*step.d, s, 0), registers_,
                    int64_t{slot} + int64_t{s} * t_.vector_lanes() * 2, Number::U16);
      continue;
    }
    for (uint32_t h = 0; h < halves; ++h)
      t_.load(result(*step.d, s, h), registers_, int64_t{slot} + (s * halves + h) * vector_bytes());
  }
  return true;
}

void Emitter::call_warpwide(const Step& step) {
  for (uint32_t from : step.reads) put_in_frame(from);
  const Op& op = flow_.program().ops[step.index];
  t_.call(reinterpret_cast<const void*>(op.run), warp_, &op);
  for (uint32_t to : step.writes) {
    staged_.insert(plan_.variables[to].slot);
    if (plan_.variables[to].home || values_[to].is_wanted) read_input(to);
  }
}

void Emitter::put_in_frame(uint32_t index) {
  const Variable& v = plan_.variables[index];
  if (v.home && v.input && !v.written && !staged_.count(v.slot)) return;  // it is there
  staged_.insert(v.slot);
  plan_.masked&& v.in != Slot::Scalar ? write_some(index) : write_back(index);
}

bool Emitter::on_vectors(const Step& step) {
  const bool wide = bytes_of(step.meaning.type) == 8 || bytes_of(step.meaning.from) == 8;
  take_over_sum(step);
  if (is_wide_arithmetic(step.meaning)) expect_operands(step);
  const List<uint32_t> spread = spread_words(step);
  const bool rounds = step.meaning.does == Does::Rounded;
  if (rounds) t_.round(step.op.imm);
  const Does does = step.meaning.does;
  if (does == Does::Small && !small_floats(step)) return false;
  for (uint32_t s = 0; does != Does::Small && s < strip_count(*step.d); ++s) {
    const Target::Mark mark = t_.mark();
    const bool done = does == Does::Cast || does == Does::Whole ? converted(step, s)
                      : is_small_step(step) && !wide            ? small_step(step, s)
                      : wide                                    ? wide_step(step, s)
                                                                : vector_step(step, s);
    if (!done) return false;
    t_.release(mark);
  }
  if (rounds) t_.round_as_before();
  for (uint32_t index : spread) values_[index].splat = Reg();
  return true;
}

// Broadcasts words that all strips read as a vector once, until the end of the step.
List<uint32_t> Emitter::spread_words(const Step& step) {
  List<uint32_t> out;
  if (strip_count(*step.d) == 1) return out;
  for (const auto& from : {step.a, step.b, step.c}) {
    if (!from || values_[*from].splat.isValid()) continue;
    const Variable& v = plan_.variables[*from];
    const bool is_base = v.kept == Kept::Steps && t_.adds_steps();
    if ((v.kept != Kept::Word && !is_base) || v.in == Slot::Predicate) continue;
    const Reg splat = t_.vector();
    t_.splat(splat, word_of(*from), lane_bytes(v.bytes));
    values_[*from].splat = splat;
    out.push_back(*from);
  }
  return out;
}

// Flushes subnormal values to zero, unless no lane can have one.
Reg Emitter::flushed_of(uint32_t index, uint32_t s) {
  const Variable& v = plan_.variables[index];
  const Reg reg = vector_of(index, s, 0);
  const bool is_normal =
      v.is_constant && ((v.constant & 0x7f800000u) != 0 || (v.constant & 0x7fffffffu) == 0);
  if (v.flushed || is_normal) return reg;
  Reg normal = t_.vector();
  t_.flush(normal, reg);
  return normal;
}

bool Emitter::float_step(const Step& step, uint32_t s, const Reg& to) {
  const Meaning& m = step.meaning;
  const bool rounds = m.does == Does::Rounded;
  const Does does = rounds ? m.floats.does : m.does;
  const uint32_t operands = !rounds ? m.operands : does == Does::Mad ? 3 : 2;
  const bool flushes = m.floats.flushes || (rounds && step.op.x);
  const bool saturates = m.floats.saturates || (rounds && step.op.y);
  const bool picks = (does == Does::Min || does == Does::Max) && t_.needs_quiet_operands();
  // A power of a subnormal number is 1 anyway.
  const bool flushes_operands = flushes && does != Does::PowerOfTwo;
  const auto operand = [&](const std::optional<uint32_t>& from) {
    const Reg reg = flushes_operands ? flushed_of(*from, s) : vector_of(*from, s, 0);
    return picks && !plan_.variables[*from].quiet ? quieted(reg) : reg;
  };
  const Reg a = operand(step.a);
  const Reg b = operands > 1 ? operand(step.b) : Reg(), c = operands > 2 ? operand(step.c) : Reg();
  const bool by_double =
      plan_.by_double && !rounds && by_way_of_double(does, to, {a, b, c}, operands);
  const bool done = by_double       ? true
                    : operands == 1 ? t_.unary(does, m.type, to, a)
                    : operands == 2 ? t_.binary(does, m.type, to, a, b)
                                    : t_.ternary(does, m.type, to, a, b, c);
  if (flushes) t_.flush(to, to);
  if (saturates) t_.unary(Does::Saturate, m.type, to, to);
  return done;
}

bool Emitter::vector_step(const Step& step, uint32_t s) {
  const Meaning& m = step.meaning;
  const Variable& d = plan_.variables[*step.d];
  const bool to_word = d.kept == Kept::Word;
  const Reg to = to_word ? t_.vector() : result(*step.d, s, 0);
  bool done = true;
  if (m.does == Does::Copy || m.does == Does::Spread) {
    if (plan_.variables[*step.a].kept == Kept::Word && !values_[*step.a].splat.isValid())
      t_.splat(to, word_of(*step.a), 4);
    else
      t_.copy(to, bits_of(*step.a, s, 0));
  } else if (m.does == Does::Select) {
    t_.select(to, vector_of(*step.c, s, 0), bits_of(*step.a, s, 0), bits_of(*step.b, s, 0));
  } else if (is_on_bits(m.does)) {
    done = bits_step(step, s, to);
  } else if (m.does == Does::CopySign) {
    Reg sign = t_.vector();
    t_.constant(sign, 0x80000000u, 4);
    t_.select_bits(to, sign, bits_of(*step.a, s, 0), bits_of(*step.b, s, 0));
  } else if (m.does == Does::Convert) {
    const bool from_bits = m.from != Number::F32;
    done = t_.convert(m.type, m.from, to,
                      from_bits ? bits_of(*step.a, s, 0) : vector_of(*step.a, s, 0));
  } else if (m.type == Number::F32) {
    done = float_step(step, s, to);
    if (!d.lazy || to_word) t_.canonicalize(to, nan());
  } else {
    const Reg a = bits_of(*step.a, s, 0);
    const bool shifts = m.does == Does::ShiftLeft || m.does == Does::ShiftRight;
    const bool funnels = m.does == Does::FunnelLeft || m.does == Does::FunnelRight;
    if (funnels && plan_.variables[*step.c].is_constant &&
        (plan_.variables[*step.c].constant & 31) != 0) {
      t_.funnel(m.does, to, a, bits_of(*step.b, s, 0),
                static_cast<uint32_t>(plan_.variables[*step.c].constant & 31));
    } else if (shifts && plan_.variables[*step.b].is_constant) {
      const uint64_t by = plan_.variables[*step.b].constant & 0xffffffffu;
      if (by < 32)
        done = t_.shift(m.does, m.type, to, a, static_cast<uint32_t>(by));
      else if (m.does == Does::ShiftRight && m.type == Number::S32)
        done = t_.shift(m.does, m.type, to, a, 31);
      else
        t_.constant(to, 0, 4);
    } else {
      done = m.operands == 1   ? t_.unary(m.does, m.type, to, a)
             : m.operands == 2 ? t_.binary(m.does, m.type, to, a, bits_of(*step.b, s, 0))
                               : t_.ternary(m.does, m.type, to, a, bits_of(*step.b, s, 0),
                                            bits_of(*step.c, s, 0));
    }
  }
  if (done && to_word) t_.lane_word(result(*step.d, 0, 0), to, 0, 4);
  return done;
}

// Usually an index times the size of an element.
void Emitter::mul_wide(const Step& step, uint32_t s, uint32_t h, const Reg& to) {
  const bool is_signed = step.meaning.from == Number::S32;
  const Variable& b = plan_.variables[*step.b];
  const auto by = static_cast<uint32_t>(b.constant);
  const Reg a = bits_of(*step.a, s, 0);
  if (b.is_constant && std::has_single_bit(by) && by >> 31 == 0) {
    t_.widen(is_signed, h == 1, to, a);
    if (by > 1)
      t_.shift(Does::ShiftLeft, Number::U64, to, to, static_cast<uint32_t>(std::countr_zero(by)));
  } else if (b.kept == Kept::Word || b.kept == Kept::Splat) {
    t_.mul_wide_by_one(is_signed, h == 1, to, a, bits_of(*step.b, s, 0));
  } else {
    t_.mul_wide(is_signed, h == 1, to, a, bits_of(*step.b, s, 0));
  }
}

bool Emitter::wide_step(const Step& step, uint32_t s) {
  const Meaning& m = step.meaning;
  const bool real = is_real(m.type) || is_real(m.from);
  if (real && m.does != Does::Select && m.does != Does::Copy) return wide_float(step, s);
  if (is_small_step(step)) return convert_small_wide(step, s);
  if (bytes_of(m.type) == 4) {  // 64 bits to 32
    if (m.does != Does::Convert) return false;
    t_.narrow(result(*step.d, s, 0), vector_of(*step.a, s, 0), vector_of(*step.a, s, 1));
    return true;
  }
  // A splat is one register, and the result may be an operand.
  const uint32_t halves = plan_.variables[*step.d].kept == Kept::Vector ? 2 : 1;
  for (uint32_t h = 0; h < halves; ++h) {
    const Reg to = result(*step.d, s, h);
    const bool high = h == 1, is_signed = m.from == Number::S32;
    bool done = true;
    switch (m.does) {
      case Does::Copy:
      case Does::Spread:
        t_.copy(to, vector_of(*step.a, s, h));
        break;
      case Does::Convert:
        t_.widen(is_signed, high, to, bits_of(*step.a, s, 0));
        break;
      case Does::MulWide:
        mul_wide(step, s, h, to);
        break;
      case Does::MadWide: {
        Reg product = t_.vector();
        mul_wide(step, s, h, product);
        done = t_.binary(Does::Add, Number::U64, to, product, vector_of(*step.c, s, h));
        break;
      }
      case Does::Select: {
        Reg mask = t_.vector();
        t_.widen(true, high, mask, vector_of(*step.c, s, 0));
        t_.select(to, mask, vector_of(*step.a, s, h), vector_of(*step.b, s, h));
        break;
      }
      case Does::ShiftLeft:
      case Does::ShiftRight: {
        const Variable& by = plan_.variables[*step.b];
        if (!by.is_constant || (by.constant & 0xffffffffu) >= 64) return false;
        done = t_.shift(m.does, m.type, to, vector_of(*step.a, s, h),
                        static_cast<uint32_t>(by.constant));
        break;
      }
      default:
        done = m.operands == 1   ? t_.unary(m.does, m.type, to, vector_of(*step.a, s, h))
               : m.operands == 2 ? t_.binary(m.does, m.type, to, vector_of(*step.a, s, h),
                                             vector_of(*step.b, s, h))
                                 : t_.ternary(m.does, m.type, to, vector_of(*step.a, s, h),
                                              vector_of(*step.b, s, h), vector_of(*step.c, s, h));
    }
    if (!done) return false;
  }
  return true;
}

bool Emitter::compare(const Step& step, uint32_t s) {
  return compare_to(step, s, result(*step.d, s, 0));
}

bool Emitter::compare_to(const Step& step, uint32_t s, const Reg& to) {
  const Meaning& m = step.meaning;
  if (is_small(m.type)) {
    t_.compare(m.comparison, Number::S32, to, signed_of(*step.a, m.type, s),
               signed_of(*step.b, m.type, s));
    return true;
  }
  if (bytes_of(m.type) == 4) {
    const bool real = m.type == Number::F32;
    const auto operand = [&](uint32_t from) {
      return m.floats.flushes ? flushed_of(from, s)
             : real           ? vector_of(from, s, 0)
                              : bits_of(from, s, 0);
    };
    t_.compare(m.comparison, m.type, to, operand(*step.a), operand(*step.b));
    return true;
  }
  Reg low = t_.vector(), high = t_.vector();
  t_.compare(m.comparison, m.type, low, vector_of(*step.a, s, 0), vector_of(*step.b, s, 0));
  t_.compare(m.comparison, m.type, high, vector_of(*step.a, s, 1), vector_of(*step.b, s, 1));
  t_.narrow(to, low, high);
  return true;
}

bool Emitter::on_predicates(const Step& step) {
  const Op& op = step.op;
  for (uint32_t s = 0; s < strips_; ++s) {
    const Does does = step.meaning.does;
    const Target::Mark mark = t_.mark();
    if (does == Does::Compare) {
      if (!compare(step, s)) return false;
      t_.release(mark);
      continue;
    }
    const Reg to = result(*step.d, s, 0);
    Reg a = vector_of(*step.a, s, 0);
    if (does == Does::InvertPredicate || (does != Does::Select && op.y)) {
      Reg inverse = t_.vector();
      t_.unary(Does::Not, Number::U32, inverse, a);
      a = inverse;
    }
    if (does == Does::Logic) {
      const Does how = op.x == 0 ? Does::And : op.x == 1 ? Does::Or : Does::Xor;
      t_.binary(how, Number::U32, to, a, vector_of(*step.b, s, 0));
    } else {
      t_.copy(to, a);
    }
    t_.release(mark);
  }
  return true;
}

}  // namespace kiln::engine
