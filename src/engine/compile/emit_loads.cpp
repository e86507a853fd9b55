// SPDX-License-Identifier: Apache-2.0
// How are loads compiled? An address that does not change is checked before the phase. An address
// that changes is checked each time, and so is the address of each lane of a gather
// (emit_gathers.cpp). If a check fails, the interpreter runs the phase again and finds the fault,
// or continues.
#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "engine/compile/emitter.h"

namespace kiln::engine {
namespace {

constexpr int64_t kFarthestStep = int64_t{1} << 48;  // from lane to lane

bool reaches_memory(const Step& step) {
  return step.meaning.does == Does::Load || step.meaning.does == Does::LoadScalar ||
         changes_memory(step);
}

}  // namespace

// Can control skip the step? Not after the paths join; but in a loop, or after one, this is
// unknown.
bool Emitter::is_behind_branch(const Step& step) const {
  return step.under || std::any_of(skipped_.begin(), skipped_.end(), [&](const Skipped& each) {
           return step.index > each.from && step.index < each.to;
         });
}

bool Emitter::prepare_places() {
  for (const Step& step : plan_.steps) {
    if (!is_branch(step)) continue;
    const uint32_t target = flow_.index_of(step.op.target);
    const bool meets = !plan_.phase.loops && target > step.index && target < plan_.phase.end;
    skipped_.push_back({step.index, meets ? target : ~uint32_t{0}});
  }
  for (const Step& step : plan_.steps) {
    if (!reaches_memory(step) || is_local(step)) continue;
    const uint32_t bytes = memory_bytes(step);
    const bool of_header = step.place.of == Place::Of::Header;
    Prepared at{step.place.of,
                step.op.a,
                Slot::Lanes,
                (step.op.x & kAddress32) != 0,
                static_cast<ptx::Space>(step.op.z),
                step.place.steps,
                step.op.imm,
                step.op.imm + int64_t{bytes},
                step.align,
                step.index,
                changes_memory(step),
                is_behind_branch(step)};
    at.warp_step = step.place.warp_step;
    if (!of_header) {
      const Variable& v = plan_.variables[*step.a];
      const bool is_known = v.kept == Kept::Word || (v.kept == Kept::Steps && !plan_.some);
      if (!v.home || v.written || !is_known || plan_.alone) continue;
      at.in = v.in;
      at.steps = v.steps;
    }
    // It would have to be checked lane by lane.
    if (static_cast<uint64_t>(at.steps.step | at.steps.row_step) & (at.align - 1) ||
        std::max(std::abs(at.steps.step), std::abs(at.steps.row_step)) > kFarthestStep) {
      if (of_header) return false;
      continue;
    }
    // An optional place needs no check of its own if a place that is checked anyway covers it.
    const auto has_it = [&](const Prepared& other) {
      return at.optional && other.least <= at.least && other.most >= at.most &&
             other.align >= at.align;
    };
    const auto same = [&](const Prepared& other) {
      return other.of == at.of && other.slot == at.slot && other.space == at.space &&
             other.narrow == at.narrow && other.steps == at.steps &&
             (other.writes == at.writes || at.space == ptx::Space::Shared) &&
             (other.optional == at.optional || has_it(other));
    };
    auto found = std::find_if(out_->prepared.begin(), out_->prepared.end(), same);
    if (found == out_->prepared.end()) {
      found = out_->prepared.insert(found, at);
    } else {
      found->least = std::min(found->least, at.least);
      found->most = std::max(found->most, at.most);
      found->align = std::max(found->align, at.align);
    }
    prepared_of_[step.index] = static_cast<uint32_t>(found - out_->prepared.begin());
  }
  for (Prepared& at : out_->prepared) {
    const auto [low, high] = range_of(at.steps, kWarpSize);
    at.first = at.least + low;
    at.bytes = static_cast<uint64_t>(at.most + high - at.first);
  }
  return true;
}

// A header or a word that is only used as an address is in the table and need not be read.
void Emitter::find_read() {
  for (const Step& step : plan_.steps) {
    const bool in_table = prepared_of_.count(step.index) != 0;
    const auto note = [&](const std::optional<uint32_t>& from) {
      if (!from) return;
      values_[*from].is_read = true;
      values_[*from].is_read_as_vector |= reads_as_vector(step, *from);
    };
    if (step.d) values_[*step.d].made_by = &step;
    if (!in_table) note(step.a);
    for (const auto& from : {step.b, step.c, step.under}) note(from);
    for (const auto& from : {step.a, step.b, step.c, step.under}) {
      if (from) values_[*from].is_wanted = true;
    }
    for (uint32_t from : step.reads) {
      values_[from].is_wanted = true;
      const bool is_vector = is_parts(step.meaning) || step.vote != Vote::None ||
                             (step.exchange && from == step.reads[0]);
      if (is_vector) values_[from].is_read = values_[from].is_read_as_vector = true;
    }
  }
  for (uint32_t i = 0; i < plan_.variables.size(); ++i)
    values_[i].is_read |= plan_.variables[i].written;
}

void Emitter::find_pointers() {
  out_->checks_itself = may_check_itself();
  for (size_t i = 0; i < out_->prepared.size(); ++i) pointers_.push_back(t_.new_word());
  for (const Step& step : plan_.steps) {
    if (reaches_memory(step) && !prepared_of_.count(step.index)) reach_of(step);
  }
  if (!out_->checks_itself) {
    for (size_t i = 0; i < out_->prepared.size(); ++i)
      t_.load_word(pointers_[i], table_, static_cast<int64_t>(i) * 8, 8);
    for (uint32_t i = 0; i < out_->reaches.size(); ++i) {
      const ReachWords words = new_reach(i);
      const size_t at = out_->prepared.size() + size_t{i} * 3;
      const bool own = is_own(out_->reaches[i].space);
      t_.load_word(words.begin, table_, static_cast<int64_t>(own ? at + 2 : at) * 8, 8);
      t_.load_word(words.limit, table_, static_cast<int64_t>(at + 1) * 8, 8);
    }
    return;
  }
  out_->goes_on = may_go_on();
  if (out_->goes_on) {
    next_warp_ = t_.label();
    first_step_ = t_.label();
    left_ = t_.new_word();
    t_.load_word(left_, t_.pass(), offsetof(Pass, followers), 4);
  }
  for (uint32_t i = 0; i < out_->reaches.size(); ++i) reach_itself(i);
  find_loaded_for_some();
  // Required checks come first: the optional ones need not repeat them.
  for (bool optional : {false, true}) {
    for (size_t i = 0; i < out_->prepared.size(); ++i) {
      if (out_->prepared[i].optional == optional)
        place_itself(out_->prepared[i], pointers_[i], for_some_[i] != 0);
    }
    if (!optional) {
      for (const Variable& v : plan_.variables) expect_variable(v);
    }
  }
}

Reg Emitter::pointer_of(uint32_t prepared) {
  const bool is_found = std::find(found_.begin(), found_.end(), prepared) != found_.end();
  if (out_->prepared[prepared].optional && !is_found) {
    t_.jump_if(pointers_[prepared], false, bail());
    found_.push_back(prepared);
  }
  return pointers_[prepared];
}

// Is one check enough for all lanes? They are aligned if the first lane is, and are inside if the
// two ends are.
bool Emitter::is_checked_at_once(const Step& step) const {
  const Variable& v = plan_.variables[*step.a];
  if (plan_.some && v.kept == Kept::Steps) return false;
  const auto rises = static_cast<uint64_t>(v.steps.step | v.steps.row_step);
  return v.kept != Kept::Vector && (rises & (step.align - 1)) == 0;
}

// The values of the other lanes do not matter: if the whole range exists, they may load too.
void Emitter::load_for_some(const Step& step, const Reg& base, const Pattern2& steps) {
  const auto each = [&](bool for_all) {
    for (uint32_t s = 0; s < strips_; ++s) {
      const Target::Mark mark = t_.mark();
      const Reg to = result(*step.d, s, 0);
      const int64_t at = step.op.imm + rise(steps, s * t_.vector_lanes());
      for_all ? t_.load(to, base, at) : t_.load_some(to, base, at, loaders_[s]);
      t_.release(mark);
    }
  };
  if (t_.loads_some_at_once()) return each(false);
  const Label some = t_.label(), done = t_.label();
  t_.jump_if(unsure_, true, some);
  each(true);
  t_.jump(done);
  t_.bind(some);
  each(false);
  t_.bind(done);
}

// For ld.v2, ld.v4 and similar: the number of registers that this step and the following ones load
// or store, if neighbouring lanes are neighbours in memory; otherwise 0.
uint32_t Emitter::elements_from(const Step& step, const Pattern2& steps) const {
  const Step* const end = plan_.steps.data() + plan_.steps.size();
  uint32_t count = 0;
  for (const Step* each = &step; each != end && each->index == step.index; ++each, ++count) {
    if (memory_bytes(*each) != 4 || each->under || is_local(*each) ||
        each->op.imm != step.op.imm + int64_t{count} * 4 ||
        (each->d && plan_.variables[*each->d].kept != Kept::Vector))
      return 0;
  }
  return (count == 2 || count == 4) && steps.step == int64_t{count} * 4 ? count : 0;
}

bool Emitter::load_elements(const Step& step, const Reg& base, int64_t offset,
                            const Pattern2& steps) {
  const uint32_t count = elements_from(step, steps);
  if (count == 0) return false;
  for (uint32_t s = 0; s < strips_; ++s) {
    const Target::Mark mark = t_.mark();
    List<Reg> to;
    for (uint32_t e = 0; e < count; ++e) to.push_back(result(*(&step)[e].d, s, 0));
    if (!t_.load_elements(to, base, offset + rise(steps, s * t_.vector_lanes()))) return false;
    t_.release(mark);
  }
  loaded_ = &step + count;
  return true;
}

bool Emitter::load(const Step& step) {
  if (loaded_ && &step < loaded_ && step.index == loaded_[-1].index) return true;
  auto prepared = prepared_of_.find(step.index);
  if (prepared != prepared_of_.end()) {
    const Prepared& at = out_->prepared[prepared->second];
    if (out_->checks_itself && for_some_[prepared->second]) {
      expect_loaders(step);
      load_for_some(step, pointer_of(prepared->second), at.steps);
      return true;
    }
    load_from(step, pointer_of(prepared->second), step.op.imm, at.steps);
    return true;
  }
  if (step.place.of == Place::Of::Header) return false;
  return is_checked_at_once(step) ? load_changing(step) : gather(step);
}

void Emitter::load_from(const Step& step, const Reg& base, int64_t offset, const Pattern2& steps) {
  if (load_elements(step, base, offset, steps)) return;
  const Variable& d = plan_.variables[*step.d];
  const uint32_t bytes = memory_bytes(step);
  const bool small = is_small_load(step);
  if (small && d.kept != Kept::Vector) {
    const Target::Mark mark = t_.mark();
    Reg word = d.kept == Kept::Word ? result(*step.d, 0, 0) : t_.word();
    t_.load_small_word(word, base, offset, step.meaning.from, bytes_of(step.meaning.type));
    if (d.kept == Kept::Splat) t_.splat(result(*step.d, 0, 0), word, 4);
    t_.release(mark);
    return;
  }
  if (d.kept == Kept::Word) {
    t_.load_word(result(*step.d, 0, 0), base, offset, bytes);
    return;
  }
  if (d.kept == Kept::Splat) {
    t_.load_splat(result(*step.d, 0, 0), base, offset, bytes);
    return;
  }
  const uint32_t halves = bytes == 8 ? 2 : 1, lanes = t_.vector_lanes(), in_vector = lanes / halves;
  for (uint32_t s = 0; s < strips_; ++s) {
    for (uint32_t h = 0; h < halves; ++h) {
      const uint32_t first = s * lanes + h * in_vector;
      const int64_t at = offset + rise(steps, first);
      const Reg to = result(*step.d, s, h);
      const Target::Mark mark = t_.mark();
      // Rows that all read the same place: copy from the strip before.
      if (steps.step == 0 && h == 0 && s > 0 && at == offset + rise(steps, first - lanes)) {
        t_.copy(to, result(*step.d, s - 1, 0));
      } else if (small && steps.step == int64_t{bytes}) {
        t_.load_small(to, base, at, step.meaning.from);
        keep_low(to, step.meaning.type);
      } else if (small && is_local(step) && t_.load_apart(to, base, at, steps.step, 4)) {
        cut_small(step, to);
      } else if (small && steps.step != 0 && t_.gathers_small()) {
        load_small_apart(step, to, base, offset, steps, first);
      } else if (small) {
        for (uint32_t i = 0; i < (steps.step == 0 ? 1 : lanes); ++i)  // the first lane is a splat
          load_small_lane(step, to, i, base, offset + rise(steps, first + i));
      } else if (steps.step == 0) {
        t_.load_splat(to, base, at, bytes);
      } else if (steps.step == int64_t{bytes}) {
        t_.load(to, base, at);
      } else if (!t_.load_apart(to, base, at, steps.step, bytes)) {
        t_.load_first(to, base, at, bytes);
        for (uint32_t i = 1; i < in_vector; ++i) {
          Reg word = t_.word();
          t_.load_word(word, base, offset + rise(steps, first + i), bytes);
          t_.set_lane(to, word, i, bytes);
        }
      }
      t_.release(mark);
    }
  }
}

// Accesses in one basic block that start from one address are checked together, before the first of
// them: either all run or none. An access that a branch can skip is checked by itself.
void Emitter::find_groups() {
  group_of_.assign(plan_.steps.size(), 0);
  List<uint32_t> open;  // groups of this block
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const Step& step = plan_.steps[s];
    if ((labels_.count(step.index) && (s == 0 || plan_.steps[s - 1].index != step.index)) ||
        is_branch(step))
      open.clear();
    if (reaches_memory(step) && step.a && !prepared_of_.count(step.index)) {
      constexpr int64_t kFarthest = 1 << 20;
      const int64_t first = step.op.imm, last = first + int64_t{memory_bytes(step)};
      const auto fits = [&](uint32_t index) {
        const Group& group = groups_[index];
        return group.variable == *step.a && group.writes == changes_memory(step) &&
               group.space == step.op.z && group.at_once == is_checked_at_once(step) &&
               group.narrow == ((step.op.x & kAddress32) != 0) && !step.under &&
               std::abs(group.first - first) < kFarthest;
      };
      const auto found = std::find_if(open.begin(), open.end(), fits);
      group_of_[s] = found != open.end() ? *found : static_cast<uint32_t>(groups_.size());
      if (found == open.end()) {
        groups_.push_back({*step.a, changes_memory(step), step.op.z, is_checked_at_once(step),
                           (step.op.x & kAddress32) != 0, first, last, step.align});
        if (!step.under) open.push_back(group_of_[s]);
      }
      Group& group = groups_[group_of_[s]];
      group.first = std::min(group.first, first);
      group.last = std::max(group.last, last);
      group.align = std::max(group.align, step.align);
      ++group.count;
    }
    std::erase_if(open, [&](uint32_t index) { return writes(step, groups_[index].variable); });
  }
}

