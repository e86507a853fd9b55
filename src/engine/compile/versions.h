// SPDX-License-Identifier: Apache-2.0
// Which version of a phase's code does a warp try first, and when is another one made?
#pragma once

#include "engine/compile/stretches.h"
#include "engine/machine/warp.h"

namespace kiln::engine {

// More misses of a version than this do not happen by chance.
constexpr uint32_t kMissesAllowed = 16;

inline bool is_off(const Compiled& compiled) {
  return compiled.state.load(std::memory_order_acquire) == Compiled::State::Off;
}

// Compiles the code if nobody has. Null: the interpreter or other code has to continue.
const Op* try_code(Stretch& stretch, Compiled& compiled, Warp& warp, bool* done);

void begin_launch(Stretch& stretch, uint64_t epoch);

// In each launch the first version is tried again.
[[gnu::always_inline]] inline Compiled& first_of(Stretch& stretch, const Warp& warp) {
  Compiled& first = stretch.first();
  const uint64_t epoch = warp.block->grid->epoch;
  if (stretch.is_like_first(first) || stretch.launch.epoch.load(std::memory_order_relaxed) == epoch)
    return first;
  begin_launch(stretch, epoch);
  stretch.favoured.store(stretch.versions, std::memory_order_relaxed);
  return stretch.versions[0];
}

// The first version has failed for this warp. If it does for the whole launch, though it held in
// earlier ones, other code like it is looked for, or made.
const Op* run_later(Stretch& stretch, Warp& warp, bool* done);

// Values that have a pattern in the first warp by chance, such as zeros, do not have it in most
// others. The version of those comes first from then on, once no other like the first can be made.
void note_success(Stretch& stretch, Compiled& by);

// The favoured version missed. If it misses more often than not, because later launches have other
// values, all versions are tried again, from the first.
void note_disfavour(Stretch& stretch, const Compiled& favoured);

}  // namespace kiln::engine
