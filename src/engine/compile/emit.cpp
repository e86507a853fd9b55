// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/emit.h"

#include <algorithm>
#include <cstddef>

#include "engine/compile/emitter.h"

namespace kiln::engine {

namespace {

// Is a value uniform only because the lowest and the highest lane are checked? They must be those
// of all lanes: otherwise passes could have different values, and take different exits.
bool takes_ends(const Plan& plan) {
  const auto is = [&](const std::optional<uint32_t>& index, Kept kept) {
    return index && plan.variables[*index].kept == kept;
  };
  return std::any_of(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
    return is(step.d, Kept::Word) && (is(step.a, Kept::Steps) || is(step.b, Kept::Steps));
  });
}

}  // namespace

Emitter::Emitter(const Flow& flow, const Plan& plan, Target& target, const CacheIndex& cache_index)
    : flow_(flow),
      plan_(plan),
      t_(target),
      cache_index_(cache_index),
      out_(std::make_unique<Emitted>()) {
  // As many strips at once as keep their values in registers: operations of one strip wait for
  // each other, those of several strips do not.
  const uint32_t kept = most_kept();
  strips_ = kWarpSize / t_.vector_lanes();
  // Without a loop, several passes cost more than spilled values: a single pass can check its
  // assumptions itself.
  const uint32_t most = plan.phase.loops ? t_.vector_count() - 4 : t_.vector_count() * 2;
  while (strips_ > 1 && kept * strips_ > most) strips_ /= 2;
  const bool together = !plan.masked && (plan.memory_decides || plan.lanes_decide);
  // Four strips share one check of a gather, which saves more than spilled values cost.
  if (gathers(plan) > 0) strips_ = 4;
  // The base in a header is that of the first lane.
  const bool has_headers = std::any_of(plan.variables.begin(), plan.variables.end(),
                                       [](const Variable& v) { return v.in == Slot::Header; });
  // The next pass would read what the first one wrote: one word has the bits of all lanes.
  const bool changes_predicates =
      std::any_of(plan.variables.begin(), plan.variables.end(), [](const Variable& v) {
        return v.in == Slot::Predicate && v.kept == Kept::Word && v.home && v.input && v.written;
      });
  if (together || has_headers || changes_predicates || takes_ends(plan) || plan.phase.stores ||
      plan.calls || plan.exchanges || has_small(plan) || plan.local_stride || plan.apart)
    strips_ = kWarpSize;
  strips_ = plan.alone ? 1 : std::min(strips_, kWarpSize / t_.vector_lanes());
  out_->lanes = plan.alone ? 1 : strips_ * t_.vector_lanes();
  out_->alone = plan.alone;
  out_->masked = plan.masked, out_->apart = plan.apart, out_->local_stride = plan.local_stride;
  out_->row_lanes = plan.row_lanes;
  out_->header_rows = plan.header_rows;
  values_.resize(plan.variables.size());
}

// a * b + c, whose result may replace c.
bool Emitter::is_sum(const Step& step) {
  return step.meaning.does == Does::Mad && bytes_of(step.meaning.type) == 4 && step.c != step.a &&
         step.c != step.b;
}

// If c is not read later, its registers become those of the sum.
void Emitter::take_over_sum(const Step& step) {
  if (!is_sum(step)) return;
  const auto is_plain = [&](uint32_t index) {
    const Variable& v = plan_.variables[index];
    return !v.home && v.kept == Kept::Vector && v.bytes == 4;
  };
  auto& ends = last_read_[static_cast<size_t>(&step - plan_.steps.data())];
  const auto found = std::find(ends.begin(), ends.end(), *step.c);
  if (found == ends.end() || !is_plain(*step.c) || !is_plain(*step.d) ||
      !values_[*step.d].regs.empty())
    return;
  ends.erase(found);
  values_[*step.d].regs = values_[*step.c].regs;
}

