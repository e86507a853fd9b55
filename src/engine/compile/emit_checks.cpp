// SPDX-License-Identifier: Apache-2.0
// How does machine code check its own assumptions? This is for phases so short that checks outside
// the code would cost as much as the phase computes. If a check fails, the code returns kRefused,
// and the caller looks for the reason.
#include <algorithm>
#include <cstddef>

#include "engine/compile/emitter.h"

namespace kiln::engine {

// Only if all lanes run in one pass and no value has to be restored.
bool Emitter::may_check_itself() const {
  if (out_->lanes != kWarpSize || plan_.masked || plan_.calls) return false;
  return std::none_of(out_->prepared.begin(), out_->prepared.end(), [](const Prepared& at) {
    return at.narrow && at.space != ptx::Space::Shared;
  });
}

void Emitter::expect_header(uint32_t slot, const Pattern2& steps, int64_t warp_step, bool narrow,
                            const Label& otherwise) {
  if (expected_.count(slot)) return;
  if (otherwise.id() == refused_.id()) expected_.insert(slot);
  const uint32_t bytes = narrow ? 4 : 8;
  const auto expect_field = [&](size_t offset, uint32_t size, uint64_t wanted) {
    t_.jump_unless_at(registers_, int64_t{slot} + static_cast<int64_t>(offset), size, wanted,
                      otherwise);
  };
  const auto number = [&](int64_t step) {
    return narrow ? static_cast<uint32_t>(step) : static_cast<uint64_t>(step);
  };
  t_.jump_if_bits_at(registers_, int64_t{slot} + static_cast<int64_t>(offsetof(Affine, state)),
                     static_cast<uint32_t>(AffineState::Lanes), otherwise);
  expect_field(offsetof(Affine, step), bytes, number(steps.step));
  if (plan_.row_lanes == kWarpSize && plan_.header_rows == 0) return;
  expect_field(offsetof(Affine, row_lanes), 4, plan_.header_rows);
  const int64_t below = plan_.header_rows == kWarpSize ? warp_step : steps.row_step;
  if (plan_.header_rows) expect_field(offsetof(Affine, row_step), bytes, number(below));
}

// Offset of a field of the cached region that the Op accessed last; `cached` points to the first
// entry of the cache.
int64_t Emitter::region_part(uint32_t op, size_t offset) const {
  return int64_t{cache_index_(op)} * static_cast<int64_t>(sizeof(Worker::CachedRegion)) +
         static_cast<int64_t>(offset);
}

void Emitter::load_region(uint32_t op, const Reg& cached, const Reg& begin, const Reg& end) {
  t_.load_word(cached, t_.pass(), offsetof(Pass, cache), 8);
  t_.load_word(begin, cached, region_part(op, offsetof(Worker::CachedRegion, begin)), 8);
  t_.load_word(end, cached, region_part(op, offsetof(Worker::CachedRegion, end)), 8);
}

// Is the whole range inside the memory?
void Emitter::expect_inside(const Prepared& at, const Reg& base, const Label& otherwise) {
  Reg begin = t_.word(), end = t_.word(), limit = t_.word();
  t_.word_add(begin, base, at.first);
  t_.word_add(end, begin, static_cast<int64_t>(at.bytes));
  // And the ranges of the next warps.
  if (const int64_t each = out_->goes_on ? warp_rise(at.steps, at.warp_step) : 0) {
    Reg all = t_.word();
    t_.constant_word(all, static_cast<uint64_t>(each));
    t_.word_binary(Does::Mul, Number::U64, all, all, left_);
    const Reg moved = each > 0 ? end : begin;
    t_.word_binary(Does::Add, Number::U64, moved, moved, all);
  }
  if (at.space == ptx::Space::Shared) {
    t_.load_word(limit, t_.pass(), offsetof(Pass, shared_bytes), 8);
  } else {
    Reg cached = t_.word(), low = t_.word();
    load_region(at.op, cached, low, limit);
    t_.jump_if_above(low, begin, otherwise);
    if (at.writes) expect_writable(at.op, cached, otherwise);
  }
  t_.jump_if_above(begin, limit, otherwise);  // it may be negative, or wrap around
  t_.jump_if_above(end, limit, otherwise);
}

// Computes the place in this process; 0 if it is invalid, because the code may not use it. If the
// region of the memory is not known yet, the caller has to look it up first.
void Emitter::place_itself(const Prepared& at, const Reg& pointer, bool for_some) {
  const Target::Mark mark = t_.mark();
  Label otherwise = at.optional ? t_.label() : refused_;
  Label partly = for_some ? t_.label() : otherwise;
  const Reg& base = pointer;
  int64_t from = at.slot;
  if (at.of == Place::Of::Header) {
    expect_header(at.slot, at.steps, at.warp_step, at.narrow, otherwise);
    from += offsetof(Affine, base);
  }
  t_.load_word(base, registers_, from, at.narrow ? 4 : 8);
  if (at.align > 1) t_.jump_if_bits(base, at.align - 1, otherwise);
  expect_inside(at, base, partly);
  if (at.space == ptx::Space::Shared) {
    Reg shared = t_.word();
    t_.load_word(shared, t_.pass(), offsetof(Pass, shared), 8);
    t_.word_binary(Does::Add, Number::U64, pointer, base, shared);
  }
  if (at.optional) {
    Label done = t_.label();
    t_.jump(done);
    if (for_some) {
      t_.bind(partly);
      if (out_->goes_on) t_.jump_if(left_, true, refused_);
      t_.constant_word(unsure_, 1);
      t_.jump(done);
    }
    t_.bind(otherwise);
    t_.constant_word(pointer, 0);
    if (out_->goes_on) t_.jump_if(left_, true, refused_);
    if (at.space != ptx::Space::Shared) {
      Reg looked = t_.word();
      t_.load_word(looked, t_.pass(), offsetof(Pass, looked), 4);
      t_.jump_if(looked, false, refused_);
    }
    t_.bind(done);
  }
  t_.release(mark);
}

// Which places are accessed only by the lanes that did not branch to the end? In the first row of
// an image the other lanes would read before its start.
void Emitter::find_loaded_for_some() {
  constexpr int64_t kFarthest = int64_t{1} << 30;
  const bool can = t_.loads_some() && t_.adds_steps() && !plan_.apart && plan_.whole;
  for_some_.assign(out_->prepared.size(), can ? 1 : 0);
  const Step* first = nullptr;  // all others must be for the same lanes
  for (const Step& step : plan_.steps) {
    const auto found = prepared_of_.find(step.index);
    if (found == prepared_of_.end()) continue;
    if (step.under && !first) first = &step;
    if (first && (step.under != first->under || step.under_not != first->under_not ||
                  step.resume != first->resume))  // the predicate may have been overwritten
      for_some_[found->second] = 0;
    const Prepared& at = out_->prepared[found->second];
    const auto [least, most] = range_of(at.steps, kWarpSize);
    const auto is_vector = [&](const std::optional<uint32_t>& index) {
      return index && plan_.variables[*index].kept == Kept::Vector;
    };
    if (!at.optional || at.writes || at.narrow || at.space == ptx::Space::Shared ||
        step.meaning.does != Does::Load || memory_bytes(step) != 4 || at.steps.step != 4 ||
        least < -kFarthest || most > kFarthest || !is_vector(step.d) || !is_vector(step.under))
      for_some_[found->second] = 0;
  }
  if (std::find(for_some_.begin(), for_some_.end(), 1) == for_some_.end()) return;
  unsure_ = t_.new_word();
  t_.constant_word(unsure_, 0);
}

void Emitter::make_loaders(const Step& step) {
  for (uint32_t s = 0; s < strips_; ++s) {
    loaders_.push_back(t_.new_vector());
    const Reg given = vector_of(*step.under, s, 0);
    step.under_not ? static_cast<void>(t_.unary(Does::Not, Number::U32, loaders_[s], given))
                   : t_.copy(loaders_[s], given);
  }
}

// Are the loads of these lanes from this place inside the memory? Compares distances from the start
// of the memory, which are below 2^31 here; a negative one is beyond every limit.
void Emitter::expect_some_inside(size_t prepared, const Reg& beyond, const Label& otherwise) {
  const Prepared& at = out_->prepared[prepared];
  const Target::Mark mark = t_.mark();
  Reg cached = t_.word(), begin = t_.word(), size = t_.word(), span = t_.word(), near = t_.word();
  load_region(at.op, cached, begin, size);
  t_.jump_if_above(begin, size, otherwise);  // not known yet
  t_.word_binary(Does::Sub, Number::U64, size, size, begin);
  t_.constant_word(span, static_cast<uint64_t>(at.most - at.least));
  t_.jump_if_above(span, size, otherwise);
  t_.word_binary(Does::Sub, Number::U64, size, size, span);
  t_.jump_if_bits(size, ~uint64_t{0x7fffffff}, otherwise);
  t_.word_add(near, pointers_[prepared], at.least);
  t_.word_binary(Does::Sub, Number::U64, near, near, begin);
  t_.word_add(span, near, int64_t{1} << 30);
  t_.jump_if_bits(span, ~uint64_t{0x7fffffff}, otherwise);
  Reg all = t_.vector(), limit = t_.vector();
  t_.splat(all, near, 4);
  t_.splat(limit, size, 4);
  for (uint32_t s = 0; s < strips_; ++s) {
    const Target::Mark each = t_.mark();
    Reg far = t_.vector();
    t_.add_steps(far, all, rise(at.steps, s * t_.vector_lanes()), at.steps.step, 4);
    t_.compare(Comparison::Gt, Number::U32, far, far, limit);
    t_.binary(Does::And, Number::U32, far, far, loaders_[s]);
    t_.binary(Does::Or, Number::U32, beyond, beyond, far);
    t_.release(each);
  }
  t_.release(mark);
}

// Before the first load from a place of for_some_.
void Emitter::expect_loaders(const Step& step) {
  if (!loaders_.empty()) return;
  make_loaders(step);
  Label sure = t_.label(), otherwise = t_.label();
  const Target::Mark mark = t_.mark();
  Reg beyond = t_.vector(), looked = t_.word();
  t_.jump_if(unsure_, false, sure);
  t_.constant(beyond, 0, 4);
  for (size_t i = 0; i < for_some_.size(); ++i) {
    if (for_some_[i]) expect_some_inside(i, beyond, otherwise);
  }
  t_.jump_if_lanes(beyond, 0xffffffffu, 4, otherwise);
  t_.jump(sure);
  t_.bind(otherwise);
  t_.load_word(looked, t_.pass(), offsetof(Pass, looked), 4);
  t_.jump_if(looked, false, refused_);
  t_.jump(bail());
  t_.bind(sure);
  t_.release(mark);
}

// The same for addresses that change, like Entry::reach(). The address that was found there before
// must be in the region; otherwise the region may be another Op's. Memory behind a branch is looked
// up once: if it is not found, every check of it fails.
void Emitter::reach_itself(uint32_t index) {
  const Reach& at = out_->reaches[index];
  const Target::Mark mark = t_.mark();
  const auto [begin, size] = new_reach(index);
  const bool may_lack = at.optional && !is_own(at.space);
  const Label otherwise = may_lack ? t_.label() : refused_;
  Reg span = t_.word();
  if (at.space == ptx::Space::Local) {
    t_.jump_unless_at(t_.pass(), offsetof(Pass, local_stride), 4, plan_.local_stride, refused_);
    t_.load_word(size, t_.pass(), offsetof(Pass, local_bytes), 8);
    t_.load_word(begin, t_.pass(), offsetof(Pass, local), 8);
  } else if (at.space == ptx::Space::Shared) {
    t_.load_word(size, t_.pass(), offsetof(Pass, shared_bytes), 8);
    t_.load_word(begin, t_.pass(), offsetof(Pass, shared), 8);
  } else {
    Reg cached = t_.word(), seen = t_.word();
    load_region(at.op, cached, begin, size);
    t_.jump_if_above(begin, size, otherwise);  // not known yet
    t_.word_binary(Does::Sub, Number::U64, size, size, begin);
    t_.load_word(seen, t_.pass(), offsetof(Pass, seen), 8);
    t_.load_word(seen, seen, int64_t{index} * 8, 8);
    t_.word_binary(Does::Sub, Number::U64, seen, seen, begin);
    t_.jump_if_above(seen, size, otherwise);
    if (at.align > 1) t_.jump_if_bits(begin, at.align - 1, otherwise);
    if (at.writes) expect_writable(at.op, cached, otherwise);
  }
  t_.constant_word(span, at.span);
  t_.jump_if_above(span, size, otherwise);
  t_.word_binary(Does::Sub, Number::U64, size, size, span);
  if (may_lack) {
    Label done = t_.label(), lacks = t_.label();
    Reg state = t_.word();
    t_.jump(done);
    t_.bind(otherwise);
    t_.load_word(state, t_.pass(), offsetof(Pass, seen), 8);
    t_.load_word(state, state, int64_t{index} * 8, 8);
    t_.word_add(state, state, -static_cast<int64_t>(kNotThere));
    t_.jump_if(state, false, lacks);
    t_.load_word(state, t_.pass(), offsetof(Pass, looked), 4);
    t_.jump_if(state, false, refused_);
    t_.bind(lacks);
    t_.constant_word(begin, ~uint64_t{0});
    t_.constant_word(size, 0);
    t_.bind(done);
  }
  t_.release(mark);
}

void Emitter::expect_writable(uint32_t op, const Reg& cached, const Label& otherwise) {
  Reg writable = t_.word();
  t_.load_word(writable, cached, region_part(op, offsetof(Worker::CachedRegion, writable)), 4);
  t_.word_unary(Does::Not, Number::U64, writable, writable);
  t_.jump_if_bits(writable, 1, otherwise);
}

// Checks that the 32 lanes are exactly base and step: compares their bits.
void Emitter::expect_lanes(const Variable& v) {
  Reg base = t_.word(), differs = t_.vector();
  t_.load_word(base, registers_, v.slot, v.bytes);
  t_.constant(differs, 0, 4);
  const uint32_t in_vector = vector_bytes() / v.bytes;
  const bool rises = v.steps.step != 0;
  const bool adds = t_.adds_steps();
  Reg all = adds ? t_.vector() : Reg();
  if (adds) t_.splat(all, base, v.bytes);
  for (uint32_t lane = 0; lane < kWarpSize; lane += in_vector) {
    const Target::Mark mark = t_.mark();
    Reg wanted = t_.vector();
    if (adds) {
      t_.add_steps(wanted, all, rise(v.steps, lane), v.steps.step, v.bytes);
    } else {
      Reg first = t_.word();
      t_.word_add(first, base, rise(v.steps, lane));
      t_.splat(wanted, first, v.bytes);
      if (rises)
        t_.binary(Does::Add, v.bytes == 8 ? Number::U64 : Number::U32, wanted, wanted,
                  rises_.at({v.steps.step, v.bytes}));
    }
    t_.differ(differs, wanted, registers_, int64_t{v.slot} + int64_t{lane} * v.bytes);
    t_.release(mark);
  }
  t_.jump_if_lanes(differs, 0xffffffffu, 4, refused_);
}

void Emitter::expect_variable(const Variable& v) {
  if (!v.home || !v.input || (v.in == Slot::Scalar && !v.held)) return;
  const Target::Mark mark = t_.mark();
  if (v.in == Slot::Scalar) {
    const uint64_t number = v.bytes == 4 ? static_cast<uint32_t>(v.constant) : v.constant;
    t_.jump_unless_at(registers_, v.slot, v.bytes, number, refused_);
  } else if (v.kept == Kept::Word || v.kept == Kept::Steps) {
    if (v.in == Slot::Predicate) {  // none or all: adding 1 leaves no bit but the first
      Reg bits = t_.word();
      t_.load_word(bits, registers_, v.slot, 4);
      t_.word_add(bits, bits, 1);
      t_.jump_if_bits(bits, 0xfffffffeu, refused_);
    } else if (v.in == Slot::Header) {
      expect_header(v.slot, v.steps, v.warp_step, v.bytes == 4, refused_);
    } else {
      expect_lanes(v);
    }
  }
  t_.release(mark);
}

// If a phase has several exits, a value that is live after it is written to the frame once, when it
// is computed, instead of at each exit, which would be most of the code of a phase with many
// branches. Nothing reads the old value in the frame, so the phase may still start again.
void Emitter::find_early() {
  if (plan_.phase.loops || plan_.masked || plan_.apart || out_->goes_on) return;
  const auto leaves = [&](const Step& step) {
    if (!is_branch(step)) return false;
    const bool disagrees = step.a && plan_.variables[*step.a].kept == Kept::Vector;
    return disagrees || !is_inside(flow_.index_of(step.op.target));
  };
  if (std::none_of(plan_.steps.begin(), plan_.steps.end(), leaves)) return;
  List<uint8_t> writers(plan_.variables.size(), 0);
  for (const Step& step : plan_.steps) {
    if (step.d && step.writes.empty()) writers[*step.d] += writers[*step.d] < 2;
    for (uint32_t to : step.writes) writers[to] = 2;
  }
  for (const auto& [slot, index] : plan_.home) {
    const Variable& v = plan_.variables[index];
    values_[index].is_early =
        !v.input && !v.blended && writers[index] == 1 && flow_.is_live(slot, plan_.phase.end);
  }
}

void Emitter::write_early(const Step& step) {
  if (!values_[*step.d].is_early) return;
  const Target::Mark mark = t_.mark();
  write_back(*step.d);
  t_.release(mark);
  values_[*step.d].in_frame = true;
}

// Values that are live at this Op, before it runs.
List<uint32_t> Emitter::live_at(uint32_t op) const {
  List<uint32_t> out;
  if (plan_.apart) out = written_home();  // first, so that the values of the block override them
  ListedSet<uint32_t> in_block;           // slots that hold a value of their block
  for (uint32_t i = 0; i < plan_.variables.size(); ++i) {
    const Variable& v = plan_.variables[i];
    if (v.home || v.from >= op || v.until < op || flow_.is_apart(v.from, op)) continue;
    in_block.insert(v.slot);
    if (flow_.is_live(v.slot, op)) out.push_back(i);
  }
  if (plan_.apart) return out;
  for (const auto& [slot, index] : plan_.home) {
    const Variable& v = plan_.variables[index];
    // A value that has not been read yet is still in the frame.
    const bool has_it = values_[index].read || !v.input;
    if (v.written && has_it && !values_[index].in_frame && !in_block.count(slot) &&
        flow_.is_live(slot, op))
      out.push_back(index);
  }
  return out;
}

// The maximum of base and step and a number is base and step, if its lowest lane is not below the
// number.
bool Emitter::clamp_steps(const Step& step) {
  const Meaning& m = step.meaning;
  const bool is_signed = m.type == Number::S32;
  const bool first = plan_.variables[*step.a].kept == Kept::Steps;
  const uint32_t value = first ? *step.a : *step.b;
  const Ends ends = ends_of(value, is_signed);
  Reg other = t_.word(), clamped = t_.word();
  t_.word_extend(is_signed, other, word_of(first ? *step.b : *step.a));
  const bool is_max = m.does == Does::Max;
  t_.word_compare(is_max ? Comparison::Lt : Comparison::Gt, Number::S64, clamped,
                  is_max ? ends.least : ends.most, other);
  t_.jump_if(clamped, true, bail());
  t_.copy(result(*step.d, 0, 0), word_of(value));
  return true;
}

// The row or the column of an index of base and step: all lanes are in one row if the lowest and
// the highest lane are. Signed division requires that the numbers are not negative.
bool Emitter::part_of_steps(const Step& step) {
  const Meaning& m = step.meaning;
  const Reg base = word_of(*step.a), by = word_of(*step.b), d = result(*step.d, 0, 0);
  const Ends ends = ends_of(*step.a, m.type == Number::S32);
  const bool divides = m.does == Does::Divide || m.does == Does::Remainder;
  if (!divides) {
    const uint64_t number = plan_.variables[*step.b].constant & 0xffffffffu;
    Reg differ = t_.word(), rows = t_.word();
    t_.word_binary(Does::Xor, Number::U64, differ, ends.least, ends.most);
    const uint64_t inside = m.does == Does::And ? number : (uint64_t{1} << number) - 1;
    t_.constant_word(rows, ~inside);
    t_.word_binary(Does::And, Number::U64, differ, differ, rows);
    t_.jump_if(differ, true, bail());
    return t_.word_binary(m.does, m.type, d, base, by);
  }
  Reg all = t_.vector(), width = t_.vector(), row = t_.word(), begin = t_.word();
  t_.splat(all, base, 4);
  t_.splat(width, by, 4);
  if (!t_.binary(Does::Divide, m.type, all, all, width)) return false;
  t_.lane_word(row, all, 0, 4);
  Reg size = t_.word(), left = t_.word(), before = t_.word(), zero = t_.word();
  t_.word_extend(m.type == Number::S32, size, by);
  t_.word_extend(false, row, row);
  t_.word_binary(Does::Mul, Number::U64, begin, row, size);
  t_.word_add(size, size, -1);
  t_.word_binary(Does::Add, Number::U64, left, begin, size);
  t_.word_binary(Does::Sub, Number::U64, left, left, ends.most);
  t_.word_binary(Does::Sub, Number::U64, before, ends.least, begin);
  // None of these numbers may be negative.
  for (const Reg& each : {left, before, ends.least})
    t_.word_binary(Does::Or, Number::U64, size, size, each);
  t_.constant_word(zero, 0);
  t_.word_compare(Comparison::Lt, Number::S64, size, size, zero);
  t_.jump_if(size, true, bail());
  if (m.does == Does::Divide)
    t_.copy(d, row);
  else
    t_.word_binary(Does::Sub, Number::U32, d, base, begin);
  return true;
}

// Where to jump if a check of the current Op fails: to the bailout that starts the phase again, or
// to an exit at the Op itself if something may have been stored.
Label Emitter::bail() {
  const bool starts_again = !has_stored_ && !(plan_.phase.stores && plan_.phase.loops);
  if (starts_again) {
    bails_ = true;
    return bail_;
  }
  if (stubs_.empty() || stubs_.back().op != now_->resume)
    stubs_.push_back({now_->resume, t_.label(), live_at(now_->resume)});
  return stubs_.back().label;
}

void Emitter::write_stubs() {
  for (const Stub& stub : stubs_) {
    t_.bind(stub.label);
    if (plan_.apart) t_.store_word(active_bits_, t_.pass(), offsetof(Pass, here), 4);
    leave_with(stub.variables, {stub.op, false, true});
  }
}

// The same checks as a list, for checks outside the code.
void Emitter::list_guards() {
  for (const Variable& v : plan_.variables) {
    if (!v.home || !v.input) continue;
    if (v.in == Slot::Scalar) {
      if (v.held)
        out_->guards.push_back({v.slot, v.in, v.bytes, Rises({}, kWarpSize), {}, v.constant});
      if (bails_ && staged_.count(v.slot)) out_->saved.push_back({v.slot, 8});
      continue;
    }
    if (plan_.alone) continue;
    if (v.kept == Kept::Word || v.kept == Kept::Steps)
      out_->guards.push_back({v.slot, v.in, v.bytes, Rises(v.steps, plan_.row_lanes), v.steps});
    const bool overwritten = out_->lanes < kWarpSize ? v.written : staged_.count(v.slot) != 0;
    const bool saves = bails_ && overwritten;
    if (saves) out_->saved.push_back({v.slot, v.in == Slot::Predicate ? 4 : v.bytes * kWarpSize});
  }
}

}  // namespace kiln::engine
