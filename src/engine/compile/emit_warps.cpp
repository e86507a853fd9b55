// SPDX-License-Identifier: Apache-2.0
// How does code for one warp continue with the next warps of its block? If a phase is all that a
// warp runs, and its inputs are only scalars and base and step, the values of the next warp differ
// only in the base. This is one addition per value, while leaving the code and entering it again
// would cost more than a short kernel computes. The memory of all these warps is checked at once.
// And how do the lanes of a warp exchange values, or vote?
#include <algorithm>
#include <cstddef>

#include "engine/compile/emitter.h"

namespace kiln::engine {

bool Emitter::is_end(uint32_t op) const { return flow_.is_end(op); }

// How much base and step rises from one warp to the next, as in advance.h.
int64_t Emitter::warp_rise(const Pattern2& steps, int64_t warp_step) const {
  if (plan_.header_rows == kWarpSize) return warp_step;
  return flow_.program().narrow_rows ? steps.row_step * int64_t{kWarpSize / plan_.row_lanes}
                                     : steps.step * int64_t{kWarpSize};
}

bool Emitter::may_go_on() const {
  if (!plan_.whole || !out_->checks_itself) return false;
  if (!flow_.program().narrow_rows && plan_.row_lanes != kWarpSize) return false;
  const std::vector<Advance>& all = flow_.program().advances;
  const auto advances = [&](uint32_t header) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Advance& each) { return each.offset == header; });
  };
  for (const Variable& v : plan_.variables) {
    if (!v.home || !v.input) continue;
    if (v.written || (v.in != Slot::Scalar && v.in != Slot::Header)) return false;
    if (v.in == Slot::Header && !advances(v.slot)) return false;
  }
  return std::all_of(out_->prepared.begin(), out_->prepared.end(), [&](const Prepared& at) {
    return at.of == Place::Of::Header ? advances(at.slot) : at.in == Slot::Scalar;
  });
}

// Is this a comparison with the same result in all warps, because the lowest and the highest lane
// of all of them agree? Or is it computed from such comparisons?
bool Emitter::holds_for_all(const Step& step) const {
  if (!step.d || plan_.variables[*step.d].kept != Kept::Word) return false;
  const auto is_common = [&](const std::optional<uint32_t>& index) {
    if (!index) return true;
    const Variable& v = plan_.variables[*index];
    return common_.count(*index) != 0 || (v.home && v.input && v.in == Slot::Scalar);
  };
  const auto is_header = [&](const std::optional<uint32_t>& index) {
    const Variable& v = plan_.variables[*index];
    return v.home && v.input && v.in == Slot::Header && v.kept == Kept::Steps;
  };
  switch (step.meaning.does) {
    case Does::Compare:
      return bytes_of(step.meaning.type) == 4 && !is_real(step.meaning.type) &&
             (is_common(step.a) || is_header(step.a)) && (is_common(step.b) || is_header(step.b));
    case Does::Logic:
    case Does::CopyPredicate:
    case Does::InvertPredicate:
      return is_common(step.a) && is_common(step.b);
    default:
      return false;
  }
}

// At the border of an image such comparisons decide a branch. They are done once per block, so that
// its warps only compute.
bool Emitter::write_common() {
  ListedMap<uint32_t, uint32_t> written;
  for (const Step& step : plan_.steps) {
    if (step.d) ++written[*step.d];
  }
  for (const Step& step : plan_.steps) {
    if (is_branch(step)) break;
    if (!holds_for_all(step) || written[*step.d] != 1) continue;
    const Target::Mark mark = t_.mark();
    common_.insert(*step.d);
    if (!one(step)) return false;
    t_.release(mark);
  }
  return true;
}

// Does code that runs for each warp read the variable?
bool Emitter::is_read_by_each_warp(uint32_t index) const {
  return std::any_of(plan_.steps.begin(), plan_.steps.end(), [&](const Step& step) {
    if (step.d && common_.count(*step.d)) return false;
    return (step.a == index && !prepared_of_.count(step.index)) || step.b == index ||
           step.c == index || step.under == index ||
           std::count(step.reads.begin(), step.reads.end(), index) != 0;
  });
}

void Emitter::write_next_warp() {
  Label last = t_.label();
  t_.bind(next_warp_);
  t_.jump_if(left_, false, last);
  t_.word_add(left_, left_, -1);
  t_.store_word(left_, t_.pass(), offsetof(Pass, left), 4);
  for (size_t i = 0; i < pointers_.size(); ++i) {
    const Prepared& at = out_->prepared[i];
    if (at.of == Place::Of::Header)
      t_.word_add(pointers_[i], pointers_[i], warp_rise(at.steps, at.warp_step));
  }
  for (uint32_t i = 0; i < plan_.variables.size(); ++i) {
    const Variable& v = plan_.variables[i];
    if (!v.home || !v.input || v.in != Slot::Header || !values_[i].word.isValid()) continue;
    const int64_t rise = warp_rise(v.steps, v.warp_step);
    if (rise == 0 || !is_read_by_each_warp(i)) continue;
    t_.word_add(values_[i].word, values_[i].word, rise);
    if (v.bytes == 4) t_.word_extend(false, values_[i].word, values_[i].word);
  }
  t_.jump(first_step_);
  t_.bind(last);
  leave_with({}, {plan_.phase.end, false});
}