// The maximum number of vectors that a strip needs at once. With branches, a value that is live
// between blocks is needed all the time; other values are needed from their first step to their
// last.
uint32_t Emitter::most_kept() const {
  List<int> change(plan_.steps.size() + 1, 0);
  struct Used {
    size_t first, last;
  };
  List<Used> used(plan_.variables.size(), Used{plan_.steps.size(), 0});
  for (size_t s = 0; s < plan_.steps.size(); ++s) {
    const Step& step = plan_.steps[s];
    for (const auto& at : {step.d, step.a, step.b, step.c}) {
      if (at) used[*at] = {std::min(used[*at].first, s), s};
    }
  }
  for (uint32_t i = 0; i < plan_.variables.size(); ++i) {
    const Variable& v = plan_.variables[i];
    if (v.kept != Kept::Vector) continue;
    auto [first, last] = used[i];
    if (first == plan_.steps.size()) continue;
    if (v.home && plan_.phase.branches) first = 0, last = plan_.steps.size() - 1;
    if (!v.home && last > first && plan_.steps[last].c == i && is_sum(plan_.steps[last])) --last;
    change[first] += static_cast<int>(halves_of(v.bytes));
    change[last + 1] -= static_cast<int>(halves_of(v.bytes));
  }
  int now = 0, most = 0;
  for (int each : change) most = std::max(most, now += each);
  return static_cast<uint32_t>(most) + (plan_.masked ? 3 : 1);
}

// How far a value of base and step has risen at a lane of the pass.
int64_t Emitter::rise(const Pattern2& steps, uint32_t lane) const {
  return steps.step * int64_t{lane % plan_.row_lanes} +
         steps.row_step * int64_t{lane / plan_.row_lanes};
}
// The lowest and the highest rise of any of the lanes.
std::pair<int64_t, int64_t> Emitter::range_of(const Pattern2& steps, uint32_t lanes) const {
  const int64_t along = steps.step * int64_t{std::min(lanes, plan_.row_lanes) - 1};
  const int64_t rows = lanes > plan_.row_lanes ? lanes / plan_.row_lanes - 1 : 0;
  const int64_t down = steps.row_step * rows;
  return {std::min<int64_t>(along, 0) + std::min<int64_t>(down, 0),
          std::max<int64_t>(along, 0) + std::max<int64_t>(down, 0)};
}

void Emitter::read_input(uint32_t index) {
  const Variable& v = plan_.variables[index];
  Value& value = values_[index];
  if (plan_.alone && v.in != Slot::Scalar) return read_alone(index);
  const Reg base = v.in == Slot::Scalar ? registers_ : v.bytes == 8 ? lanes8_ : lanes4_;
  if (v.in == Slot::Predicate) {
    Reg word = t_.word();
    t_.load_word(word, registers_, v.slot, 4);
    if (v.kept == Kept::Word) {
      t_.word_extend(true, place_of(index, 0, 0), word);
      return;
    }
    Reg moved = word;
    if (out_->lanes < kWarpSize)
      t_.word_binary(Does::ShiftRight, Number::U32, moved = t_.word(), word, first_lane_);
    place_of(index, 0, 0);
    t_.bits_to_masks(value.regs, moved);
    return;
  }
  if (v.in == Slot::Header) {
    t_.load_word(place_of(index, 0, 0), registers_, int64_t{v.slot} + offsetof(Affine, base),
                 v.bytes);
    splat_base(index);
    return;
  }
  if (v.kept == Kept::Word || v.kept == Kept::Steps) {
    t_.load_word(place_of(index, 0, 0), base, v.slot, v.bytes);
    splat_base(index);
    if (v.kept == Kept::Word && !v.written && value.is_read_as_vector) {
      value.splat = t_.new_vector();
      t_.load_splat(value.splat, base, v.slot, v.bytes);
    }
    return;
  }
  if (v.kept == Kept::Splat) {
    t_.load_splat(place_of(index, 0, 0), base, v.slot, v.bytes);
    return;
  }
  if (v.bytes < 4) return read_small(index);
  const uint32_t halves = halves_of(v.bytes);
  for (uint32_t s = 0; s < strips_; ++s) {
    for (uint32_t h = 0; h < halves; ++h)
      t_.load(place_of(index, s, h), base, int64_t{v.slot} + (s * halves + h) * vector_bytes());
  }
}

// In a phase without branches, an input is read where it is first needed.
void Emitter::need(uint32_t index) {
  const Variable& v = plan_.variables[index];
  if (values_[index].read || !v.home || !v.input) return;
  values_[index].read = true;
  if (values_[index].is_read) read_input(index), expect_number(index);
}