// The pointer that an address is computed from, if it can be found; otherwise the address of each
// lane that it is computed from, or the address itself. Addresses from one pointer usually lie in
// one region.
uint32_t Emitter::root_of(uint32_t variable, uint32_t depth) const {
  const Variable& v = plan_.variables[variable];
  const Step* step = v.home ? nullptr : values_[variable].made_by;
  if (!step || depth == 0) return variable;
  const auto is_scalar = [&](const Variable& root) {
    return root.home && root.in == Slot::Scalar && root.bytes == 8 && !root.is_constant;
  };
  const auto through = [&](std::initializer_list<std::optional<uint32_t>> operands) {
    uint32_t lanes = variable, distance = variable;
    for (const auto& from : operands) {
      if (!from || plan_.variables[*from].bytes != v.bytes) continue;
      const uint32_t index = root_of(*from, depth - 1);
      const Variable& root = plan_.variables[index];
      if (is_scalar(root) && root.is_far) return index;
      if (lanes == variable && root.home && root.in == Slot::Lanes && root.is_far) lanes = index;
      if (distance == variable && is_scalar(root)) distance = index;
    }
    return lanes != variable ? lanes : distance;
  };
  switch (step->meaning.does) {
    case Does::Add:
    case Does::Sub:
      return through({step->a, step->b});
    case Does::Copy:
    case Does::Spread:
      return through({step->a});
    case Does::MadWide:
      return through({step->c});
    default:
      return variable;
  }
}

