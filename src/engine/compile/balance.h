// SPDX-License-Identifier: Apache-2.0
// Has machine code paid? What an entry costs and what each Op saves is estimated when the code is
// made (cost.cpp); which Ops run is known only now. Code that loses rests.
#pragma once

#include "engine/compile/stretches.h"

namespace kiln::engine {

// One entry of sixteen stands for all; which ones is drawn, for warps of a block come in turn.
inline bool is_drawn(uint32_t count) { return count * 0x9e3779b1u >> 28 == 0; }

// What was saved by an entry that left by this exit.
inline int64_t saved_at(const Compiled& compiled, uint32_t exit, uint64_t ran) {
  if (exit == 0) return 0;
  return compiled.ways[exit - 1].saved + static_cast<int64_t>(ran) * compiled.worth.looped;
}

// Of an entry that was drawn, the `count`th.
void weigh(Stretch& stretch, Compiled& compiled, int64_t saved, uint32_t count, const Warp& warp);
// What has been weighed since the last look: sooner than usual.
void look_at_balance(Stretch& stretch, Compiled& compiled, uint32_t count, const Warp& warp);
// Of code that rests: an entry is left out, and after so many it is tried again.
void rest(Compiled& compiled);

}  // namespace kiln::engine