void Emitter::need_all(const Step& step) {
  for (const auto& from : {step.a, step.b, step.c}) {
    if (from) need(*from);
  }
  for (uint32_t from : step.reads) need(from);
  if (step.under) need(*step.under);
  if (step.d) values_[*step.d].read = true;  // from here on the frame has an old value
  for (uint32_t to : step.writes) values_[to].read = true;
}

bool Emitter::reads_as_vector(const Step& step, uint32_t index) const {
  if (step.meaning.does == Does::Load || step.meaning.does == Does::LoadScalar) return false;
  if (step.meaning.does == Does::Store) return step.b == index;
  if (step.meaning.does == Does::Atomic) return false;
  const bool reads = step.a == index || step.b == index || step.c == index;
  if (!reads || !step.d) return false;
  const Kept kept = plan_.variables[*step.d].kept;
  return kept == Kept::Vector || kept == Kept::Splat;
}

void Emitter::write_back(uint32_t index) {
  const Variable& v = plan_.variables[index];
  if (plan_.apart && !v.home && v.in != Slot::Scalar) return write_some(index);
  if (plan_.alone && v.in != Slot::Scalar) return write_alone(index);
  if (v.in == Slot::Scalar) {
    if (v.kept == Kept::Word) {
      t_.store_word(values_[index].word, registers_, v.slot, v.bytes);
    } else {
      Reg word = t_.word();
      t_.lane_word(word, bits_of(index, 0, 0), 0, lane_bytes(v.bytes));
      t_.store_word(word, registers_, v.slot, v.bytes);
    }
    return;
  }
  if (v.in == Slot::Predicate) {
    write_predicate(index);
    return;
  }
  const uint32_t halves = halves_of(v.bytes);
  const Reg base = v.bytes == 8 ? lanes8_ : lanes4_;
  Reg one;  // valid: the value of all strips
  if (v.kept == Kept::Word || v.kept == Kept::Splat) one = bits_of(index, 0, 0);
  if (v.bytes < 4) return write_small(index, one);
  const Reg kept = values_[index].splat;
  if (v.kept == Kept::Steps && t_.adds_steps() && !kept.isValid()) {
    const Reg splat = t_.vector();
    t_.splat(splat, word_of(index), v.bytes);
    values_[index].splat = splat;
  }
  for (uint32_t s = 0; s < strips_; ++s) {
    for (uint32_t h = 0; h < halves; ++h) {
      const Target::Mark mark = t_.mark();
      t_.store(one.isValid() ? one : bits_of(index, s, h), base,
               int64_t{v.slot} + (s * halves + h) * vector_bytes());
      t_.release(mark);
    }
  }
  values_[index].splat = kept;
}

// `read`: the predicate of the branch at which the code exits. If its slot has another variable
// for the values between blocks, that one is not written back.
void Emitter::leave_at(uint32_t target, bool backward, std::optional<uint32_t> read) {
  if (out_->goes_on && is_end(target)) {
    t_.jump(next_warp_);
    return;
  }
  List<uint32_t> variables;
  for (const auto& [slot, index] : plan_.home) {
    const Variable& v = plan_.variables[index];
    const bool is_later = read && plan_.variables[*read].slot == slot && index != *read;
    if (v.written && !is_later && !values_[index].in_frame && flow_.is_live(slot, target))
      variables.push_back(index);
  }
  leave_with(variables, {target, backward});
}

void Emitter::leave_with(const List<uint32_t>& variables, Exit exit) {
  for (uint32_t index : variables) {
    const Target::Mark mark = t_.mark();
    write_back(index);
    t_.release(mark);
  }
  exit.behind = exit.early || exit.disagrees ? exit.target : now_ ? now_->index + 1 : 0;
  out_->exits.push_back(exit);
  if (out_->weighs) t_.store_word(saved_, t_.pass(), offsetof(Pass, saved), 8);
  if (counts_turns_) {
    t_.store_word(budget_, t_.pass(), offsetof(Pass, budget), 8);
    t_.store_word(ran_, t_.pass(), offsetof(Pass, ran), 8);
  }
  t_.leave(static_cast<uint32_t>(out_->exits.size()));
}

