// SPDX-License-Identifier: Apache-2.0
// How are stores compiled? Consecutive stores are checked before the first of them writes. A store
// that a branch can skip is for some lanes only: in shared memory, which only this thread accesses,
// the bytes of the other lanes are written back unchanged; elsewhere the lanes store one by one.
#include <algorithm>
#include <cstddef>

#include "engine/compile/emitter.h"

namespace kiln::engine {
namespace {

constexpr int64_t kAside = offsetof(Pass, scratch);

}  // namespace

bool Emitter::place_store(const Step& step, Where* where) {
  auto prepared = prepared_of_.find(step.index);
  if (prepared != prepared_of_.end()) {
    where->all.push_back(pointer_of(prepared->second));
    return true;
  }
  if (step.place.of == Place::Of::Header) return false;
  if (!is_checked_at_once(step) && is_narrow(step) && !is_change_called(step)) {
    check_narrow(step);
    where->base = reach_words(step).begin;
    for (uint32_t s = 0; s < strips_; ++s)
      where->all.push_back(narrow_address(step, s, step.op.imm));
    return true;
  }
  if (!is_checked_at_once(step)) {
    addresses_of(step, &where->all);
    return true;
  }
  const Placed at = place_changing(step);
  Reg first = at.base;
  if (at.offset != step.op.imm) {  // the same distance for the whole group
    Reg& common = group_of(step).stored_from;
    if (!common.isValid()) t_.word_add(common = t_.new_word(), at.base, at.offset - step.op.imm);
    first = common;
  }
  where->all.push_back(first);
  return true;
}

// The local memory of each lane follows that of the lane before it.
void Emitter::add_lanes(const List<Reg>& distances) {
  const uint32_t in_vector = t_.vector_lanes() / 2;
  const auto stride = int64_t{plan_.local_stride};
  for (size_t i = 0; i < distances.size(); ++i) {
    const Target::Mark mark = t_.mark();
    const int64_t first = stride * static_cast<int64_t>(i * in_vector);
    if (t_.adds_steps()) {
      t_.add_steps(distances[i], distances[i], first, stride, 8);
    } else {
      Reg rises = t_.vector(), before = t_.vector();
      t_.steps(rises, plan_.local_stride, 8);
      t_.constant(before, static_cast<uint64_t>(first), 8);
      t_.binary(Does::Add, Number::U64, distances[i], distances[i], rises);
      t_.binary(Does::Add, Number::U64, distances[i], distances[i], before);
    }
    t_.release(mark);
  }
}

// The distance from lane to lane, for an address that is uniform or rises by a step.
Pattern2 Emitter::steps_of(const Step& step) const {
  auto prepared = prepared_of_.find(step.index);
  if (prepared != prepared_of_.end()) return out_->prepared[prepared->second].steps;
  Pattern2 out = plan_.variables[*step.a].steps;
  if (!is_local(step) || plan_.alone) return out;
  out.step += plan_.local_stride;
  out.row_step += int64_t{plan_.local_stride} * plan_.row_lanes;
  return out;
}

// The lanes of a strip that store; no value: all.
std::optional<Reg> Emitter::mask_of(const Step& step, uint32_t strip) {
  const bool has_under = step.under && plan_.variables[*step.under].kept != Kept::Word;
  if (!has_under) return plan_.apart ? std::optional(active_[strip]) : std::nullopt;
  Reg mask = vector_of(*step.under, strip, 0);
  if (step.under_not) {
    const Reg given = mask;
    t_.unary(Does::Not, Number::U32, mask = t_.vector(), given);
  }
  if (!plan_.apart) return mask;
  Reg both = t_.vector();
  t_.binary(Does::And, Number::U32, both, mask, active_[strip]);
  return both;
}

void Emitter::store_lane(const Step& step, uint32_t lane, const Reg& base, int64_t offset,
                         const std::optional<Reg>& mask) {
  const uint32_t bytes = memory_bytes(step), lanes = t_.vector_lanes();
  const uint32_t in_value = bytes == 8 ? lanes / 2 : lanes, in_strip = lane % lanes;
  const Target::Mark temporaries = t_.mark();
  Label around = t_.label();
  if (mask) {
    Reg stores = t_.word();
    t_.lane_word(stores, *mask, in_strip, 4);
    t_.jump_if(stores, false, around);
  }
  Reg word = t_.word();
  t_.lane_word(word, bits_of(*step.b, lane / lanes, in_strip / in_value), in_strip % in_value,
               lane_bytes(bytes));
  t_.store_word(word, base, offset, bytes);
  t_.bind(around);
  t_.release(temporaries);
}

// Stores the lanes that are not in a mask, to memory that no other thread accesses. The other lanes
// store what is there already, so the mask need not be inverted. Returns false if this is not
// possible.
bool Emitter::store_others(const Step& step, uint32_t strip, const Reg& base,
                           const Pattern2& steps) {
  const bool has_under = step.under && plan_.variables[*step.under].kept != Kept::Word;
  if (!has_under || !step.under_not || plan_.apart || memory_bytes(step) != 4 || steps.step == 0 ||
      !is_own(static_cast<ptx::Space>(step.op.z)))
    return false;
  const int64_t offset = step.op.imm + rise(steps, strip * t_.vector_lanes());
  const Reg others = vector_of(*step.under, strip, 0), value = bits_of(*step.b, strip, 0);
  const Reg all = t_.vector();
  if (steps.step == 4) {
    t_.load_blended(all, base, offset, others, value);
    t_.store(all, base, offset);
    return true;
  }
  if (!t_.load_apart(all, base, offset, steps.step, 4)) return false;
  t_.blend_others(all, value, others);
  return t_.store_apart(all, base, offset, steps.step, 4);
}

// Stores in lane order: if several lanes write to one place, the last one wins.
void Emitter::store_strip(const Step& step, uint32_t strip, const Reg& base,
                          const Pattern2& steps) {
  const uint32_t bytes = memory_bytes(step), lanes = t_.vector_lanes();
  const bool small = bytes < 4;
  if (plan_.alone) {
    t_.store_word(word_of(*step.b), base, step.op.imm, bytes);
    return;
  }
  if (store_others(step, strip, base, steps)) return;
  const std::optional<Reg> mask = mask_of(step, strip);
  const bool is_shared = is_own(static_cast<ptx::Space>(step.op.z)) && !small;
  const bool by_lanes = steps.step != 0 && steps.step != int64_t{bytes};
  if (mask && !small && (!is_shared || bytes == 8) && steps.step == int64_t{bytes}) {
    bool stored = true;
    for (uint32_t h = 0; h < bytes / 4 && stored; ++h) {
      Reg own = *mask;
      if (bytes == 8) t_.widen(true, h == 1, own = t_.vector(), *mask);
      stored = t_.store_some(bits_of(*step.b, strip, h), base,
                             step.op.imm + rise(steps, strip * lanes + h * lanes / 2), own, bytes);
    }
    if (stored) return;
  }
  if (by_lanes && !mask) {
    bool stored = true;
    for (uint32_t h = 0; h < halves_of(bytes) && stored; ++h)
      stored = t_.store_apart(bits_of(*step.b, strip, h), base,
                              step.op.imm + rise(steps, strip * lanes + h * lanes / 2), steps.step,
                              bytes);
    if (stored) return;
  }
  if (by_lanes && mask && is_shared && bytes == 4) {
    const int64_t offset = step.op.imm + rise(steps, strip * lanes);
    Reg old = t_.vector();
    if (t_.load_apart(old, base, offset, steps.step, bytes)) {
      t_.blend(old, bits_of(*step.b, strip, 0), *mask);
      if (t_.store_apart(old, base, offset, steps.step, bytes)) return;
    }
  }
  if (by_lanes || (mask && (steps.step == 0 || !is_shared || bytes == 8))) {
    for (uint32_t i = 0; i < lanes; ++i)
      store_lane(step, strip * lanes + i, base, step.op.imm + rise(steps, strip * lanes + i), mask);
    return;
  }
  if (steps.step == 0) {
    const uint32_t last = strip * lanes + lanes - 1;
    store_lane(step, last, base, step.op.imm + rise(steps, strip * lanes), mask);
    return;
  }
  if (small) {
    t_.store_small(bits_of(*step.b, strip, 0), base, step.op.imm + rise(steps, strip * lanes),
                   bytes);
    return;
  }
  for (uint32_t h = 0; h < bytes / 4; ++h) {
    const int64_t offset = step.op.imm + rise(steps, strip * lanes + h * lanes / 2);
    Reg value = bits_of(*step.b, strip, h);
    if (mask) {
      Reg old = t_.vector();
      t_.load(old, base, offset);
      t_.blend(old, value, *mask);
      value = old;
    }
    t_.store(value, base, offset);
  }
}

// Writes to memory that the code indexes by lane.
void Emitter::put_aside(const List<Reg>& vectors, int64_t at) {
  for (size_t i = 0; i < vectors.size(); ++i)
    t_.store(vectors[i], t_.pass(), at + static_cast<int64_t>(i) * vector_bytes());
}

void Emitter::put_values_aside(uint32_t variable) {
  const uint32_t halves = halves_of(plan_.variables[variable].bytes);
  for (uint32_t s = 0; s < strips_; ++s) {
    for (uint32_t h = 0; h < halves; ++h) {
      const Target::Mark mark = t_.mark();
      t_.store(bits_of(variable, s, h), t_.pass(),
               kAside + kScratchValues + int64_t{s * halves + h} * vector_bytes());
      t_.release(mark);
    }
  }
}

// A loop over all lanes, in order and four at a time: code for 32 lanes would take long to make.
template <class Body>
void Emitter::for_each_lane(const Body& body) {
  constexpr uint32_t kAtOnce = 4;
  Reg lane = t_.word(), left = t_.word();
  Label again = t_.label();
  t_.constant_word(lane, 0);
  t_.bind(again);
  for (uint32_t i = 0; i < kAtOnce; ++i) {
    const Target::Mark mark = t_.mark();
    body(lane, i);
    t_.release(mark);
  }
  t_.word_add(lane, lane, kAtOnce);
  t_.word_add(left, lane, -int64_t{out_->lanes});
  t_.jump_if(left, true, again);
}

// The address that was put aside for a lane.
Reg Emitter::address_aside(const Where& where, const Reg& lane, uint32_t behind) {
  const uint32_t bytes = where.base.isValid() ? 4 : 8;
  Reg address = t_.word();
  t_.load_word_at(address, t_.pass(), lane, kAside + int64_t{behind} * bytes, bytes);
  return address;
}

// One store per lane, in lane order.
void Emitter::store_scattered(const Step& step, const Where& where) {
  const uint32_t bytes = memory_bytes(step), kept_bytes = lane_bytes(bytes);
  put_aside(where.all, kAside);
  put_values_aside(*step.b);
  const auto store = [&](const Reg& lane, uint32_t behind) {
    const Reg address = address_aside(where, lane, behind);
    Reg value = t_.word();
    t_.load_word_at(value, t_.pass(), lane, kAside + kScratchValues + int64_t{behind} * kept_bytes,
                    kept_bytes);
    if (where.base.isValid())
      t_.store_word_from(value, where.base, address, bytes);
    else
      t_.store_word(value, address, 0, bytes);
  };
  if (!plan_.apart && (!step.under || plan_.variables[*step.under].kept == Kept::Word)) {
    for_each_lane(store);
    return;
  }
  Reg bits = t_.word(), lane = t_.word();
  t_.constant_word(bits, 0);
  for (uint32_t s = 0; s < strips_; ++s) {
    const Target::Mark mark = t_.mark();
    t_.mask_to_bits(bits, *mask_of(step, s), s * t_.vector_lanes());
    t_.release(mark);
  }
  Label again = t_.label(), done = t_.label();
  t_.jump_if(bits, false, done);
  t_.bind(again);
  t_.lowest_bit(lane, bits);
  store(lane, 0);
  t_.clear_lowest_bit(bits);
  t_.jump_if(bits, true, again);
  t_.bind(done);
}

void Emitter::store_at(const Step& step, const Where& where) {
  Label around = t_.label();
  if (step.under && plan_.variables[*step.under].kept == Kept::Word)
    t_.jump_if(word_of(*step.under), step.under_not, around);
  if (where.is_scattered()) {
    store_scattered(step, where);
  } else {
    const Pattern2 steps = steps_of(step);
    for (uint32_t s = 0; s < strips_; ++s) {
      const Target::Mark mark = t_.mark();
      store_strip(step, s, where.all[0], steps);
      t_.release(mark);
    }
  }
  t_.bind(around);
}

// Lane by lane, because several lanes may change one place. Only one thread accesses this memory.
bool Emitter::atomic(const Step& step) {
  Where where;
  if (!place_store(step, &where)) return false;
  if (is_change_called(step)) {
    change_by_call(step, where);
    has_stored_ = true;
    return true;
  }
  if (where.is_scattered()) {
    count_in(step, where);
    has_stored_ = true;
    return true;
  }
  const Pattern2 steps = steps_of(step);
  const uint32_t lanes = t_.vector_lanes();
  for (uint32_t s = 0; s < strips_; ++s) {
    const Target::Mark of_strip = t_.mark();
    const bool is_word = plan_.variables[*step.b].kept == Kept::Word;
    const Reg operands = is_word ? word_of(*step.b) : bits_of(*step.b, s, 0);
    const Reg before = t_.vector();
    if (step.d) t_.constant(before, 0, 4);
    for (uint32_t i = 0; i < lanes; ++i) {
      const Target::Mark of_lane = t_.mark();
      Reg at = where.all[0], operand = operands;
      const int64_t offset = step.op.imm + rise(steps, s * lanes + i);
      if (!is_word) {
        operand = t_.word();
        t_.lane_word(operand, operands, i, 4);
      }
      Reg old = t_.word(), next = t_.word();
      t_.load_word(old, at, offset, 4);
      if (step.d) t_.set_lane(before, old, i, 4);
      if (!t_.word_binary(step.meaning.combines, Number::U32, next, old, operand)) return false;
      t_.store_word(next, at, offset, 4);
      t_.release(of_lane);
    }
    if (step.d) t_.copy(result(*step.d, s, 0), before);
    t_.release(of_strip);
  }
  has_stored_ = true;
  return true;
}

// All lanes get their address, whether it is one for all, rises by a step or is their own.
void Emitter::put_places_aside(const Step& step, const Where& where) {
  if (where.is_scattered()) return put_aside(where.all, kAside);
  const Pattern2 steps = steps_of(step);
  const uint32_t in_vector = t_.vector_lanes() / 2;
  for (uint32_t i = 0; i < strips_ * 2; ++i) {
    const Target::Mark mark = t_.mark();
    Reg first = t_.word(), all = t_.vector(), rises = t_.vector();
    t_.word_add(first, where.all[0], step.op.imm + rise(steps, i * in_vector));
    t_.splat(all, first, 8);
    t_.steps(rises, static_cast<uint64_t>(steps.step), 8);
    t_.binary(Does::Add, Number::U64, all, all, rises);
    t_.store(all, t_.pass(), kAside + int64_t{i} * vector_bytes());
    t_.release(mark);
  }
}

// Other threads may access this memory, or the operation has no instruction: a function does it for
// all lanes, with what is put aside for it.
void Emitter::change_by_call(const Step& step, const Where& where) {
  const Label around = t_.label();
  if (step.under && plan_.variables[*step.under].kept == Kept::Word)
    t_.jump_if(word_of(*step.under), step.under_not, around);
  put_places_aside(step, where);
  put_values_aside(*step.b);
  const Target::Mark temporaries = t_.mark();
  Reg bits = t_.word(), warp = t_.word(), aside = t_.word();
  t_.constant_word(bits, kFullMask);
  for (uint32_t s = 0; s < strips_; ++s) {
    const Target::Mark mark = t_.mark();
    const std::optional<Reg> mask = mask_of(step, s);
    if (mask && s == 0) t_.constant_word(bits, 0);
    if (mask) t_.mask_to_bits(bits, *mask, s * t_.vector_lanes());
    t_.release(mark);
  }
  t_.load_word(warp, t_.pass(), offsetof(Pass, warp), 8);
  t_.store_word(warp, t_.pass(), offsetof(Pass, aside_warp), 8);
  t_.store_word(bits, t_.pass(), offsetof(Pass, aside_mask), 4);
  t_.word_add(aside, t_.pass(), kAside);
  t_.call(reinterpret_cast<const void*>(step.meaning.change), aside,
          &flow_.program().ops[step.index]);
  t_.release(temporaries);
  if (step.d) {
    const uint32_t halves = halves_of(plan_.variables[*step.d].bytes);
    for (uint32_t i = 0; i < strips_ * halves; ++i)
      t_.load(result(*step.d, i / halves, i % halves), t_.pass(),
              kAside + kScratchResults + int64_t{i} * vector_bytes());
  }
  t_.bind(around);
}

// Like the loop in atomic(), for one address per lane.
void Emitter::count_in(const Step& step, const Where& where) {
  const bool is_word = plan_.variables[*step.b].kept == Kept::Word;
  put_aside(where.all, kAside);
  if (!is_word) put_values_aside(*step.b);
  for_each_lane([&](const Reg& lane, uint32_t behind) {
    const Reg address = address_aside(where, lane, behind);
    Reg old = t_.word(), next = t_.word();
    Reg operand = is_word ? word_of(*step.b) : t_.word();
    if (!is_word)
      t_.load_word_at(operand, t_.pass(), lane, kAside + kScratchValues + int64_t{behind} * 4, 4);
    if (where.base.isValid())
      t_.load_word_from(old, where.base, address, 4);
    else
      t_.load_word(old, address, 0, 4);
    if (step.d)
      t_.store_word_at(old, t_.pass(), lane, kAside + kScratchResults + int64_t{behind} * 4, 4);
    t_.word_binary(step.meaning.combines, Number::U32, next, old, operand);
    if (where.base.isValid())
      t_.store_word_from(next, where.base, address, 4);
    else
      t_.store_word(next, address, 0, 4);
  });
  for (uint32_t s = 0; step.d && s < strips_; ++s)
    t_.load(result(*step.d, s, 0), t_.pass(),
            kAside + kScratchResults + int64_t{s} * vector_bytes());
}

// A table of constants in local memory is written byte by byte: merges neighbours into one store.
// Returns the step after those that were stored, or `first` if there are none.
size_t Emitter::store_constants(size_t first, size_t end, const Reg& base) {
  const Step& begin = plan_.steps[first];
  uint64_t bits = 0;
  uint32_t bytes = 0;
  size_t behind = first, next = first;
  for (uint32_t all = 0; next < end; ++next) {
    const Step& step = plan_.steps[next];
    const Variable& value = plan_.variables[*step.b];
    const uint32_t own = memory_bytes(step);
    if (plan_.apart || !is_local(step) || step.a != begin.a || step.under || !value.is_constant ||
        own == 8 || !is_checked_at_once(step) || step.op.imm != begin.op.imm + all || all + own > 8)
      break;
    bits |= (value.constant & ((uint64_t{1} << own * 8) - 1)) << all * 8;
    all += own;
    if (all == 2 || all == 4 || all == 8) bytes = all, behind = next + 1;
  }
  if (behind < first + 2) return first;
  const Target::Mark mark = t_.mark();
  Reg word = t_.word();
  t_.constant_word(word, bytes == 8 ? bits : bits & ((uint64_t{1} << bytes * 8) - 1));
  const Pattern2 steps = steps_of(begin);
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    t_.store_word(word, base, begin.op.imm + rise(steps, lane), bytes);
  t_.release(mark);
  return behind;
}

// st.v2, st.v4 and similar, after their checks. Returns the step after them, or `first`.
size_t Emitter::store_neighbours(size_t first, size_t end, const Reg& base) {
  const Step& step = plan_.steps[first];
  const Pattern2 steps = steps_of(step);
  const uint32_t count = plan_.apart ? 0 : elements_from(step, steps);
  if (count == 0 || first + count > end) return first;
  for (uint32_t s = 0; s < strips_; ++s) {
    const Target::Mark mark = t_.mark();
    List<Reg> from;
    for (uint32_t e = 0; e < count; ++e) from.push_back(bits_of(*(&step)[e].b, s, 0));
    if (!t_.store_elements(from, base, step.op.imm + rise(steps, s * t_.vector_lanes())))
      return first;
    t_.release(mark);
  }
  return first + count;
}

// Emits the stores that begin here. Returns the step after them, or `first` if one cannot be
// compiled. If a check fails, none of them has stored, and the interpreter continues at the first.
size_t Emitter::store_from(size_t first) {
  size_t end = first;
  List<Where> all;
  for (; end < plan_.steps.size() && plan_.steps[end].meaning.does == Does::Store; ++end) {
    const Step& step = plan_.steps[end];
    if (end > first && step.index != plan_.steps[end - 1].index && labels_.count(step.index)) break;
    if (end > first && !merged_.empty() && end == merged_.back().step) break;
    need_all(step);
    all.emplace_back();
    if (!place_store(step, &all.back())) return first;
  }
  for (size_t i = first; i < end;) {
    const Where& where = all[i - first];
    size_t behind = where.is_scattered() ? i : store_neighbours(i, end, where.all[0]);
    if (behind == i && !where.is_scattered()) behind = store_constants(i, end, where.all[0]);
    if (behind == i) store_at(plan_.steps[i], where);
    i = std::max(behind, i + 1);
  }
  has_stored_ = true;
  return end;
}

}  // namespace kiln::engine
