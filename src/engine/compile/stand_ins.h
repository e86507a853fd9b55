// SPDX-License-Identifier: Apache-2.0
// How does code for all lanes run where some lanes are elsewhere? Each of those stands in for the
// nearest lane before it that is here, with its values: it goes the same way and loads the same.
// Its own registers are put back behind. For loops without stores alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/compile/plan.h"

namespace kiln::engine {

// What code may read or write of the frame.
struct StandInSlot {
  uint32_t slot = 0;
  uint32_t bytes = 4;  // of a lane
  bool predicate = false;
  bool input = false;
};
// Empty: the plan is none that others could stand in for.
std::vector<StandInSlot> stand_in_slots(const Plan& plan);

class StandIns {
 public:
  StandIns(Warp& warp, const std::vector<StandInSlot>& slots);
  StandIns(const StandIns&) = delete;
  StandIns& operator=(const StandIns&) = delete;
  ~StandIns();

  static constexpr size_t kMostBytes = 16 << 10;

 private:
  template <class T>
  void stand_in(const StandInSlot& slot);

  Warp& warp_;
  const std::vector<StandInSlot>& slots_;
  uint8_t nearest_[kWarpSize];
  alignas(64) std::byte saved_[kMostBytes];
};

// Lanes of a warp that go on at an Op.
struct LaneGroup {
  const Op* at = nullptr;
  uint32_t lanes = 0;
};
// Machine code has left the lanes of the warp at several places, those of `here` last; `turn_ends`:
// with the end of their turn. Returns what its handler does.
const Op* go_apart(Warp& warp, std::span<const LaneGroup> groups, const LaneGroup& here,
                   bool turn_ends);

}  // namespace kiln::engine
