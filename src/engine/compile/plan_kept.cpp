// SPDX-License-Identifier: Apache-2.0
// How is each value of a phase kept? The inputs have the pattern of the first warp, and everything
// computed from them follows.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "engine/compile/planner.h"
#include "engine/compile/target.h"

namespace kiln::engine {

bool is_float_arithmetic(const Meaning& m) {
  if (m.type != Number::F32) return false;
  switch (m.does) {
    case Does::PowerOfTwo:
    case Does::DivideNearly:
    case Does::Rounded:
    case Does::Small:
    case Does::Add:
    case Does::Sub:
    case Does::Mul:
    case Does::Mad:
    case Does::Divide:
    case Does::Min:
    case Does::Max:
    case Does::Negate:
    case Does::Absolute:
    case Does::Root:
    case Does::Reciprocal:
    case Does::ReciprocalRoot:
    case Does::Nearest:
    case Does::Truncate:
    case Does::Floor:
    case Does::Ceiling:
      return true;
    default:
      return false;
  }
}

bool is_wide_arithmetic(const Meaning& m) {
  if (m.type != Number::F64) return false;
  switch (m.does) {
    case Does::Add:
    case Does::Sub:
    case Does::Mul:
    case Does::Mad:
    case Does::Divide:
    case Does::Min:
    case Does::Max:
    case Does::Negate:
    case Does::Absolute:
    case Does::Root:
    case Does::Reciprocal:
      return true;
    default:
      return false;
  }
}

// Addresses and branches need to know whether lanes differ, and so does everything that they are
// computed from.
void Planner::find_wanted() {
  for (const Step& step : plan_.steps) {
    const bool asks = is_branch(step) || changes_memory(step) || step.meaning.does == Does::Load ||
                      step.meaning.does == Does::LoadScalar;
    if (asks && step.a) plan_.variables[*step.a].wanted = true;
    if (step.meaning.does == Does::Atomic) plan_.variables[*step.b].wanted = true;
    if (is_branch(step) && step.a) plan_.variables[*step.a].decides = true;
    if (asks || !is_real(step.meaning.from)) continue;
    for (const auto& from : {step.a, step.b, step.c}) {
      if (from) plan_.variables[*from].real = true;
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const Step& step : plan_.steps) {
      // If one of several results is needed, all are.
      for (uint32_t to : step.writes) {
        const Variable& v = plan_.variables[to];
        for (uint32_t from : step.reads) {
          Variable& source = plan_.variables[from];
          changed |= (v.wanted && !source.wanted) || (v.decides && !source.decides);
          source.wanted |= v.wanted, source.decides |= v.decides;
        }
      }
      if (!step.d || !plan_.variables[*step.d].wanted) continue;
      const bool loads = step.meaning.does == Does::Load || step.meaning.does == Does::LoadScalar;
      if (plan_.variables[*step.d].decides) {
        plan_.memory_decides |= loads;
        for (const auto& from : {step.a, step.b, step.c}) {
          if (!from || plan_.variables[*from].decides) continue;
          plan_.variables[*from].decides = changed = true;
        }
      }
      for (const auto& from : {step.a, step.b, step.c}) {
        if (!from || plan_.variables[*from].wanted) continue;
        plan_.variables[*from].wanted = changed = true;
      }
    }
  }
}

Pattern2 Planner::pattern_of(const Variable& v, uint32_t row_lanes) const {
  const auto lane = [&](uint32_t i) -> int64_t {
    uint64_t value = 0;
    std::memcpy(&value, warp_.registers + v.slot + size_t{i} * v.bytes, v.bytes);
    return v.bytes == 8 ? static_cast<int64_t>(value) : static_cast<int32_t>(value);
  };
  Pattern2 seen{lane(1) - lane(0), 0};
  if (row_lanes < kWarpSize) seen.row_step = lane(row_lanes) - lane(0);
  if (v.bytes == 4) {
    seen.step = static_cast<int32_t>(seen.step);
    seen.row_step = static_cast<int32_t>(seen.row_step);
  }
  return seen;
}

// Matrix fragments are in rows of four or eight lanes, whatever shape the block has: if an address
// has such rows, all values are kept in them.
void Planner::look_for_rows() {
  for (uint32_t row_lanes = kWarpSize / 2; row_lanes >= least_row_lanes(); row_lanes /= 2) {
    for (const Variable& v : plan_.variables) {
      const bool is_apart = v.home && v.input && v.wanted && patterns_ && v.in == Slot::Lanes &&
                            !v.blended && v.kept == Kept::Vector && v.bytes >= 4;
      if (!is_apart ||
          !Rises(pattern_of(v, row_lanes), row_lanes).hold(warp_.registers + v.slot, v.bytes))
        continue;
      plan_.row_lanes = row_lanes;
      if (plan_.header_rows) plan_.whole = false;  // the next warp's values do not fit these rows
      look_at_inputs();
      return;
    }
  }
}

// Is it the predicate of a store for some lanes? Keeping it as a mask costs no more than checking
// whether all lanes agree.
bool Planner::is_under(const Variable& v) const {
  return std::any_of(plan_.steps.begin(), plan_.steps.end(), [&](const Step& step) {
    return step.under && &plan_.variables[*step.under] == &v;
  });
}

bool Planner::holds_far_value(const Variable& v) const {
  if ((v.in != Slot::Scalar && v.in != Slot::Lanes) || v.bytes != 8) return false;
  const size_t lane = v.in == Slot::Lanes ? static_cast<size_t>(std::countr_zero(warp_.mask)) : 0;
  int64_t value;
  std::memcpy(&value, warp_.registers + v.slot + lane * sizeof value, sizeof value);
  return is_far_value(value);
}

void Planner::look_at_inputs() {
  for (Variable& v : plan_.variables) {
    if (!v.home || !v.input) continue;
    v.is_far = holds_far_value(v);
    if (v.in == Slot::Scalar) {
      v.kept = Kept::Word;
      continue;
    }
    if (plan_.alone) {
      v.kept = v.bytes >= 4 && v.real ? Kept::Splat : Kept::Word;
      if (v.in == Slot::Predicate) v.kept = Kept::Word;
      continue;
    }
    if (v.in == Slot::Header) {
      const Affine& header = affine_at(warp_, v.slot);
      if (header.state == AffineState::Lanes) continue;  // unknown
      v.steps = header_steps(header, plan_.row_lanes, v.bytes == 4);
      v.warp_step = header_warp_step(header, v.bytes == 4);
      v.kept = v.steps == Pattern2{} ? Kept::Word : Kept::Steps;
      continue;
    }
    v.kept = Kept::Vector;
    if (!v.wanted || v.blended || !patterns_ || v.bytes < 4) continue;
    const std::byte* at = warp_.registers + v.slot;
    if (v.in == Slot::Predicate) {
      uint32_t bits;
      std::memcpy(&bits, at, 4);
      if ((bits == 0 || bits == kFullMask) && !is_under(v)) v.kept = Kept::Word;
      continue;
    }
    const Pattern2 seen = pattern_of(v, plan_.row_lanes);
    // The bits of floats rise by a step only by chance.
    if ((v.real && !(seen == Pattern2{})) || !Rises(seen, plan_.row_lanes).hold(at, v.bytes))
      continue;
    v.steps = seen;
    v.kept = seen == Pattern2{} ? Kept::Word : Kept::Steps;
  }
}

// Values that only Ops write at which a lane exits: the code never reads them, but it may write
// them back.
void Planner::find_unwritten() {
  List<bool> written(plan_.variables.size(), false);
  for (const Step& step : plan_.steps) {
    if (step.d) written[*step.d] = true;
  }
  for (uint32_t i = 0; i < plan_.variables.size(); ++i) {
    Variable& v = plan_.variables[i];
    if (v.home && !v.input && !written[i]) v.input = true;
  }
  look_at_inputs();
}

bool Planner::known(const Step& step) const {
  if (step.under && plan_.variables[*step.under].kept == Kept::Unknown) return false;
  for (uint32_t from : step.reads) {
    if (plan_.variables[from].kept == Kept::Unknown) return false;
  }
  for (const auto& from : {step.a, step.b, step.c}) {
    if (from && plan_.variables[*from].kept == Kept::Unknown) return false;
  }
  return true;
}

bool is_ordering(Comparison comparison) {
  return comparison == Comparison::Lt || comparison == Comparison::Le ||
         comparison == Comparison::Gt || comparison == Comparison::Ge;
}

bool is_one(const Variable* v) { return !v || v->kept == Kept::Word || v->kept == Kept::Splat; }

bool has_steps(const Variable* v) { return v && v->kept == Kept::Steps; }

// The value of a scalar, if it is known or may be assumed.
std::optional<int64_t> Planner::factor_of(const std::optional<uint32_t>& index, Number type) {
  if (!index) return std::nullopt;
  Variable& v = plan_.variables[*index];
  if (!v.is_constant) {
    if (!steps_hold_ || v.in != Slot::Scalar || !v.home || !v.input || v.written)
      return std::nullopt;
    if (!v.held) std::memcpy(&v.constant, warp_.registers + v.slot, v.bytes);
    v.held = true;
  }
  if (type == Number::S32) return static_cast<int32_t>(v.constant);
  return static_cast<int64_t>(bytes_of(type) == 4 ? v.constant & 0xffffffffu : v.constant);
}

// The product of base and step and a scalar, or of two scalars; a third operand is added.
void Planner::steps_of_product(const Step& step, Variable* out) {
  const Variable *a = var(step.a), *b = var(step.b), *c = var(step.c);
  const auto term = [](const Variable* v) { return has_steps(v) || is_one(v); };
  if (!term(a) || !term(b) || !term(c) || (has_steps(a) && has_steps(b))) return;
  Pattern2 product;
  if (has_steps(a) || has_steps(b)) {
    const Pattern2 steps = has_steps(a) ? a->steps : b->steps;
    const auto by = factor_of(has_steps(a) ? step.b : step.a, step.meaning.from);
    if (!by) return;
    product = {steps.step * *by, steps.row_step * *by};
  }
  if (c) product = {product.step + c->steps.step, product.row_step + c->steps.row_step};
  out->kept = Kept::Steps;
  out->steps = product;
}

// Is this a comparison of base and step with a number, for a branch?
bool Planner::takes_ends(const Step& step) const {
  const Meaning& m = step.meaning;
  const Variable *a = var(step.a), *b = var(step.b);
  return may_take_ends() && bytes_of(m.type) == 4 && plan_.variables[*step.d].decides &&
         is_ordering(m.comparison) && ((has_steps(a) && is_one(b)) || (has_steps(b) && is_one(a)));
}

// An index of base and step is often split into a row and a column, by a division by the width of
// an image. Most warps are then in one row. The plan assumes this if the width is a power of two
// above the distance of the lanes, or much larger than it.
bool Planner::is_in_one_part(const Step& step) {
  const Meaning& m = step.meaning;
  const Variable *a = var(step.a), *b = var(step.b);
  if (!steps_hold_ || bytes_of(m.type) != 4 || !has_steps(a) || !is_one(b)) return false;
  const auto by = factor_of(step.b, Number::U32);
  if (!by) return false;
  const bool shifts = m.does == Does::ShiftRight;
  if (shifts && *by >= 31) return false;
  const int64_t size = shifts ? int64_t{1} << *by : m.does == Does::And ? *by + 1 : *by;
  const bool is_power = size > 0 && (size & (size - 1)) == 0;
  if (m.does == Does::And && !is_power) return false;
  const int64_t rows = plan_.row_lanes < kWarpSize ? kWarpSize / plan_.row_lanes - 1 : 0;
  const int64_t span =
      std::abs(a->steps.step) * (plan_.row_lanes - 1) + std::abs(a->steps.row_step) * rows;
  constexpr int64_t kSeldom = 8;
  if (size >> 31 != 0 || size <= span) return false;
  // If the assumption fails, a loop with stores continues in the interpreter; others start again.
  return is_power || (size / kSeldom >= span && (!plan_.phase.loops || plan_.phase.stores));
}

// Values of 8 or 16 bits never rise by a step, and uniform ones are in a vector.
Kept Planner::small_kept(const Step& step) const {
  if (step.meaning.does == Does::Lanewise)
    return step.op.effect == Effect::Scalar ? Kept::Splat : Kept::Vector;
  const bool one = is_one(var(step.a)) && is_one(var(step.b)) && is_one(var(step.c));
  return one && step.meaning.does != Does::Compare ? Kept::Splat : Kept::Vector;
}

// For operations that compute nothing, or whose result is kept the same way for any operands.
bool Planner::is_plain(const Step& step, bool one, bool real, Variable* out) const {
  const Meaning& m = step.meaning;
  switch (m.does) {
    case Does::Load:
    case Does::LoadScalar:
      if (step.place.of == Place::Of::Header) return false;  // see infer_step
      if (one && !is_local(step)) out->kept = m.type == Number::U64 ? Kept::Word : Kept::Splat;
      return true;
    case Does::Atomic:
      return true;
    case Does::Compare:
      if (!real && (one || takes_ends(step))) out->kept = Kept::Word;
      return true;
    case Does::Lanewise:
      if (step.op.effect == Effect::Scalar) out->kept = real ? Kept::Splat : Kept::Word;
      return true;
    case Does::Copy:
    case Does::Spread:
      out->kept = var(step.a)->kept;
      out->steps = var(step.a)->steps;
      return true;
    default:
      return false;
  }
}

// How the result is kept, given the operands.
Variable Planner::result_of(const Step& step) {
  const Meaning& m = step.meaning;
  const Variable *a = var(step.a), *b = var(step.b), *c = var(step.c);
  Variable out;
  const bool one = is_one(a) && is_one(b) && is_one(c);
  const bool real = is_real(m.type) || is_real(m.from) || m.does == Does::Small;
  out.kept = Kept::Vector;
  if (is_plain(step, one, real, &out)) return out;
  if (one && m.does != Does::Load && m.does != Does::LoadScalar) {
    out.kept = real ? Kept::Splat : Kept::Word;
    return out;
  }
  const auto with = [&](int64_t step_a, int64_t row_a) {
    out.kept = Kept::Steps;
    out.steps = {step_a, row_a};
    if (bytes_of(m.type) == 4) {
      out.steps.step = static_cast<int32_t>(step_a);
      out.steps.row_step = static_cast<int32_t>(row_a);
    }
    if (out.steps == Pattern2{}) out.kept = Kept::Word;
  };
  const auto term = [&](const Variable* v) { return has_steps(v) || is_one(v); };
  switch (m.does) {
    case Does::Add:
    case Does::Sub:
      if (real || !term(a) || !term(b)) break;
      if (m.does == Does::Add)
        with(a->steps.step + b->steps.step, a->steps.row_step + b->steps.row_step);
      else
        with(a->steps.step - b->steps.step, a->steps.row_step - b->steps.row_step);
      break;
    case Does::ShiftLeft:
      if (has_steps(a) && b->is_constant && b->constant < bytes_of(m.type) * 8) {
        with(static_cast<int64_t>(static_cast<uint64_t>(a->steps.step) << b->constant),
             static_cast<int64_t>(static_cast<uint64_t>(a->steps.row_step) << b->constant));
      }
      break;
    case Does::Convert:
      if (!real && has_steps(a)) with(a->steps.step, a->steps.row_step);
      break;
    case Does::MulWide:
    case Does::Mul:
    case Does::Mad:
    case Does::MadWide:
      if (real) break;
      steps_of_product(step, &out);
      if (out.kept == Kept::Steps) with(out.steps.step, out.steps.row_step);
      break;
    case Does::Divide:
    case Does::ShiftRight:
      if (!real && is_in_one_part(step)) out.kept = Kept::Word;
      break;
    case Does::Remainder:
    case Does::And:
      if (!real && is_in_one_part(step)) with(a->steps.step, a->steps.row_step);
      break;
    case Does::Min:
    case Does::Max:
      if (real || !may_take_ends() || bytes_of(m.type) != 4) break;
      if (has_steps(a) && is_one(b)) with(a->steps.step, a->steps.row_step);
      if (has_steps(b) && is_one(a)) with(b->steps.step, b->steps.row_step);
      break;
    default:
      break;
  }
  return out;
}

// Numbers that arithmetic reads are in vectors, where the arithmetic is, and others in general
// registers.
Kept Planner::kept_alone(const Step& step) const {
  const Meaning& m = step.meaning;
  const Variable& d = plan_.variables[*step.d];
  if (d.in == Slot::Predicate) return Kept::Word;
  if (d.bytes < 4) return m.does == Does::Small ? Kept::Splat : Kept::Word;
  const bool real = is_real(m.type) || is_real(m.from) || m.does == Does::Small || d.real;
  return real ? Kept::Splat : Kept::Word;
}

bool Planner::infer_step(const Step& step, bool* changed) {
  const Does does = step.meaning.does;
  const bool is_small = is_small_step(step) && does != Does::Copy && does != Does::Spread &&
                        does != Does::Load && does != Does::LoadScalar;
  Variable out;
  if (plan_.alone)
    out.kept = kept_alone(step);
  else if (is_small)
    out.kept = small_kept(step);
  else
    out = result_of(step);
  if (step.place.of == Place::Of::Header &&
      (step.meaning.does == Does::Load || step.meaning.does == Does::LoadScalar)) {
    const bool one = step.place.steps == Pattern2{};
    out.kept = !one ? Kept::Vector : step.meaning.type == Number::U64 ? Kept::Word : Kept::Splat;
  }
  Variable& d = plan_.variables[*step.d];
  Kept kept = out.kept;
  Pattern2 steps = out.steps;
  if (d.kept != Kept::Unknown && (d.kept != kept || !(d.steps == steps))) {
    const bool both_one = (d.kept == Kept::Word || d.kept == Kept::Splat) &&
                          (kept == Kept::Word || kept == Kept::Splat);
    kept = both_one ? Kept::Word : Kept::Vector;
    steps = {};
  }
  if (kept == d.kept && steps == d.steps) return true;
  d.kept = kept;
  d.steps = steps;
  *changed = true;
  return d.in != Slot::Scalar || kept == Kept::Word || kept == Kept::Splat;
}

// Starts from the inputs, and repeats until nothing changes. A variable that is written in several
// ways becomes vectors, so each variable changes only a few times.
bool Planner::infer() {
  for (Step& step : plan_.steps) {
    if (step.place.of != Place::Of::Header) continue;
    const Affine& header = affine_at(warp_, step.place.header);
    if (header.state == AffineState::Lanes) return false;
    step.place.steps = header_steps(header, plan_.row_lanes, step.op.x & kAddress32);
    step.place.warp_step = header_warp_step(header, step.op.x & kAddress32);
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const Step& step : plan_.steps) {
      if (!step.d || !known(step)) continue;
      if (step.writes.empty() && !infer_step(step, &changed)) return false;
      for (uint32_t to : step.writes) {
        Kept& kept = plan_.variables[to].kept;
        const bool one = step.vote != Vote::None && (kept == Kept::Unknown || kept == Kept::Word);
        changed |= kept != (one ? Kept::Word : Kept::Vector);
        kept = one ? Kept::Word : Kept::Vector;
      }
    }
  }
  for (const Step& step : plan_.steps) {
    if (!known(step)) return false;
    if (is_branch(step) && step.a && plan_.variables[*step.a].kept != Kept::Word) {
      if (plan_.variables[*step.a].kept != Kept::Vector) return false;
      plan_.lanes_decide |= !plan_.masked;
    }
  }
  return true;
}