void Emitter::jump_to(uint32_t from, uint32_t target) {
  const Phase& phase = plan_.phase;
  if (target <= from) {  // a backward branch counts for the turn
    t_.word_add(ran_, ran_, int64_t{from} - target + 1);
    t_.word_add(budget_, budget_, -1);
    if (plan_.alone && target == phase.first()) t_.word_add(saved_, saved_, 1);
    Label used_up = t_.label();
    if (target >= phase.begin) {
      t_.jump_if(budget_, true, labels_[target]);
    } else {
      t_.jump_if(budget_, false, used_up);
      leave_at(target, false);
    }
    t_.bind(used_up);
    leave_at(target, true);
    return;
  }
  if (target >= phase.begin && target < phase.end)
    t_.jump(labels_[target]);
  else
    leave_at(target, false);
}

void Emitter::branch(const Step& step) {
  if (plan_.apart) return branch_apart(step);
  const uint32_t target = flow_.index_of(step.op.target);
  if (step.meaning.does == Does::Branch) {
    jump_to(step.index, target);
    return;
  }
  if (plan_.masked && plan_.variables[*step.a].kept == Kept::Vector) {
    branch_masked(step);
    return;
  }
  Label around = t_.label();
  if (plan_.variables[*step.a].kept == Kept::Vector) {
    Reg any = t_.word(), differ = t_.word();
    t_.any_and_differ(any, differ, values_[*step.a].regs);
    Label agreed = t_.label();
    t_.jump_if(differ, false, agreed);
    write_predicate(*step.a);
    leave_at(step.index, false, step.a);
    out_->exits.back().disagrees = true;
    out_->exits.back().behind = step.index;
    t_.bind(agreed);
    t_.jump_if(any, step.meaning.does == Does::BranchUnless, around);
    jump_to(step.index, target);
    t_.bind(around);
    return;
  }
  t_.jump_if(word_of(*step.a), step.meaning.does == Does::BranchUnless, around);
  jump_to(step.index, target);
  t_.bind(around);
}

// Does control reach the step in another way than from the step before?
bool Emitter::begins_block(size_t index) const {
  if (index == 0) return true;
  const Step &before = plan_.steps[index - 1], &step = plan_.steps[index];
  return is_branch(before) || (before.index != step.index && labels_.count(step.index) != 0);
}

void Emitter::weigh_block(size_t first) {
  int64_t sum = 0;
  size_t i = first;
  do sum += saved_by(plan_, plan_.steps[i]);
  while (++i < plan_.steps.size() && !begins_block(i));
  t_.word_add(saved_, saved_, sum);
}

bool Emitter::write_steps() {
  for (size_t i = 0; i < plan_.steps.size();) {
    const Step& step = plan_.steps[i];
    end_merged(i);
    auto label = labels_.find(step.index);
    const bool is_first = i == 0 || plan_.steps[i - 1].index != step.index;
    if (label != labels_.end() && is_first) {
      plan_.apart&& ways_.count(step.index) ? arrive(step.index) : t_.bind(label->second);
      checked_.clear();
      scaled_.clear();
      found_.clear();
    }
    now_ = &step;
    if (plan_.apart && begins_block(i)) weigh_block(i);
    if (step.leaves) {
      t_.jump(bail());
      ++i;
      continue;
    }
    if (begins_merged(i)) begin_merged(i);
    const Target::Mark mark = t_.mark();
    const size_t first = i;
    if (step.d && common_.count(*step.d)) {
      ++i;
      continue;
    }
    if (step.meaning.does == Does::Store) {
      i = store_from(i);
      if (i == first) {
        if (!plan_.alone) return false;
        t_.jump(bail());
        ++i;
      }
    } else if (step.d && (values_[*step.d].indexed || values_[*step.d].is_skipped)) {
      need_all(step);
      ++i;
    } else {
      need_all(step);
      if (!one(step) && !(plan_.alone && call_alone(step))) {
        if (!plan_.alone) return false;
        t_.jump(bail());  // the interpreter has to run it
        // What comes next is not reached, but is written: its operands need registers.
        if (step.d) result(*step.d, 0, 0);
        for (uint32_t to : step.writes) result(to, 0, 0);
      }
      if (step.d) {
        if (step.writes.empty()) blend(step, *step.d);
        // A called handler has left its results in their place.
        for (uint32_t to : step.writes) {
          if (!is_called_warpwide(step)) blend(step, to);
        }
        if (!plan_.variables[*step.d].home) splat_base(*step.d);
        write_early(step);
      }
      ++i;
    }
    for (size_t done = first; done < i; ++done) give_back(done);
    std::erase_if(checked_, [&](const Checked& each) { return writes(step, each.variable); });
    t_.release(mark);
  }
  end_merged(plan_.steps.size());
  return true;
}

