// SPDX-License-Identifier: Apache-2.0
// When does a running warp only wait? When it polls for a write of another thread or of the host.
#pragma once

#include "engine/machine/warp.h"

namespace kiln::engine {

// Op::y of a backward branch: kSpins: its loop waits for a write; kOnlyWaits: and does nothing
// else.
constexpr uint8_t kSpins = 1, kOnlyWaits = 2;
// A longer loop around a wait does other work too.
constexpr uint64_t kPollSteps = 64;

// Like Warp::yield, for a thread that only wants to give others time. If it has just looked at
// something that had not changed, or if the run is watched, this is not progress.
inline const Op* sleep(Warp& warp, const Op* next) {
  const bool watched = warp.block->grid->sink != nullptr;
  const bool looks = warp.steps - warp.looked_at <= kPollSteps * (warp.splits.size() + 1);
  const bool moved_before = warp.moved;
  const Op* end = warp.yield(next);
  if (warp.event == Event::Fault || !(looks || watched)) return end;
  warp.moved = moved_before;
  warp.splits.back().looks = looks && warp.looked_at ? Look::Mbarrier : Look::Grid;
  return end;
}

// Does a thread of the block spin on a value in memory? (Look::Grid in a grid that has no barrier
// of its own, which is recorded only in watched runs.)
inline bool spins_on_memory(const Block& block) {
  if (block.grid->cooperative) return false;
  for (uint32_t i = 0; i < block.started; ++i) {
    for (const Split& split : block.warps[i]->splits) {
      if (split.looks == Look::Grid) return true;
    }
  }
  return false;
}

}  // namespace kiln::engine
