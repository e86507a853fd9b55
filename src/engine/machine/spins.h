// SPDX-License-Identifier: Apache-2.0
// When does a warp only wait, though it runs? For what another thread, or the host, has to write.
#pragma once

#include "engine/machine/warp.h"

namespace kiln::engine {

// Op::y of a backward branch: its loop waits for somebody, and does nothing else.
constexpr uint8_t kSpins = 1, kOnlyWaits = 2;
// A loop around a wait that is longer does some other work.
constexpr uint64_t kPollSteps = 64;

// As Warp::yield, of a thread that only wants to give others time: where it has just looked at
// something that had not changed, or somebody watches, that is not progress.
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

// Does a thread of the block spin on a value in memory? (Look::Grid, of a grid that has no barrier
// of its own: kept only where somebody watches.)
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