// Is it written on every path from the entry to an exit?
bool Planner::is_assigned_at_exits(uint32_t variable) const {
  if (plan_.phase.first() != plan_.phase.begin) return false;
  if (!plan_.phase.branches) return true;
  // The entry is at the top, so this means before the first branch of the phase.
  for (const Step& step : plan_.steps) {
    if (step.d == variable) return true;
    if (!step.d) return false;
  }
  return false;
}

// The numbers that f32 arithmetic gives do not depend on the bits of a NaN, so these must be a
// GPU's only where they can be observed. Values from memory or from the frame keep their bits.
void Planner::find_lazy() {
  for (uint32_t i = 0; i < plan_.variables.size(); ++i) {
    Variable& v = plan_.variables[i];
    v.quiet = v.written && v.arithmetic && !v.input;
    v.flushed &= v.written && !v.input;
    v.lazy = v.written && v.arithmetic && v.in != Slot::Predicate && !v.blended &&
             (!v.input || is_assigned_at_exits(i));
  }
  for (const Step& step : plan_.steps) {
    // These change a sign or move bits, and leave signaling NaNs signaling.
    const Does does = step.meaning.does;
    if (does == Does::Negate || does == Does::Absolute || does == Does::Small)
      plan_.variables[*step.d].quiet = false;
    const bool compares = does == Does::Compare && step.meaning.type == Number::F32;
    if (is_float_arithmetic(step.meaning) || compares) continue;
    const bool converts = does == Does::Convert || does == Does::Small || does == Does::Whole;
    if (converts && step.meaning.from == Number::F32 && step.meaning.type != Number::F64) continue;
    for (const auto& from : {step.a, step.b, step.c}) {
      // An input may hold raw bits, which must not become canonical here.
      if (from && plan_.variables[*from].input) plan_.variables[*from].lazy = false;
    }
    for (uint32_t from : step.reads) {
      if (plan_.variables[from].input) plan_.variables[from].lazy = false;
    }
  }
}