// Accesses to shared memory with the same extent share one reach, and so do accesses through one
// pointer.
Reach& Emitter::reach_of(const Step& step) {
  Reach at{static_cast<ptx::Space>(step.op.z), step.index, memory_bytes(step), changes_memory(step),
           is_behind_branch(step)};
  constexpr uint32_t kDepth = 8;
  const uint32_t root = is_own(at.space) ? 0 : root_of(*step.a, kDepth);
  const Group& group = group_of(step);
  at.span = static_cast<uint64_t>(group.last - group.first);
  if (group.at_once) {
    const auto [least, most] = range(plan_.variables[*step.a].steps);
    at.span += static_cast<uint64_t>(most - least);
  } else {
    at.align = group.align;
  }
  auto place = reach_of_.find(step.index);
  if (place == reach_of_.end()) {
    uint32_t index = 0;
    for (; index < out_->reaches.size(); ++index) {
      const Reach& other = out_->reaches[index];
      if (other.space == at.space && other.span == at.span && other.align == at.align &&
          roots_[index] == root &&
          ((other.writes == at.writes && other.optional == at.optional) || is_own(at.space)))
        break;
    }
    if (index == out_->reaches.size()) {
      const Variable& pointer = plan_.variables[root];
      const bool is_there = !is_own(at.space) && pointer.home && pointer.input &&
                            pointer.bytes == 8 && pointer.in != Slot::Header;
      if (is_there) at.root = pointer.slot, at.root_has_lanes = pointer.in == Slot::Lanes;
      out_->reaches.push_back(at);
      roots_.push_back(root);
    } else {
      out_->reaches[index].others.push_back(step.index);
    }
    place = reach_of_.emplace(step.index, index).first;
  }
  Reach& reach = out_->reaches[place->second];
  reach.span = std::max(reach.span, at.span);
  reach.align = std::max(reach.align, at.align);
  reach.optional &= at.optional;
  return reach;
}

