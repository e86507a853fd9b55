// SPDX-License-Identifier: Apache-2.0
// When is f32 computed in f64? When the CPU has often met subnormal values in a stretch, and if it
// is faster (Subnormals in stretches.h).
#pragma once

#include "engine/compile/stretches.h"

namespace kiln::engine {

// Called after some of the entries, and at the end of a turn.
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
