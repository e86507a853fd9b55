// SPDX-License-Identifier: Apache-2.0
// Has machine code paid? The costs of an entry and the savings of each Op are estimated when the
// code is made (cost.cpp), but which Ops run is known only at run time. Code that loses rests.
#pragma once

#include "engine/compile/stretches.h"

namespace kiln::engine {

// One entry in sixteen represents all. They are selected by a hash, because the warps of a block
// arrive in turn.
inline bool is_drawn(uint32_t count) { return count * 0x9e3779b1u >> 28 == 0; }

// What an entry that took this exit has saved.
inline int64_t saved_at(const Compiled& compiled, uint32_t exit, uint64_t ran) {
  if (exit == 0) return 0;
  return compiled.ways[exit - 1].saved + static_cast<int64_t>(ran) * compiled.worth.looped;
}

// Weighs a selected entry, the `count`th.
void weigh(Stretch& stretch, Compiled& compiled, int64_t saved, uint32_t count, const Warp& warp);
// Evaluates what was weighed since the last evaluation, earlier than usual.
void look_at_balance(Stretch& stretch, Compiled& compiled, uint32_t count, const Warp& warp);
// For resting code: skips this entry, and makes the code ready again after enough of them.
void rest(Compiled& compiled);

}  // namespace kiln::engine