const Emitter::ReachWords& Emitter::new_reach(uint32_t index) {
  if (reach_words_.size() <= index) reach_words_.resize(index + 1);
  return reach_words_[index] = {t_.new_word(), t_.new_word()};
}

// In a loop that lanes leave from the last one on, as at the end of an array: may the lanes that
// have left load past the end?
bool Emitter::has_lanes_beyond(const Step& step, const Group& group) const {
  const Pattern2& steps = plan_.variables[*step.a].steps;
  const bool is_straight =
      plan_.row_lanes == kWarpSize || steps.row_step == steps.step * int64_t{plan_.row_lanes};
  return plan_.masked && !plan_.apart && !group.writes && !group.narrow && is_straight &&
         steps.step > 0 && steps.step <= 64 && !is_own(static_cast<ptx::Space>(step.op.z));
}

// The active lanes have to be inside. The others may read up to the end of the page in which the
// memory ends; their values are unused.
void Emitter::expect_active_inside(const Step& step, const Group& group, const ReachWords& reach,
                                   const Reg& address, const Reg& from) {
  constexpr uint32_t kPage = 12;
  const Pattern2& steps = plan_.variables[*step.a].steps;
  const auto [least, most] = range(steps);
  const int64_t last = group.last - group.first + most - least - 1;
  const Label beyond = t_.label(), inside = t_.label();
  t_.jump_if_above(from, reach.limit, beyond);
  t_.jump(inside);
  t_.bind(beyond);
  const Target::Mark mark = t_.mark();
  const Reg left = t_.word(), count = t_.word(), bits = t_.word();
  t_.constant_word(bits, 0);
  for (uint32_t s = 0; s < strips_; ++s) t_.mask_to_bits(bits, active_[s], s * t_.vector_lanes());
  // The lanes that have left are the last ones: the bits of the others plus 1 are one bit.
  t_.word_add(left, bits, 1);
  t_.word_binary(Does::And, Number::U64, bits, bits, left);
  t_.jump_if(bits, true, bail());
  t_.lowest_bit(count, left);
  t_.constant_word(bits, static_cast<uint64_t>(steps.step));
  t_.word_binary(Does::Mul, Number::U64, count, count, bits);
  t_.word_binary(Does::Add, Number::U64, count, count, from);
  t_.word_add(count, count, -steps.step * int64_t{out_->lanes});
  bail_if_above(count, reach.limit);
  t_.word_binary(Does::Add, Number::U64, left, reach.begin, reach.limit);
  t_.word_add(left, left, last);
  t_.word_add(count, address, last);
  t_.word_shift(left, left, kPage);
  t_.word_shift(count, count, kPage);
  t_.word_binary(Does::Xor, Number::U64, left, left, count);
  t_.jump_if(left, true, bail());
  t_.bind(inside);
  t_.release(mark);
}

