// SPDX-License-Identifier: Apache-2.0
// In which order do steps become instructions? Step by step, each for all strips, whose operations
// wait for each other less than those of one strip do. Where all lanes are in one pass, more values
// may be needed at once than there are registers. Steps that touch no memory that others see are
// done for a few strips first then, and for the next ones after those: a *run* of steps. What is
// computed in it for what comes next in it stays in registers.
#include <algorithm>
#include <bit>

#include "engine/compile/emitter.h"

namespace kiln::engine {
namespace {

// Of steps; shorter ones are not worth it.
constexpr size_t kShortestRun = 4;
// Registers for what an operation needs besides.
constexpr uint32_t kSpareVectors = 4;

}  // namespace

// Somebody may come to it by another way than from the step before.
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

bool Emitter::is_left_out(const Step& step) const {
  return step.d && (common_.count(*step.d) != 0 || values_[*step.d].indexed.has_value() ||
                    values_[*step.d].is_skipped);
}

// Is it one that nobody else sees, and that is done strip by strip, or once? It may leave only to
// start all again: in between, some strips are further than others.
bool Emitter::may_be_in_run(const Step& step) const {
  if (is_left_out(step)) return true;
  const Does does = step.meaning.does;
  if (!step.d || !step.writes.empty() || does == Does::Store || does == Does::Atomic ||
      does == Does::Lanewise || does == Does::Warpwide || does == Does::Rounded || is_branch(step))
    return false;
  const Variable& d = plan_.variables[*step.d];
  if (d.kept != Kept::Vector && (d.home || does == Does::Load)) return false;
  if (does == Does::Load) {
    const auto prepared = prepared_of_.find(step.index);
    if (prepared == prepared_of_.end() || is_small_load(step)) return false;
    const Prepared& at = out_->prepared[prepared->second];
    return !at.optional && !(out_->checks_itself && for_some_[prepared->second]) &&
           elements_from(step, at.steps) == 0;
  }
  if (starts_again()) return true;
  const auto has_steps = [&](const std::optional<uint32_t>& from) {
    return from && plan_.variables[*from].kept == Kept::Steps;
  };
  return !is_wide_arithmetic(step.meaning) && does != Does::Small && d.kept != Kept::Steps &&
         !has_steps(step.a) && !has_steps(step.b) && !has_steps(step.c);
}

// Behind the last step of a run; the first one: it is none.
size_t Emitter::end_of_run(size_t first) const {
  const size_t least = merged_.empty() ? plan_.steps.size() : merged_.back().step;
  size_t i = first;
  while (i < std::min(least, plan_.steps.size()) && may_be_in_run(plan_.steps[i]) &&
         (i == first || !(begins_block(i) || begins_merged(i))))
    ++i;
  return i;
}

// The most vectors of a strip that are needed at once in a run, but for what is not read there.
uint32_t Emitter::kept_in_run(size_t first, size_t end) const {
  struct Used {
    uint32_t variable;
    size_t first, last;
  };
  List<Used> all;
  ListedMap<uint32_t, size_t> index;
  for (size_t i = first; i < end; ++i) {
    const Step& step = plan_.steps[i];
    if (is_left_out(step)) continue;
    for (const auto& at : {step.a, step.b, step.c, step.under, step.d}) {
      if (!at || plan_.variables[*at].kept != Kept::Vector) continue;
      const auto [found, is_new] = index.emplace(*at, all.size());
      if (is_new) all.push_back({*at, at == step.d ? i : first, i});
      all[found->second].last = i;
    }
  }
  List<int> change(end - first + 2, 0);
  for (const Used& each : all) {
    const auto count = static_cast<int>(halves_of(plan_.variables[each.variable].bytes));
    change[each.first - first] += count;
    change[each.last - first + 1] -= count;
  }
  int now = 0, most = 0;
  for (int each : change) most = std::max(most, now += each);
  return static_cast<uint32_t>(most);
}

// So many strips of it at once.
uint32_t Emitter::strips_of_run(size_t first, size_t end) const {
  if (end - first < kShortestRun) return strips_;
  const uint32_t kept = kept_in_run(first, end), all = t_.vector_count() - kSpareVectors;
  return kept == 0 ? strips_ : std::min(strips_, std::bit_floor(std::max(all / kept, 1u)));
}

bool Emitter::write_run(size_t first, size_t end, uint32_t strips) {
  for (size_t i = first; i < end; ++i) {
    if (!common_.count(*plan_.steps[i].d)) need_all(plan_.steps[i]);
  }
  for (first_strip_ = 0; first_strip_ < strips_; first_strip_ += strips) {
    last_strip_ = first_strip_ + strips;
    for (size_t i = first; i < end; ++i) {
      const Step& step = plan_.steps[i];
      const bool is_once = plan_.variables[*step.d].kept != Kept::Vector;
      if (is_left_out(step) || (is_once && first_strip_ != 0)) continue;
      now_ = &step;
      const Target::Mark mark = t_.mark();
      if (!one(step)) return false;
      blend(step, *step.d);
      if (!plan_.variables[*step.d].home && is_once) splat_base(*step.d);
      write_early(step);
      t_.release(mark);
    }
  }
  first_strip_ = 0, last_strip_ = strips_;
  for (size_t i = first; i < end; ++i) {
    give_back(i);
    std::erase_if(checked_,
                  [&](const Checked& each) { return writes(plan_.steps[i], each.variable); });
  }
  return true;
}

// Returns the step behind those that were written; the same one: it cannot be.
size_t Emitter::write_step(size_t first) {
  const Step& step = plan_.steps[first];
  const Target::Mark mark = t_.mark();
  size_t next = first + 1;
  if (step.meaning.does == Does::Store) {
    next = store_from(first);
    if (next == first) return first;
  } else {
    need_all(step);
    if (!is_left_out(step)) {
      if (!one(step)) return first;
      if (step.d) {
        if (step.writes.empty()) blend(step, *step.d);
        // A handler that was called has left them where they belong.
        for (uint32_t to : step.writes) {
          if (!is_called_warpwide(step)) blend(step, to);
        }
        if (!plan_.variables[*step.d].home) splat_base(*step.d);
        write_early(step);
      }
    }
  }
  for (size_t done = first; done < next; ++done) give_back(done);
  std::erase_if(checked_, [&](const Checked& each) { return writes(step, each.variable); });
  t_.release(mark);
  return next;
}

bool Emitter::write_steps() {
  size_t looked_at = 0;  // steps before this one
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
    if (out_->weighs && begins_block(i)) weigh_block(i);
    if (begins_merged(i)) begin_merged(i);
    if (step.d && common_.count(*step.d)) {
      ++i;
      continue;
    }
    if (i >= looked_at) {
      const size_t end = end_of_run(i);
      const uint32_t strips = strips_of_run(i, end);
      looked_at = std::max(i + 1, end);
      if (strips < strips_) {
        if (!write_run(i, end, strips)) return false;
        i = end;
        continue;
      }
    }
    const size_t next = write_step(i);
    if (next == i) return false;
    i = next;
  }
  end_merged(plan_.steps.size());
  return true;
}

}  // namespace kiln::engine