void Emitter::find_rises() {
  for (const Variable& v : plan_.variables) {
    if (v.kept != Kept::Steps || rises_.count({v.steps.step, v.bytes})) continue;
    Reg rises = t_.vector();
    t_.steps(rises, static_cast<uint64_t>(v.steps.step), v.bytes);
    rises_.emplace(std::pair{v.steps.step, v.bytes}, rises);
  }
}

std::unique_ptr<Emitted> Emitter::run() {
  t_.begin();
  // A single pass begins with the first lane.
  const bool has_all = out_->lanes == kWarpSize;
  registers_ = t_.word();
  lanes4_ = has_all ? registers_ : t_.word();
  lanes8_ = has_all ? registers_ : t_.word();
  table_ = t_.word();
  budget_ = t_.word();
  ran_ = t_.word();
  first_lane_ = t_.word();
  bail_ = t_.bare_label();
  refused_ = t_.bare_label();
  t_.load_word(registers_, t_.pass(), offsetof(Pass, registers), 8);
  if (!has_all) {
    t_.load_word(lanes4_, t_.pass(), offsetof(Pass, lanes4), 8);
    t_.load_word(lanes8_, t_.pass(), offsetof(Pass, lanes8), 8);
  }
  t_.load_word(first_lane_, t_.pass(), offsetof(Pass, first_lane), 4);
  t_.load_word(table_, t_.pass(), offsetof(Pass, table), 8);
  counts_turns_ = std::any_of(plan_.steps.begin(), plan_.steps.end(), [&](const Step& step) {
    return is_branch(step) && flow_.index_of(step.op.target) <= step.index;
  });
  if (counts_turns_) {
    t_.load_word(budget_, t_.pass(), offsetof(Pass, budget), 8);
    t_.constant_word(ran_, 0);
  }
  out_->weighs = plan_.apart || plan_.alone;
  if (out_->weighs) {
    saved_ = t_.word();
    t_.constant_word(saved_, 0);
  }
  if (plan_.calls) {
    warp_ = t_.word();
    t_.load_word(warp_, t_.pass(), offsetof(Pass, warp), 8);
  }
  nan_ = t_.vector();
  t_.constant(nan_, 0x7fffffffu, 4);
  if (!prepare_places() || out_->prepared.size() > kMostWords) return nullptr;
  find_labels();
  if (!find_places()) return nullptr;
  find_read();
  find_groups();
  find_indexed();
  begin_masks();
  find_rises();
  find_pointers();
  find_asked();
  if (plan_.phase.branches || out_->goes_on || plan_.apart) {
    for (uint32_t i = 0; i < plan_.variables.size(); ++i) {
      need(i);
      // A block may be emitted before the block that computes its inputs.
      if (plan_.variables[i].home) place_of(i, 0, 0);
    }
  }
  if (out_->goes_on && !write_common()) return nullptr;
  find_last_reads();
  find_early();
  checked_.clear();
  scaled_.clear();
  found_.clear();
  if (out_->goes_on) t_.bind(first_step_);
  if (plan_.phase.first() != plan_.phase.begin) t_.jump(labels_.at(plan_.phase.first()));
  if (!write_steps()) return nullptr;
  out_->goes_on ? write_next_warp()
  : plan_.apart ? finish_apart()
                : leave_at(plan_.phase.end, false);
  write_stubs();
  t_.bind(bail_);
  t_.leave(0);
  if (out_->checks_itself) {
    t_.bind(refused_);
    t_.leave(kRefused);
  }
  list_guards();
  if (!t_.finish(&out_->bytes)) return nullptr;
  return std::move(out_);
}

std::unique_ptr<Emitted> emit(const Flow& flow, const Plan& plan, const CacheIndex& cache_index,
                              uint32_t most_lanes) {
  std::unique_ptr<Target> target =
      make_target(plan.alone ? least_row_lanes() : std::min(plan.row_lanes, most_lanes));
  // A strip would span several rows.
  if (!target || plan.row_lanes < target->vector_lanes()) return nullptr;
  return Emitter(flow, plan, *target, cache_index).run();
}

}  // namespace kiln::engine