// Before the loop: how far ahead of each address memory is asked for.
void Emitter::find_asked() {
  for (const Ahead& ahead : plan_.ahead) {
    const auto same = [&](const Ahead& other) {
      return other.scalar == ahead.scalar && other.times == ahead.times && other.more == ahead.more;
    };
    const auto before = std::find_if(plan_.ahead.begin(), plan_.ahead.end(), same);
    const auto index = static_cast<size_t>(before - plan_.ahead.begin());
    if (index < asked_.size()) {
      asked_.push_back(asked_[index]);
      continue;
    }
    const Reg distance = t_.new_word();
    asked_.push_back(distance);
    if (!ahead.scalar) {
      t_.constant_word(distance, static_cast<uint64_t>(ahead.more));
      continue;
    }
    const Variable& scalar = plan_.variables[*ahead.scalar];
    const Target::Mark mark = t_.mark();
    const Reg times = t_.word();
    t_.load_word(distance, registers_, scalar.slot, scalar.bytes);
    if (scalar.bytes == 4) t_.word_extend(true, distance, distance);
    t_.constant_word(times, static_cast<uint64_t>(ahead.times));
    t_.word_binary(Does::Mul, Number::U64, distance, distance, times);
    if (ahead.more) t_.word_add(distance, distance, ahead.more);
    t_.release(mark);
  }
}

