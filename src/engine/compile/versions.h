// SPDX-License-Identifier: Apache-2.0
// Which code of a phase does a warp try first, when is other code made, and has it paid? The costs
// of an entry and the savings of each Op are estimated when the code is made (cost.cpp), but which
// Ops run is known only at run time. Code that loses rests.
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
  stretch.favoured.store(stretch.versions, std::memory_order_release);
  return stretch.versions[0];
}

// The first version has failed for this warp. If it does for the whole launch, though it held in
// earlier ones, other code like it is looked for, or made.
const Op* run_later(Stretch& stretch, Warp& warp, bool* done);

// The favoured version is one for later launches, and has failed for this warp.
const Op* run_second(Stretch& stretch, Warp& warp, bool* done);

// Values that have a pattern in the first warp by chance, such as zeros, do not have it in most
// others. The version of those comes first from then on, once no other like the first can be made.
void note_success(Stretch& stretch, Compiled& by);

// The favoured version missed. If it misses more often than not, because later launches have other
// values, all versions are tried again, from the first.
void note_disfavour(Stretch& stretch, const Compiled& favoured);

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
// Most entries have missed. It rests, too: another launch may have what it assumes.
void note_failure(Stretch& stretch, Compiled& compiled);
// For resting code: skips this entry, and makes the code ready again after enough of them.
void rest(Compiled& compiled);

// When is f32 computed in f64? When the CPU has often met subnormal values in a stretch, and if it
// is faster (Subnormals in stretches.h; subnormals.cpp). Called after some of the entries, and at
// the end of a turn.
[[gnu::cold, gnu::noinline]] void look_for_subnormals(Stretch& entered, const Warp& warp) noexcept;

// Times one entry.
class TimedEntry {
 public:
  TimedEntry(Stretch& entered, const Warp& warp);
  ~TimedEntry();
  TimedEntry(const TimedEntry&) = delete;
  TimedEntry& operator=(const TimedEntry&) = delete;

 private:
  Stretch& stretch_;
  const Warp& warp_;
  uint64_t begin_, steps_;
};

}  // namespace kiln::engine