void Emitter::vote(const Step& step) {
  const uint32_t from = step.reads[0], to = step.writes[0];
  const bool is_word = plan_.variables[to].kept == Kept::Word;
  Reg votes = t_.word(), other = t_.word();
  const Reg one = is_word ? result(to, 0, 0) : t_.word();
  if (plan_.variables[from].kept == Kept::Word) {
    t_.word_extend(false, votes, word_of(from));
  } else {
    t_.constant_word(votes, 0);
    for (uint32_t s = 0; s < strips_; ++s)
      t_.mask_to_bits(votes, vector_of(from, s, 0), s * t_.vector_lanes());
  }
  switch (step.vote) {
    case Vote::All:
      t_.constant_word(other, kFullMask);
      t_.word_compare(Comparison::Eq, Number::U32, one, votes, other);
      break;
    case Vote::Any:
      t_.constant_word(other, 0);
      t_.word_compare(Comparison::Ne, Number::U32, one, votes, other);
      break;
    case Vote::Uniform:  // none or all: adding 1 gives at most 1
      t_.word_add(votes, votes, 1);
      t_.word_extend(false, votes, votes);
      t_.constant_word(other, 1);
      t_.word_compare(Comparison::Le, Number::U32, one, votes, other);
      break;
    default:
      t_.copy(one, votes);
  }
  for (uint32_t s = 0; !is_word && s < strips_; ++s) t_.splat(result(to, s, 0), one, 4);
}

// Each lane reads the lane whose number differs in these bits: within the vectors, and between
// them.
List<Reg> Emitter::exchange_bits(const Step& step, uint32_t bits) {
  const uint32_t lanes = t_.vector_lanes(), from = step.reads[0], to = step.writes[0];
  List<Reg> moved;
  for (uint32_t s = 0; s < strips_; ++s) {
    const Reg at = bits_of(from, s ^ bits / lanes, 0);
    moved.push_back(from == to ? t_.vector() : result(to, s, 0));
    bits % lanes ? t_.exchange(moved.back(), at, bits % lanes) : t_.copy(moved.back(), at);
  }
  return moved;
}

// Each lane reads any other lane. Permutes each source vector into the order of its destination,
// which is the same for all vectors of a shuffle up or down, and joins the lanes of several
// sources.
List<Reg> Emitter::exchange_any(const Step& step) {
  const uint32_t lanes = t_.vector_lanes(), from = step.reads[0], to = step.writes[0];
  const Step::Exchange& how = *step.exchange;
  // By lane numbers, four bits each.
  ListedMap<uint64_t, Reg> orders;
  ListedMap<std::pair<uint64_t, uint32_t>, Reg> ordered;
  const auto in_order = [&](uint64_t order, uint32_t strip, const uint8_t* numbers) {
    Reg& reg = ordered[{order, strip}];
    if (reg.isValid()) return reg;
    Reg& by = orders[order];
    if (!by.isValid()) t_.order(by = t_.vector(), numbers);
    t_.permute(reg = t_.vector(), bits_of(from, strip, 0), by);
    return reg;
  };
  List<Reg> moved;
  for (uint32_t s = 0; s < strips_; ++s) {
    const Reg end = from == to ? t_.vector() : result(to, s, 0);
    uint64_t order = 0;
    for (uint32_t i = 0; i < lanes; ++i)
      order |= uint64_t{how.from[s * lanes + i] % lanes} << i * 4;
    const uint32_t kept = ~how.in_range >> s * lanes & ((1u << lanes) - 1);
    Reg now;
    const auto add = [&](const Reg& part, uint32_t of) {
      if (now.isValid()) t_.join(end, now, part, of);
      now = now.isValid() ? end : part;
    };
    if (kept) add(bits_of(from, s, 0), kept);
    for (uint32_t source = 0; source < strips_; ++source) {
      uint32_t of = 0;
      for (uint32_t i = 0; i < lanes; ++i) of |= (how.from[s * lanes + i] / lanes == source) << i;
      if (of & ~kept) add(in_order(order, source, &how.from[s * lanes]), of & ~kept);
    }
    t_.copy(end, now);
    moved.push_back(end);
  }
  return moved;
}

// Everything is read before the first write, because source and destination may be the same
// register.
void Emitter::exchange(const Step& step) {
  const uint32_t to = step.writes[0];
  const std::optional<uint32_t> bits = step.exchange->butterfly();
  const List<Reg> moved = bits ? exchange_bits(step, *bits) : exchange_any(step);
  for (uint32_t s = 0; s < strips_ && step.reads[0] == to; ++s) t_.copy(result(to, s, 0), moved[s]);
  const uint32_t predicate = step.writes[1];
  if (!plan_.variables[predicate].home && !values_[predicate].is_wanted) return;
  place_of(predicate, 0, 0);
  Reg in_range = t_.word();
  t_.constant_word(in_range, step.exchange->in_range);
  t_.bits_to_masks(values_[predicate].regs, in_range);
}

}  // namespace kiln::engine