void Emitter::ask_ahead(const Step& step, const Group& group) {
  constexpr int64_t kLine = 64, kMost = 8;
  const auto [least, most] = range(plan_.variables[*step.a].steps);
  const int64_t bytes = group.last - group.first + most - least;
  for (size_t i = 0; i < plan_.ahead.size(); ++i) {
    if (plan_.ahead[i].variable != *step.a || bytes > kMost * kLine) continue;
    ++out_->asked;
    for (int64_t at = 0; at < bytes; at += kLine)
      t_.ask_for(word_of(*step.a), asked_[i], group.first + least + at);
  }
}

// Checks the whole group, and returns the place of the first lane's element.
Emitter::Placed Emitter::place_changing(const Step& step) {
  Group& group = group_of(step);
  const Variable& v = plan_.variables[*step.a];
  const int64_t least = range(v.steps).first;
  const bool own = is_own(static_cast<ptx::Space>(step.op.z));
  // The address is an address of this process, and no later step changes it.
  const bool direct = !own && !group.narrow && v.kept != Kept::Splat;
  if (!group.is_checked) {
    group.is_checked = true;
    const ReachWords& reach = reach_words(step);
    const Reg base = word_of(*step.a);
    if (group.align > 1) t_.jump_if_bits(base, group.align - 1, bail());
    Reg address = direct ? t_.word() : t_.new_word();
    if (group.narrow) {
      t_.word_add(address, base, group.first);
      t_.word_extend(false, address, address);
      t_.word_add(address, address, least);
    } else {
      t_.word_add(address, base, group.first + least);
    }
    Reg from = address;
    if (!own)  // own memory begins at 0
      t_.word_binary(Does::Sub, Number::U64, from = t_.word(), address, reach.begin);
    has_lanes_beyond(step, group) ? expect_active_inside(step, group, reach, address, from)
                                  : bail_if_above(from, reach.limit);
    if (own) t_.word_binary(Does::Add, Number::U64, address, address, reach.begin);
    group.where = address;
    if (direct && !group.writes) ask_ahead(step, group);
  }
  if (direct) return {word_of(*step.a), step.op.imm};
  return {group.where, step.op.imm - group.first - least};
}

bool Emitter::load_changing(const Step& step) {
  const Placed at = place_changing(step);
  load_from(step, at.base, at.offset, steps_of(step));
  return true;
}

}  // namespace kiln::engine
