// SPDX-License-Identifier: Apache-2.0
// How does code for one warp go on as the next ones of its block? Where a phase is all that a warp
// runs, and begins with scalars and with values of base and step alone, the next warp's values are
// these with another base: one addition for each, where leaving the code and entering it again
// would cost more than a short kernel computes. The memory of all these warps is checked at once.
#include <algorithm>
#include <cstddef>

#include "engine/compile/emitter.h"

namespace kiln::engine {

bool Emitter::is_end(uint32_t op) const { return flow_.is_end(op); }

// What values of base and step rise by from one warp to the next, as advance.h has it.
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

// Is it a comparison that all warps share, where their least and their most lanes agree, or made of
// such ones?
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

// At the border of an image a branch is decided by such comparisons: once for a block, so that its
// warps compute and do no more.
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

// And not only by what all warps share.
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

}  // namespace kiln::engine
