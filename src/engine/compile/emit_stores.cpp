// SPDX-License-Identifier: Apache-2.0
// How are stores compiled? Neighbouring ones are checked before the first of them writes. A store
// that a branch leads around is for some lanes: in shared memory, which only this thread touches,
// the others' bytes are written back as they were; elsewhere lanes store one by one.
#include <algorithm>

#include "engine/compile/emitter.h"

namespace kiln::engine {

// Where a store goes: one register for the first lane, or two vectors of addresses a strip.
bool Emitter::place_store(const Step& step, std::vector<Reg>* where) {
  auto prepared = prepared_of_.find(step.index);
  if (prepared != prepared_of_.end()) {
    where->push_back(pointer_of(prepared->second));
    return true;
  }
  if (step.place.of == Place::Of::Header) return false;
  if (!is_checked_at_once(step)) {
    addresses_of(step, where);
    return true;
  }
  const int64_t least = range(plan_.variables[*step.a].steps).first;
  Reg address = t_.word(), at;
  t_.word_add(address, word_of(*step.a), step.op.imm);
  if (step.op.x & kAddress32) t_.word_extend(false, address, address);
  t_.word_add(address, address, least);
  check_reach(step, address, &at);
  Reg first = t_.word();
  t_.word_add(first, at, -least - step.op.imm);
  where->push_back(first);
  return true;
}

// The lanes of a strip that store; nothing: all.
std::optional<Reg> Emitter::mask_of(const Step& step, uint32_t strip) {
  if (!step.under || plan_.variables[*step.under].kept == Kept::Word) return std::nullopt;
  Reg mask = vector_of(*step.under, strip, 0);
  if (!step.under_not) return mask;
  Reg inverse = t_.vector();
  t_.unary(Does::Not, Number::U32, inverse, mask);
  return inverse;
}

void Emitter::store_lane(const Step& step, uint32_t lane, const Reg& base, int64_t offset) {
  const uint32_t bytes = bytes_of(step.meaning.type), lanes = t_.vector_lanes();
  const uint32_t in_value = bytes == 8 ? lanes / 2 : lanes, in_strip = lane % lanes;
  const Target::Mark temporaries = t_.mark();
  const std::optional<Reg> mask = mask_of(step, lane / lanes);
  Label around = t_.label();
  if (mask) {
    Reg stores = t_.word();
    t_.lane_word(stores, *mask, in_strip, 4);
    t_.jump_if(stores, false, around);
  }
  Reg word = t_.word();
  t_.lane_word(word, bits_of(*step.b, lane / lanes, in_strip / in_value), in_strip % in_value,
               bytes);
  t_.store_word(word, base, offset, bytes);
  t_.bind(around);
  t_.release(temporaries);
}

// In the order of the lanes: where several write to one place, the last one's value stays.
void Emitter::store_strip(const Step& step, uint32_t strip, const Reg& base,
                          const Pattern2& steps) {
  const uint32_t bytes = bytes_of(step.meaning.type), lanes = t_.vector_lanes();
  const std::optional<Reg> mask = mask_of(step, strip);
  const bool is_shared = static_cast<ptx::Space>(step.op.z) == ptx::Space::Shared;
  const bool by_lanes = steps.step != 0 && steps.step != int64_t{bytes};
  if (mask && !is_shared && bytes == 4 && steps.step == 4 &&
      t_.store_some(bits_of(*step.b, strip, 0), base, step.op.imm + rise(steps, strip * lanes),
                    *mask))
    return;
  if (by_lanes || (mask && (steps.step == 0 || !is_shared || bytes == 8))) {
    for (uint32_t i = 0; i < lanes; ++i)
      store_lane(step, strip * lanes + i, base, step.op.imm + rise(steps, strip * lanes + i));
    return;
  }
  if (steps.step == 0) {
    const uint32_t last = strip * lanes + lanes - 1;
    store_lane(step, last, base, step.op.imm + rise(steps, strip * lanes));
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

void Emitter::store_scattered(const Step& step, const std::vector<Reg>& where) {
  const uint32_t lanes = t_.vector_lanes();
  for (uint32_t lane = 0; lane < out_->lanes; ++lane) {
    const Target::Mark mark = t_.mark();
    Reg address = t_.word();
    t_.lane_word(address, where[lane / (lanes / 2)], lane % (lanes / 2), 8);
    store_lane(step, lane, address, 0);
    t_.release(mark);
  }
}

void Emitter::store_at(const Step& step, const std::vector<Reg>& where) {
  Label around = t_.label();
  if (step.under && plan_.variables[*step.under].kept == Kept::Word)
    t_.jump_if(word_of(*step.under), step.under_not, around);
  if (where.size() > 1) {
    store_scattered(step, where);
  } else {
    auto prepared = prepared_of_.find(step.index);
    const Pattern2& steps = prepared != prepared_of_.end() ? out_->prepared[prepared->second].steps
                                                           : plan_.variables[*step.a].steps;
    for (uint32_t s = 0; s < strips_; ++s) {
      const Target::Mark mark = t_.mark();
      store_strip(step, s, where[0], steps);
      t_.release(mark);
    }
  }
  t_.bind(around);
}

// Lane after lane: several may change one place. Its memory is touched by one thread alone.
bool Emitter::atomic(const Step& step) {
  std::vector<Reg> where;
  if (!place_store(step, &where)) return false;
  auto prepared = prepared_of_.find(step.index);
  const Pattern2 steps = prepared != prepared_of_.end() ? out_->prepared[prepared->second].steps
                         : where.size() == 1            ? plan_.variables[*step.a].steps
                                                        : Pattern2{};
  const uint32_t lanes = t_.vector_lanes();
  for (uint32_t s = 0; s < strips_; ++s) {
    const Target::Mark of_strip = t_.mark();
    const bool is_word = plan_.variables[*step.b].kept == Kept::Word;
    const Reg operands = is_word ? word_of(*step.b) : bits_of(*step.b, s, 0);
    const Reg before = t_.vector();
    if (step.d) t_.constant(before, 0, 4);
    for (uint32_t i = 0; i < lanes; ++i) {
      const Target::Mark of_lane = t_.mark();
      Reg at = where[0], operand = operands;
      int64_t offset = step.op.imm + rise(steps, s * lanes + i);
      if (where.size() > 1) {
        at = t_.word();
        offset = 0;
        t_.lane_word(at, where[s * 2 + i / (lanes / 2)], i % (lanes / 2), 8);
      }
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

// Returns the step behind the stores that begin here; this one: some cannot be compiled. If a check
// fails, none of them has stored, and the interpreter goes on at the first.
size_t Emitter::store_from(size_t first) {
  size_t end = first;
  std::vector<std::vector<Reg>> all;
  for (; end < plan_.steps.size() && plan_.steps[end].meaning.does == Does::Store; ++end) {
    const Step& step = plan_.steps[end];
    if (end > first && step.index != plan_.steps[end - 1].index && labels_.count(step.index)) break;
    need_all(step);
    all.emplace_back();
    if (!place_store(step, &all.back())) return first;
  }
  for (size_t i = first; i < end; ++i) store_at(plan_.steps[i], all[i - first]);
  has_stored_ = true;
  return end;
}

}  // namespace kiln::engine
