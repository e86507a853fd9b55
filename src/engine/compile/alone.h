// SPDX-License-Identifier: Apache-2.0
// Is a loop faster if the lanes of a warp run it one after the other?
//
//  In some loops lanes diverge again and again, for example in a search in which each lane has its
// own tree. Few lanes of a warp then run at the same time, and vectors are mostly empty. There each
// lane runs the whole loop by itself, in code for one lane. Both ways are timed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "engine/machine/warp.h"

namespace kiln::engine {

struct Stretch;

struct Alone {
  enum class Mode : uint8_t { Waits, TimesTogether, TimesAlone, Runs, Off };
  explicit Alone(std::unique_ptr<Stretch> of);
  ~Alone();

  std::unique_ptr<Stretch> loop;  // its first version is the code
  std::atomic<Mode> mode{Mode::Waits};
  std::atomic<uint32_t> count{0};    // partial warps that arrived, or entries since the last timing
  std::atomic<uint32_t> wanted{64};  // value of `count` at which both ways are timed
  std::atomic<const Worker*> by{nullptr};  // the only thread that times
  // Unit of the timing: iterations of lanes, or new warps if one piece of code runs all iterations.
  bool by_warps = false;
  // Owned by the timing thread: the current window, and the least time per unit so far.
  uint64_t began = 0, rounds = 0, newest = 0;
  uint32_t arrivals = 0, windows = 0;
  uint32_t found = 0;  // how many times in a row the result was the same
  bool was_faster = false;
  double least[2] = {};  // all lanes together, one lane at a time
};

// Does an arriving warp have to call run_alone()? Whole warps count only after lanes have diverged.
inline bool asks(const Alone& alone, const Warp& warp) {
  const Alone::Mode mode = alone.mode.load(std::memory_order_relaxed);
  if (mode != Alone::Mode::Waits) return mode != Alone::Mode::Off;
  return warp.mask != kFullMask || warp.block->grid->settings.lanes_alone;
}

// A warp has arrived at the first Op of the loop. Returns null without setting `done` if the caller
// has to continue as if there were no such code.
const Op* run_alone(Stretch& stretch, Warp& warp, bool* done);

}  // namespace kiln::engine
