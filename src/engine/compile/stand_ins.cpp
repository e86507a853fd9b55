// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/stand_ins.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/machine/lane_masks.h"

namespace kiln::engine {
namespace {

// A predicate takes eight bytes, so that the next slot stays aligned.
size_t bytes_of_slot(const StandInSlot& slot) {
  return slot.predicate ? sizeof(uint64_t) : size_t{slot.bytes} * kWarpSize;
}

}  // namespace

std::vector<StandInSlot> stand_in_slots(const Plan& plan) {
  const bool has_others = std::any_of(plan.steps.begin(), plan.steps.end(), [](const Step& step) {
    return changes_memory(step) || step.meaning.does == Does::Warpwide;
  });
  if (plan.masked || plan.phase.stores || has_others || has_small(plan)) return {};
  std::map<uint32_t, StandInSlot> by_slot;
  for (const Variable& v : plan.variables) {
    if (v.in != Slot::Lanes && v.in != Slot::Predicate) continue;
    StandInSlot& slot = by_slot[v.slot];
    slot.slot = v.slot;
    slot.bytes = std::max(slot.bytes, v.bytes);
    slot.predicate = v.in == Slot::Predicate;
    slot.input |= v.home && v.input;
  }
  std::vector<StandInSlot> out;
  size_t bytes = 0;
  for (const auto& [at, slot] : by_slot) {
    out.push_back(slot);
    bytes += bytes_of_slot(slot);
  }
  if (bytes > StandIns::kMostBytes) out.clear();
  return out;
}

template <class T>
void StandIns::stand_in(const StandInSlot& slot) {
  T* lanes = warp_.lanes<T>(slot.slot);
  T all[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i) all[i] = lanes[nearest_[i]];
  std::memcpy(lanes, all, sizeof all);
}

StandIns::StandIns(Warp& warp, const std::vector<StandInSlot>& slots) : warp_(warp), slots_(slots) {
  auto last = static_cast<uint8_t>(std::countr_zero(warp.mask));
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    if (warp.mask >> i & 1) last = static_cast<uint8_t>(i);
    nearest_[i] = last;
  }
  std::byte* to = saved_;
  for (const StandInSlot& slot : slots) {
    std::memcpy(to, warp.registers + slot.slot,
                slot.predicate ? sizeof(uint32_t) : bytes_of_slot(slot));
    to += bytes_of_slot(slot);
    if (!slot.input) continue;
    if (slot.predicate) {
      const uint32_t bits = warp.predicate(slot.slot);
      uint32_t all = 0;
      for (uint32_t i = 0; i < kWarpSize; ++i) all |= (bits >> nearest_[i] & 1) << i;
      warp.predicate(slot.slot) = all;
    } else if (slot.bytes == 8) {
      stand_in<uint64_t>(slot);
    } else {
      stand_in<uint32_t>(slot);
    }
  }
}

StandIns::~StandIns() {
  const std::byte* from = saved_;
  for (const StandInSlot& slot : slots_) {
    if (slot.predicate) {
      uint32_t before;
      std::memcpy(&before, from, sizeof before);
      uint32_t& now = warp_.predicate(slot.slot);
      now = (now & warp_.mask) | (before & ~warp_.mask);
    } else if (slot.bytes == 8) {
      auto* lanes = warp_.lanes<uint64_t>(slot.slot);
      select_lanes(lanes, lanes, reinterpret_cast<const uint64_t*>(from), warp_.mask);
    } else {
      auto* lanes = warp_.lanes<uint32_t>(slot.slot);
      select_lanes(lanes, lanes, reinterpret_cast<const uint32_t*>(from), warp_.mask);
    }
    from += bytes_of_slot(slot);
  }
}

// Like Warp::diverge(), for more than two groups.
const Op* go_apart(Warp& warp, std::span<const LaneGroup> groups, const LaneGroup& here,
                   bool turn_ends) {
  for (const LaneGroup& group : groups) {
    if (group.lanes == warp.mask) return group.at;
  }
  if (here.lanes == warp.mask) return turn_ends ? warp.yield(here.at) : here.at;
  uint32_t count = 0;
  const auto add = [&](const LaneGroup& group) {
    if (group.lanes == 0) return;
    if (count++) ++warp.frame->users;
    warp.splits.push_back(
        {group.at, group.lanes, warp.frame, Wait::None, 0, 0, warp.current_penalty, false});
  };
  for (const LaneGroup& group : groups) add(group);
  if (!turn_ends || here.lanes == 0) {
    add(here);
    return nullptr;
  }
  ++warp.frame->users;
  warp.mask = here.lanes;
  return warp.yield(here.at);
}

}  // namespace kiln::engine