// If two f64 operands are NaN, a GPU's result has the bits of one of them; which one depends on the
// operation, and differs on each CPU. If all NaNs have the bits of NaNs that arithmetic creates,
// the difference cannot be observed. So other NaNs are looked for before arithmetic reads them, and
// if there is one, the interpreter continues: inputs are checked when the phase begins, other
// values at the Op (emit_numbers.cpp).
void Planner::find_clean() {
  for (const Step& step : plan_.steps) {
    if (!is_wide_arithmetic(step.meaning)) continue;
    for (const auto& from : {step.a, step.b, step.c}) {
      if (from) plan_.variables[*from].counted = true;
    }
  }
  for (Variable& v : plan_.variables) v.clean = v.bytes == 8 && (!v.input || v.counted);
  for (bool changed = true; changed;) {
    changed = false;
    const auto spoil = [&](uint32_t index) {
      changed |= plan_.variables[index].clean;
      plan_.variables[index].clean = false;
    };
    for (const Step& step : plan_.steps) {
      for (uint32_t to : step.writes) spoil(to);
      if (step.d && step.writes.empty() && !gives_clean(step)) spoil(*step.d);
    }
  }
}

bool Planner::gives_clean(const Step& step) const {
  const Meaning& m = step.meaning;
  const auto clean = [&](const std::optional<uint32_t>& from) {
    return plan_.variables[*from].clean;
  };
  switch (m.does) {
    case Does::Convert:  // an integer is not a NaN
      return m.type == Number::F64 && m.from != Number::F32;
    case Does::Copy:
    case Does::Spread:
      return clean(step.a);
    case Does::Select:
      return clean(step.a) && clean(step.b);
    default:
      return is_wide_arithmetic(m);
  }
}

// Do the lanes of a value rise by the same step along a row, and from row to row? Each entry of
// machine code asks this, so the rises are computed once.
namespace {

template <class T>
bool lanes_rise(const std::byte* at, const T* rises) {
  T lanes[kWarpSize];
  std::memcpy(lanes, at, sizeof lanes);
  T differs = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) differs |= lanes[i] ^ (lanes[0] + rises[i]);
  return differs == 0;
}

}  // namespace

Rises::Rises(const Pattern2& steps, uint32_t row_lanes) {
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    wide[i] = static_cast<uint64_t>(steps.step) * (i % row_lanes) +
              static_cast<uint64_t>(steps.row_step) * (i / row_lanes);
    narrow[i] = static_cast<uint32_t>(wide[i]);
  }
}

bool Rises::hold(const std::byte* lanes, uint32_t bytes) const {
  return bytes == 8 ? lanes_rise(lanes, wide) : lanes_rise(lanes, narrow);
}

}  // namespace kiln::engine
