// SPDX-License-Identifier: Apache-2.0
// How do fences, strong accesses and mbarriers order accesses? Through what is written and read: a
// strong write passes on what its thread knew at its last fence, and who reads it learns that at
// the next fence. A release or an acquire is both in one.
#include <algorithm>
#include <bit>

#include "watch/race/order.h"

namespace kiln::watch::race {

using namespace engine;

namespace {

bool acquires(Strength strength) {
  return strength == Strength::Acquire || strength == Strength::AcquireRelease ||
         strength == Strength::Sequential;
}
bool releases(Strength strength) {
  return strength == Strength::Release || strength == Strength::AcquireRelease ||
         strength == Strength::Sequential;
}

uint32_t level_of(Scope scope) {
  return scope == Scope::Block ? kBlockLevel : scope == Scope::Cluster ? kClusterLevel : kGpuLevel;
}

constexpr uint32_t kSeveral = ~0u;

}  // namespace

void Order::on(const FenceEvent& event) {
  if (event.order == Strength::Weak) return;  // of a proxy alone
  BlockOrder& b = block(event.by.block);
  WarpOrder& warp = b.warps[event.by.warp];
  LaneOrder& lanes = warp.own_lanes();
  const Time time = ++now_;
  const uint32_t level = level_of(event.scope);
  for (uint32_t rest = event.by.mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    if (event.order != Strength::Acquire) {
      for (uint32_t each = 0; each <= level; ++each) {
        lanes.fence[each][lane] = time;
        lanes.barrier_at_fence[each][lane] = b.barrier;
      }
    }
    if (event.order == Strength::Release) continue;
    learn(b, warp, 1u << lane, joiner_.join(b.pending_own, lanes.pending_own[lane]));
    lanes.pending_own[lane] = nullptr;
    if (level == kBlockLevel) continue;
    learn(b, warp, 1u << lane, joiner_.join(b.pending_all, lanes.pending_all[lane]));
    lanes.pending_all[lane] = nullptr;
  }
  warp.epoch = time;
}

void Order::acquire(BlockOrder& block, WarpOrder& warp, uint32_t lane, uint64_t location,
                    Scope scope, bool at_once) {
  const auto found = locations_.find(location);
  if (found == locations_.end()) return;
  const uint32_t level = level_of(scope);
  for (uint32_t i = kBlockLevel; i <= kGpuLevel; ++i) {
    const SyncLocation::Level& from = found->second.levels[i];
    if (!from.clock) continue;
    // Each must be in the scope of the other.
    const bool reaches_me =
        i == kGpuLevel || from.domain == (i == kBlockLevel ? block.uid : block.cluster);
    const bool own = from.from_block == block.uid;
    const bool in_scope =
        level == kGpuLevel || own || (level == kClusterLevel && from.from_cluster == block.cluster);
    if (!reaches_me || !in_scope) continue;
    if (at_once) {
      learn(block, warp, 1u << lane, from.clock);
      continue;
    }
    LaneOrder& lanes = warp.own_lanes();
    ClockPtr& pending = own ? lanes.pending_own[lane] : lanes.pending_all[lane];
    pending = joiner_.join(pending, from.clock);
  }
}

// Programs rely on `__threadfence(); __syncthreads(); if (first) atomicAdd()`, which is more than
// the model says: the fences of the others count as that of the one who writes. But if only it has
// one, then it passes on what it knew at that time.
void Order::add_fenced(ClockBuilder& to, const BlockOrder& block, uint32_t index, uint32_t lane,
                       uint32_t level) const {
  const auto fence_of = [&](uint32_t thread) {
    const WarpOrder& warp = block.warps[thread / kLanes];
    return warp.lanes ? warp.lanes->fence[level][thread % kLanes] : 0;
  };
  uint32_t fenced = 0;
  for (uint32_t thread = 0; thread < threads_; ++thread) fenced += fence_of(thread) != 0;
  if (fenced == threads_) {
    to.add(block_subject(block.uid), block.barrier);
    return;
  }
  to.add(block_subject(block.uid), block.warps[index].lanes->barrier_at_fence[level][lane]);
  for (uint32_t thread = 0; thread < threads_; ++thread) {
    to.add(thread_subject(block.uid, thread / kLanes, thread % kLanes),
           std::min(fence_of(thread), block.barrier));
  }
}

void Order::release(BlockOrder& block, uint32_t index, uint32_t lane, uint64_t location,
                    Scope scope, bool at_once, bool keeps) {
  WarpOrder& warp = block.warps[index];
  const uint32_t level = level_of(scope);
  const auto found = locations_.find(location);
  if (!keeps && found != locations_.end()) locations_.erase(found);
  const Time time = ++now_;
  Time passed = 0;
  for (uint32_t i = level + 1; i-- > 0;) {
    const Time fence = at_once      ? (i == level ? time : 0)
                       : warp.lanes ? warp.lanes->fence[i][lane]
                                    : 0;
    if (fence <= passed) continue;  // a wider one has the same
    passed = fence;
    ClockBuilder view;
    view.add(warp_subject(block.uid, index), warp.sync);
    view.add(block.clock);
    view.add(warp.clock);
    if (fence >= block.barrier)
      view.add(block_subject(block.uid), block.barrier);
    else
      add_fenced(view, block, index, lane, i);
    view.add(thread_subject(block.uid, index, lane), fence);
    view.add(location_subject(location), time);
    if (warp.lanes) {
      view.add(warp.lanes->clock[lane]);
      for (uint32_t of = 0; of < kLanes; ++of)
        view.add(thread_subject(block.uid, index, of), warp.lanes->known[lane][of]);
    }
    SyncLocation::Level& to = locations_[location].levels[i];
    const uint32_t domain = i == kBlockLevel ? block.uid : i == kClusterLevel ? block.cluster : 0;
    if (to.domain != domain) to = {};
    const bool first = !to.clock;
    to.domain = domain;
    to.from_block = first || to.from_block == block.uid ? block.uid : kSeveral;
    to.from_cluster = first || to.from_cluster == block.cluster ? block.cluster : kSeveral;
    to.clock = joiner_.join(to.clock, view.finish(joiner_));
  }
  if (passed) warp.epoch = time;
}

void Order::strong_access(BlockOrder& block, uint32_t index, uint32_t lane, uint64_t location,
                          const AccessEvent& event) {
  WarpOrder& warp = block.warps[index];
  const bool reads = event.kind == AccessKind::Load || event.kind == AccessKind::Atomic;
  const bool writes = event.kind != AccessKind::Load;
  if (reads) acquire(block, warp, lane, location, event.scope, acquires(event.strength));
  if (writes) {
    release(block, index, lane, location, event.scope, releases(event.strength),
            event.kind != AccessKind::Store);
  }
}

void Order::on(const MbarrierEvent& event) {
  BlockOrder& b = block(event.by.block);
  WarpOrder& warp = b.warps[event.by.warp];
  const uint64_t location = location_of(b, event.address);
  Phase& phase = mbarriers_[location];
  switch (event.step) {
    case MbarrierStep::Init:
    case MbarrierStep::Invalidate:
      phase = {};
      return;
    case MbarrierStep::Arrive:
      if (releases(event.order.strength)) {
        const Time time = ++now_;
        add_view(phase.arriving, b, event.by.warp, event.by.mask, time);
        warp.epoch = time;
      }
      break;
    case MbarrierStep::Expect:
    case MbarrierStep::Complete:
      break;
    case MbarrierStep::Test:
      if (event.passed && acquires(event.order.strength)) learn(b, warp, event.by.mask, phase.done);
      return;
  }
  if (event.completed) phase.done = joiner_.join(phase.done, phase.arriving.finish(joiner_));
}

bool Order::knows(const BlockOrder& block, const WarpOrder& warp, uint32_t lane, uint32_t of_block,
                  uint32_t of_warp, uint32_t of_lane, Time time) const {
  if (!block.knows_more) return false;
  const Clock* clocks[] = {block.clock.get(), warp.clock.get(),
                           warp.lanes ? warp.lanes->clock[lane].get() : nullptr};
  for (const Clock* clock : clocks) {
    if (clock && (clock->at(block_subject(of_block)) > time ||
                  clock->at(warp_subject(of_block, of_warp)) > time ||
                  clock->at(thread_subject(of_block, of_warp, of_lane)) > time))
      return true;
  }
  return false;
}

bool Order::knows_location(const BlockOrder& block, const WarpOrder& warp, uint32_t lane,
                           uint64_t location, Time time, bool writes) const {
  const auto has = [&](const ClockPtr& clock) {
    return clock && clock->at(location_subject(location)) >= time;
  };
  if (block.knows_more &&
      (has(block.clock) || has(warp.clock) || (warp.lanes && has(warp.lanes->clock[lane]))))
    return true;
  if (!writes) return false;
  if (has(block.pending_own) || has(block.pending_all)) return true;
  return warp.lanes && (has(warp.lanes->pending_own[lane]) || has(warp.lanes->pending_all[lane]));
}

}  // namespace kiln::watch::race
