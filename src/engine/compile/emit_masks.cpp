// SPDX-License-Identifier: Apache-2.0
// How does a loop run whose lanes leave it at different times, or code whose lanes diverge? In a
// loop, a mask has the lanes that still run. The others compute along, but their results are
// discarded and their loads replaced; no other lane can observe this. The loop ends when no lane
// runs.
#include <cstddef>

#include "engine/compile/emitter.h"

namespace kiln::engine {

void Emitter::begin_masks() {
  if (!plan_.masked) return;
  if (plan_.apart) {
    active_bits_ = t_.new_word(), others_ = t_.new_word();
    t_.load_word(active_bits_, t_.pass(), offsetof(Pass, mask), 4);
    t_.constant_word(others_, 0);
    for (uint32_t s = 0; s < strips_; ++s) active_.push_back(t_.new_vector());
    make_active();
    return;
  }
  Reg all = t_.word(), own = all;
  t_.load_word(all, t_.pass(), offsetof(Pass, mask), 4);
  if (out_->lanes < kWarpSize)
    t_.word_binary(Does::ShiftRight, Number::U32, own = t_.word(), all, first_lane_);
  for (uint32_t s = 0; s < strips_; ++s) active_.push_back(t_.vector());
  t_.bits_to_masks(active_, own);
}

// The mask, for lanes of this size.
Reg Emitter::active(uint32_t strip, uint32_t half, uint32_t bytes) {
  if (bytes == 4) return active_[strip];
  Reg wide = t_.vector();
  t_.widen(true, half == 1, wide, active_[strip]);
  return wide;
}

// Merges the result of the step: for the lanes that run, or for the lanes under the branch that
// became a mask.
void Emitter::blend(const Step& step, uint32_t index) {
  const Variable& v = plan_.variables[index];
  if (!v.blended) return;
  const uint32_t halves = halves_of(v.bytes);
  for (uint32_t s = 0; s < strips_; ++s) {
    for (uint32_t h = 0; h < halves; ++h) {
      const Target::Mark mark = t_.mark();
      const Reg to = place_of(index, s, h), from = result(index, s, h);
      if (plan_.masked) {
        t_.blend(to, from, active(s, h, lane_bytes(v.bytes)));
      } else if (!step.under) {
        t_.copy(to, from);
      } else {
        Reg mask = vector_of(*step.under, s, 0);
        if (v.bytes == 8) {
          const Reg narrow = mask;
          t_.widen(true, h == 1, mask = t_.vector(), narrow);
        }
        step.under_not ? t_.blend_others(to, from, mask) : t_.blend(to, from, mask);
      }
      t_.release(mark);
    }
  }
}

Reg Emitter::merged_mask(const Step& step, uint32_t strip) {
  const Reg given = vector_of(*step.under, strip, 0);
  if (!step.under_not) return given;
  Reg mask = t_.vector();
  t_.unary(Does::Not, Number::U32, mask, given);
  return mask;
}

// The lanes that run the step, as masks for lanes of this size.
Reg Emitter::runs(const Step& step, uint32_t strip, uint32_t half, uint32_t bytes) {
  if (plan_.masked) return active(strip, half, bytes);
  const Reg narrow = merged_mask(step, strip);
  if (bytes == 4) return narrow;
  Reg wide = t_.vector();
  t_.widen(true, half == 1, wide, narrow);
  return wide;
}

void Emitter::jump_if_none(const Step& step, const Label& to) {
  const Target::Mark mark = t_.mark();
  Reg bits = t_.word();
  t_.constant_word(bits, 0);
  for (uint32_t s = 0; s < strips_; ++s)
    t_.mask_to_bits(bits, merged_mask(step, s), s * t_.vector_lanes());
  t_.jump_if(bits, false, to);
  t_.release(mark);
}

// Skips the Ops of a branch that became a mask if no lane needs them. Only if there are many, or if
// they load from memory that may not exist.
void Emitter::begin_merged(size_t first) {
  constexpr size_t kFewest = 8;
  const Step& step = plan_.steps[first];
  size_t end = first;
  bool loads = false;
  for (; end < plan_.steps.size() && plan_.steps[end].under &&
         plan_.steps[end].resume == step.resume && plan_.steps[end].index < step.under_end;
       ++end)
    loads |= plan_.steps[end].meaning.does == Does::Load;
  if (plan_.masked || !(loads || end - first >= kFewest) ||
      plan_.variables[*step.under].kept != Kept::Vector)
    return;
  if (merged_.empty() || merged_.back().step != end) merged_.push_back({end, t_.label()});
  jump_if_none(step, merged_.back().label);
}

void Emitter::end_merged(size_t next) {
  for (; !merged_.empty() && next >= merged_.back().step; merged_.pop_back()) {
    t_.bind(merged_.back().label);
    checked_.clear();
    scaled_.clear();
    found_.clear();
  }
}

// The branch back at the end of the loop. A pass with very many iterations starts again in the
// interpreter, which gives other warps a turn.
void Emitter::branch_masked(const Step& step) {
  const uint32_t target = flow_.index_of(step.op.target);
  for (uint32_t s = 0; s < strips_; ++s) {
    Reg goes_on = vector_of(*step.a, s, 0);
    if (step.meaning.does == Does::BranchUnless) {
      Reg inverse = t_.vector();
      t_.unary(Does::Not, Number::U32, inverse, goes_on);
      goes_on = inverse;
    }
    t_.binary(Does::And, Number::U32, active_[s], active_[s], goes_on);
  }
  Reg any = t_.word(), differ = t_.word();
  t_.any_and_differ(any, differ, active_);
  t_.word_add(ran_, ran_, int64_t{step.index} - target + 1);
  t_.word_add(budget_, budget_, -1);
  Label done = t_.label();
  t_.jump_if(any, false, done);
  t_.jump_if(budget_, true, labels_[target]);
  t_.jump(bail());
  t_.bind(done);
}

// Where lanes diverge, the lanes at the lowest Op of the program run, and the others wait at the Op
// where they continue. The interpreter uses the same order, so stores keep theirs. A lane that
// branches back to before the phase is the lowest; all lanes exit then.

// The Ops where lanes may wait: targets of branches, and the Ops after loops.
bool Emitter::find_places() {
  if (!plan_.apart) return true;
  done_ = t_.label();
  const auto add = [&](uint32_t op) {
    if (ways_.count(op)) return;
    ways_.emplace(op, Way{out_->places.size(), t_.label()});
    out_->places.push_back(op);
    if (is_inside(op) && !labels_.count(op)) labels_.emplace(op, t_.label());
  };
  for (const Step& step : plan_.steps) {
    if (!is_branch(step)) continue;
    const uint32_t target = flow_.index_of(step.op.target);
    if (target > step.index) add(target);
    if (target <= step.index && step.meaning.does != Does::Branch) add(step.index + 1);
  }
  add(plan_.phase.end);
  return out_->places.size() <= kMostPlaces;
}

int64_t Emitter::waiting_at(uint32_t op) const {
  return static_cast<int64_t>(offsetof(Pass, waiting) + ways_.at(op).index * sizeof(uint32_t));
}

void Emitter::wait_at(uint32_t op, const Reg& lanes) {
  Reg all = t_.word();
  t_.load_word(all, t_.pass(), waiting_at(op), 4);
  t_.word_binary(Does::Or, Number::U32, all, all, lanes);
  t_.store_word(all, t_.pass(), waiting_at(op), 4);
  if (is_inside(op)) t_.word_binary(Does::Or, Number::U32, others_, others_, lanes);
}

// Makes the masks from the bits.
void Emitter::make_active() {
  const Target::Mark mark = t_.mark();
  t_.bits_to_masks(active_, active_bits_);
  t_.release(mark);
}

// Lanes that arrive from above and lanes that waited here continue together.
void Emitter::arrive(uint32_t op) {
  const auto way = ways_.find(op);
  if (way == ways_.end()) return;
  const Target::Mark mark = t_.mark();
  Reg waited = t_.word(), none = t_.word();
  Label join = t_.label();
  const Label& go = labels_.at(op);
  t_.jump_if(others_, false, go);
  t_.jump(join);
  t_.bind(way->second.empty);
  t_.constant_word(active_bits_, 0);
  t_.bind(join);
  t_.load_word(waited, t_.pass(), waiting_at(op), 4);
  t_.word_binary(Does::Or, Number::U32, active_bits_, active_bits_, waited);
  t_.jump_if(active_bits_, false, next_place(op));
  t_.jump_if(waited, false, go);
  t_.constant_word(none, 0);
  t_.store_word(none, t_.pass(), waiting_at(op), 4);
  t_.word_binary(Does::Xor, Number::U32, others_, others_, waited);
  make_active();
  t_.bind(go);
  t_.release(mark);
}

// The next place with waiting lanes, if no lane runs here.
Label Emitter::next_place(uint32_t op) const {
  const auto next = ways_.upper_bound(op);
  return next != ways_.end() && is_inside(next->first) ? next->second.empty : done_;
}

// The running lanes that take the branch, as bits.
Reg Emitter::taken_of(const Step& step) {
  if (step.meaning.does == Does::Branch) return active_bits_;
  const bool unless = step.meaning.does == Does::BranchUnless;
  Reg taken = t_.word();
  if (plan_.variables[*step.a].kept == Kept::Word) {
    t_.copy(taken, word_of(*step.a));
  } else {
    t_.constant_word(taken, 0);
    for (uint32_t s = 0; s < strips_; ++s)
      t_.mask_to_bits(taken, values_[*step.a].regs[s], s * t_.vector_lanes());
  }
  if (unless) t_.word_unary(Does::Not, Number::U32, taken, taken);
  t_.word_binary(Does::And, Number::U32, taken, taken, active_bits_);
  return taken;
}

// Keeps only the lanes that the predicate selects.
void Emitter::keep_active(const Step& step, bool taken) {
  const bool inverse = (step.meaning.does == Does::BranchUnless) == taken;
  for (uint32_t s = 0; s < strips_; ++s) {
    const Target::Mark mark = t_.mark();
    Reg goes_on = vector_of(*step.a, s, 0);
    if (inverse) {
      const Reg given = goes_on;
      t_.unary(Does::Not, Number::U32, goes_on = t_.vector(), given);
    }
    t_.binary(Does::And, Number::U32, active_[s], active_[s], goes_on);
    t_.release(mark);
  }
}

void Emitter::branch_ahead(const Step& step, uint32_t target, const Reg& taken) {
  Reg left = t_.word();
  t_.word_binary(Does::Xor, Number::U32, left, active_bits_, taken);
  Label some = t_.label(), around = t_.label();
  if (step.meaning.does != Does::Branch) {
    t_.jump_if(taken, false, around);
    t_.jump_if(left, true, some);
  }
  if (is_inside(target)) t_.jump_if(others_, false, labels_.at(target));
  wait_at(target, active_bits_);
  if (!is_inside(target)) t_.jump_if(others_, false, done_);
  t_.jump(next_place(step.index));
  t_.bind(some);
  if (step.meaning.does != Does::Branch) {
    wait_at(target, taken);
    t_.copy(active_bits_, left);
    keep_active(step, false);
  }
  t_.bind(around);
}

void Emitter::branch_back(const Step& step, uint32_t target, const Reg& taken) {
  Label all = t_.label(), around = t_.label();
  if (step.meaning.does != Does::Branch) {
    Reg left = t_.word();
    t_.jump_if(taken, false, around);
    t_.word_binary(Does::Xor, Number::U32, left, active_bits_, taken);
    t_.jump_if(left, false, all);
    wait_at(step.index + 1, left);
    t_.copy(active_bits_, taken);
    keep_active(step, true);
  }
  t_.bind(all);
  t_.word_add(ran_, ran_, int64_t{step.index} - target + 1);
  t_.word_add(budget_, budget_, -1);
  if (is_inside(target)) {
    t_.jump_if(budget_, true, labels_.at(target));
  } else {
    Label used_up = t_.label();
    t_.jump_if(budget_, false, used_up);
    leave_apart(target, false);
    t_.bind(used_up);
  }
  leave_apart(target, true);
  t_.bind(around);
}

void Emitter::branch_apart(const Step& step) {
  const uint32_t target = flow_.index_of(step.op.target);
  const Reg taken = taken_of(step);
  target > step.index ? branch_ahead(step, target, taken) : branch_back(step, target, taken);
}

// Every value that a waiting lane may need, wherever it waits.
List<uint32_t> Emitter::written_home() const {
  List<uint32_t> out;
  for (const auto& [slot, index] : plan_.home) {
    if (plan_.variables[index].written) out.push_back(index);
  }
  return out;
}

void Emitter::leave_apart(uint32_t target, bool backward) {
  t_.store_word(active_bits_, t_.pass(), offsetof(Pass, here), 4);
  leave_with(written_home(), {target, backward});
}

// After the last step: no lane is left inside.
void Emitter::finish_apart() {
  const Target::Mark mark = t_.mark();
  wait_at(plan_.phase.end, active_bits_);
  t_.bind(done_);
  t_.constant_word(active_bits_, 0);
  leave_apart(plan_.phase.end, false);
  t_.release(mark);
}

// Writes only the lanes that run: for the others the slot holds another value.
void Emitter::write_some(uint32_t index) {
  const Variable& v = plan_.variables[index];
  if (v.in == Slot::Predicate) {
    Reg old = t_.word(), bits = t_.word(), own = t_.word();
    t_.load_word(old, registers_, v.slot, 4);
    if (v.kept == Kept::Word) {
      t_.copy(bits, values_[index].word);
    } else {
      t_.constant_word(bits, 0);
      for (uint32_t s = 0; s < strips_; ++s)
        t_.mask_to_bits(bits, values_[index].regs[s], s * t_.vector_lanes());
    }
    t_.word_binary(Does::And, Number::U32, bits, bits, active_bits_);
    t_.word_unary(Does::Not, Number::U32, own, active_bits_);
    t_.word_binary(Does::And, Number::U32, old, old, own);
    t_.word_binary(Does::Or, Number::U32, bits, bits, old);
    t_.store_word(bits, registers_, v.slot, 4);
    return;
  }
  const uint32_t halves = halves_of(v.bytes);
  for (uint32_t s = 0; s < strips_; ++s) {
    for (uint32_t h = 0; h < halves; ++h) {
      const Target::Mark mark = t_.mark();
      const int64_t at =
          v.bytes < 4 ? frame_place(index, s) : int64_t{v.slot} + (s * halves + h) * vector_bytes();
      Reg old = t_.vector();
      v.bytes < 4 ? t_.load_small(old, registers_, at, Number::U16) : t_.load(old, registers_, at);
      t_.blend(old, bits_of(index, s, h), active(s, h, lane_bytes(v.bytes)));
      v.bytes < 4 ? t_.store_small(old, registers_, at, 2) : t_.store(old, registers_, at);
      t_.release(mark);
    }
  }
}

// The targets of branches; a branch that became a mask has none.
void Emitter::find_labels() {
  labels_.emplace(plan_.phase.begin, t_.label());
  for (const Step& step : plan_.steps) {
    if (!is_branch(step)) continue;
    const uint32_t target = flow_.index_of(step.op.target);
    if (target >= plan_.phase.begin && target < plan_.phase.end && !labels_.count(target))
      labels_.emplace(target, t_.label());
  }
}

// Replaces the bits of this pass in the word.
void Emitter::write_predicate(uint32_t index) {
  const Variable& v = plan_.variables[index];
  Reg word = t_.word(), bits = t_.word(), own = t_.word();
  if (v.kept == Kept::Word) {
    t_.store_word(values_[index].word, registers_, v.slot, 4);
    return;
  }
  t_.constant_word(bits, 0);
  for (uint32_t s = 0; s < strips_; ++s)
    t_.mask_to_bits(bits, values_[index].regs[s], s * t_.vector_lanes());
  if (out_->lanes == kWarpSize) {
    t_.store_word(bits, registers_, v.slot, 4);
    return;
  }
  t_.load_word(word, registers_, v.slot, 4);
  t_.constant_word(own, (uint64_t{1} << out_->lanes) - 1);
  t_.word_binary(Does::ShiftLeft, Number::U32, own, own, first_lane_);
  t_.word_binary(Does::ShiftLeft, Number::U32, bits, bits, first_lane_);
  t_.word_unary(Does::Not, Number::U32, own, own);
  t_.word_binary(Does::And, Number::U32, word, word, own);
  t_.word_binary(Does::Or, Number::U32, word, word, bits);
  t_.store_word(word, registers_, v.slot, 4);
}

}  // namespace kiln::engine
