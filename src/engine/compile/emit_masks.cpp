// SPDX-License-Identifier: Apache-2.0
// How does a loop run whose lanes leave it one after the other? A mask has the lanes that still
// run. The others compute along, but what they would write is not taken over, and what they would
// load is replaced: lanes are so independent that nobody can tell. The loop ends when no lane runs.
#include <cstddef>

#include "engine/compile/emitter.h"

namespace kiln::engine {

void Emitter::begin_masks() {
  if (!plan_.masked) return;
  Reg all = t_.word(), own = t_.word();
  t_.load_word(all, t_.pass(), offsetof(Pass, mask), 4);
  t_.word_binary(Does::ShiftRight, Number::U32, own, all, first_lane_);
  for (uint32_t s = 0; s < strips_; ++s) {
    active_.push_back(t_.vector());
    t_.bits_to_mask(active_.back(), own, s * t_.vector_lanes());
  }
}

// The mask of lanes that have so many bytes.
Reg Emitter::active(uint32_t strip, uint32_t half, uint32_t bytes) {
  if (bytes == 4) return active_[strip];
  Reg wide = t_.vector();
  t_.widen(true, half == 1, wide, active_[strip]);
  return wide;
}

void Emitter::blend(uint32_t index) {
  const Variable& v = plan_.variables[index];
  if (!v.blended) return;
  const uint32_t halves = halves_of(v.bytes);
  for (uint32_t s = 0; s < strips_; ++s) {
    for (uint32_t h = 0; h < halves; ++h)
      t_.blend(place_of(index, s, h), result(index, s, h), active(s, h, v.bytes));
  }
}

// The branch back at the end of the loop. A pass that takes very many rounds starts again in the
// interpreter, which gives others their turn.
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

// Where some branch leads to: one that became a mask leads nowhere.
void Emitter::find_labels() {
  labels_.emplace(plan_.phase.begin, t_.label());
  for (const Step& step : plan_.steps) {
    if (!is_branch(step)) continue;
    const uint32_t target = flow_.index_of(step.op.target);
    if (target >= plan_.phase.begin && target < plan_.phase.end && !labels_.count(target))
      labels_.emplace(target, t_.label());
  }
}

}  // namespace kiln::engine
