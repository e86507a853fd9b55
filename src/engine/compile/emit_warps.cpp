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
int64_t Emitter::warp_rise(const Pattern2& steps) const {
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

void Emitter::write_next_warp() {
  Label last = t_.label();
  t_.bind(next_warp_);
  t_.jump_if(left_, false, last);
  t_.word_add(left_, left_, -1);
  for (size_t i = 0; i < pointers_.size(); ++i) {
    const Prepared& at = out_->prepared[i];
    if (at.of == Place::Of::Header) t_.word_add(pointers_[i], pointers_[i], warp_rise(at.steps));
  }
  for (uint32_t i = 0; i < plan_.variables.size(); ++i) {
    const Variable& v = plan_.variables[i];
    if (!v.home || !v.input || v.in != Slot::Header || !values_[i].word.isValid()) continue;
    t_.word_add(values_[i].word, values_[i].word, warp_rise(v.steps));
    if (v.bytes == 4) t_.word_extend(false, values_[i].word, values_[i].word);
  }
  t_.jump(first_step_);
  t_.bind(last);
  leave_with({}, {plan_.phase.end, false});
}

}  // namespace kiln::engine
