// SPDX-License-Identifier: Apache-2.0
// How does code for all lanes run while some lanes are elsewhere? Each of those stands in for the
// nearest active lane before it, with its values: it goes the same way and loads the same. Its own
// registers are restored afterwards. Only for loops without stores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/compile/plan.h"

namespace kiln::engine {

// Slots of the frame that the code may read or write.
struct StandInSlot {
  uint32_t slot = 0;
  uint32_t bytes = 4;  // per lane
  bool predicate = false;
  bool input = false;
};
// Empty if lanes cannot stand in for others with this plan.
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

// Lanes of a warp that continue at an Op.
struct LaneGroup {
  const Op* at;
  uint32_t lanes;
};
// Machine code has left the lanes of the warp at several places, those of `here` last; with
// `turn_ends`, their turn is over. Returns what a handler returns.
const Op* go_apart(Warp& warp, std::span<const LaneGroup> groups, const LaneGroup& here,
                   bool turn_ends);

}  // namespace kiln::engine
