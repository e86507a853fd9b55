// SPDX-License-Identifier: Apache-2.0
// How do barriers and blocks order accesses? Fences and strong accesses: order_strong.cpp.
#include "watch/race/order.h"

#include <algorithm>
#include <bit>

#include "engine/memory/memory.h"

namespace kiln::watch::race {

using namespace engine;

void Order::begin_launch(const LaunchEvent& launch, uint32_t first_uid, bool in_part) {
  in_part_ = in_part;
  first_uid_ = first_uid;
  threads_ = launch.block.x * launch.block.y * launch.block.z;
  grid_ = launch.grid;
  cluster_ = launch.cluster;
  for (uint32_t* each : {&cluster_.x, &cluster_.y, &cluster_.z}) *each = std::max(*each, 1u);
  cluster_size_ = cluster_.x * cluster_.y * cluster_.z;
  shared_bytes_ = launch.shared_bytes;
  one_by_one_ = true;
  ++now_;
}

// A launch that stops in the middle leaves blocks behind.
void Order::end_launch() {
  for (auto& [number, block] : blocks_) {
    for (Line& line : block->shared) clear_line(pool_, line);
    free_.push_back(std::move(block));
  }
  blocks_.clear();
  last_ = nullptr;
  locations_.clear();
  mbarriers_.clear();
  cluster_phases_.clear();
  joiner_.clear();
}

uint32_t Order::cluster_of(uint32_t uid) const {
  const uint64_t number = uid - first_uid_;
  const uint64_t x = number % grid_.x, y = number / grid_.x % grid_.y,
                 z = number / grid_.x / grid_.y;
  const uint64_t first =
      x / cluster_.x * cluster_.x +
      grid_.x * (y / cluster_.y * cluster_.y + uint64_t{grid_.y} * (z / cluster_.z * cluster_.z));
  return first_uid_ + static_cast<uint32_t>(first);
}

BlockOrder& Order::look_up(uint64_t number) {
  auto& block = blocks_[number];
  if (!block) {
    if (free_.empty()) {
      block = std::make_unique<BlockOrder>();
    } else {
      block = std::move(free_.back());
      free_.pop_back();
    }
    one_by_one_ = one_by_one_ && blocks_.size() == 1;
    block->number = number;
    block->uid = first_uid_ + static_cast<uint32_t>(number);
    block->cluster = cluster_of(block->uid);
    block->barrier = now_;
    block->live = threads_;
    block->knows_more = in_part_ || clustered();
    block->clock = block->pending_own = block->pending_all = nullptr;
    block->warps.resize((threads_ + kLanes - 1) / kLanes);
    for (uint32_t i = 0; i < block->warps.size(); ++i) {
      block->warps[i] = {};
      const uint32_t count = threads_ - i * kLanes;
      block->warps[i].alive = count >= kLanes ? ~0u : (1u << count) - 1;
    }
    if (block->used_barriers) {
      for (auto& barrier : block->barriers) barrier = {};
      block->used_barriers = false;
    }
    // Lines were cleared when their last block ended.
    block->shared.resize(shared_bytes_ / kLineBytes + 9);
  }
  last_ = block.get();
  return *block;
}

void Order::on(const BlockEvent& event) {
  if (!event.ended) {
    look_up(event.block);
    return;
  }
  const auto found = blocks_.find(event.block);
  if (found == blocks_.end()) return;
  for (Line& line : found->second->shared) clear_line(pool_, line);
  free_.push_back(std::move(found->second));
  blocks_.erase(found);
  last_ = nullptr;
}

BlockOrder* Order::peer(const BlockOrder& of, uint32_t rank) {
  const uint64_t first = of.cluster - first_uid_;
  const uint64_t number = first + rank % cluster_.x +
                          grid_.x * (rank / cluster_.x % cluster_.y +
                                     uint64_t{grid_.y} * (rank / cluster_.x / cluster_.y));
  const auto found = blocks_.find(number);
  return rank < cluster_size_ && found != blocks_.end() ? found->second.get() : nullptr;
}

uint64_t Order::location_of(const BlockOrder& block, uint64_t address) const {
  if (address >> 56 != kSharedTag) return address;
  const uint64_t peer_bits = (address & kPeerBits) >> kPeerShift;
  uint64_t owner = block.uid;
  if (peer_bits) {
    BlockOrder* other = const_cast<Order*>(this)->peer(block, static_cast<uint32_t>(peer_bits - 1));
    if (other) owner = other->uid;
  }
  return kSharedWindow | owner << kPeerShift | (address & ((uint64_t{1} << kPeerShift) - 1));
}

void Order::on(const ExitEvent& event) {
  BlockOrder& b = block(event.by.block);
  WarpOrder& warp = b.warps[event.by.warp];
  b.live -= static_cast<uint32_t>(std::popcount(warp.alive & event.by.mask));
  warp.alive &= ~event.by.mask;
}

void Order::add_view(ClockBuilder& to, const BlockOrder& block, uint32_t index, uint32_t mask,
                     Time time) const {
  const WarpOrder& warp = block.warps[index];
  const bool all = (warp.alive & ~mask) == 0;
  to.add(warp_subject(block.uid, index), all ? time : warp.sync);
  to.add(block_subject(block.uid), block.barrier);
  to.add(block.clock);
  to.add(warp.clock);
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    if (!all) to.add(thread_subject(block.uid, index, lane), time);
    if (!warp.lanes) continue;
    to.add(warp.lanes->clock[lane]);
    for (uint32_t of = 0; of < kLanes; ++of) {
      if (warp.lanes->known[lane][of] > warp.sync)
        to.add(thread_subject(block.uid, index, of), warp.lanes->known[lane][of]);
    }
  }
}

void Order::learn(BlockOrder& block, WarpOrder& warp, uint32_t mask, const ClockPtr& clock) {
  if (!clock) return;
  block.knows_more = true;
  if ((warp.alive & ~mask) == 0) {
    warp.clock = joiner_.join(warp.clock, clock);
    return;
  }
  LaneOrder& lanes = warp.own_lanes();
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    ClockPtr& own = lanes.clock[std::countr_zero(rest)];
    own = joiner_.join(own, clock);
  }
}

void Order::on(const SyncEvent& event) {
  switch (event.kind) {
    case SyncKind::Exchange:
      return;  // orders no memory
    case SyncKind::Warp:
      sync_warp(block(event.by.block), event.by.warp, event.by.mask);
      return;
    case SyncKind::Cluster:
      on_cluster(event);
      return;
    case SyncKind::Block:
      break;
  }
  BlockOrder& b = block(event.by.block);
  BlockOrder::Barrier& barrier = b.barriers[event.id % std::size(b.barriers)];
  b.used_barriers = true;
  barrier.counts |= event.expected != 0;
  if (!event.by.program) {
    complete_barrier(b, barrier);
  } else if (event.waits) {
    barrier.waiting.push_back({event.by.warp, event.by.mask});
  } else {
    const Time time = ++now_;
    add_view(barrier.passed_by, b, event.by.warp, event.by.mask, time);
    b.warps[event.by.warp].epoch = time;
  }
}

// Threads that have ended count as having arrived, so their accesses come before too.
void Order::complete_whole(BlockOrder& block) {
  block.barrier = ++now_;
  for (WarpOrder& warp : block.warps) {
    if (!block.knows_more && !warp.lanes) continue;
    block.clock = joiner_.join(block.clock, warp.clock);
    warp.clock = nullptr;
    if (!warp.lanes) continue;
    take_pending(block.pending_own, block.pending_all, *warp.lanes, ~0u);
    for (ClockPtr& own : warp.lanes->clock) {
      block.clock = joiner_.join(block.clock, own);
      own = nullptr;
    }
  }
}

// One thread reads a flag and others have the fence: as with a release, that is more than the model
// says, and programs rely on it.
void Order::take_pending(ClockPtr& own, ClockPtr& all, LaneOrder& lanes, uint32_t mask) {
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const auto lane = std::countr_zero(rest);
    own = joiner_.join(own, lanes.pending_own[lane]);
    all = joiner_.join(all, lanes.pending_all[lane]);
  }
}

void Order::complete_barrier(BlockOrder& block, BlockOrder::Barrier& barrier) {
  uint32_t waiting = 0;
  for (const auto& each : barrier.waiting)
    waiting += static_cast<uint32_t>(std::popcount(each.mask));
  // Who has ended takes no part in a barrier that counts.
  const uint32_t all = barrier.counts ? threads_ : block.live;
  barrier.counts = false;
  if (barrier.passed_by.empty() && waiting >= all) {
    complete_whole(block);
    barrier.waiting.clear();
    return;
  }
  const Time time = ++now_;
  for (const auto& each : barrier.waiting)
    add_view(barrier.passed_by, block, each.warp, each.mask, time);
  const ClockPtr joined = barrier.passed_by.finish(joiner_);
  for (const auto& each : barrier.waiting) {
    WarpOrder& warp = block.warps[each.warp];
    learn(block, warp, each.mask, joined);
    warp.epoch = time;
    if ((warp.alive & ~each.mask) == 0) warp.sync = time;
  }
  barrier.waiting.clear();
}

void Order::sync_warp(BlockOrder& block, uint32_t index, uint32_t mask) {
  WarpOrder& warp = block.warps[index];
  const Time time = ++now_;
  warp.epoch = time;
  const bool all = (warp.alive & ~mask) == 0;
  if (all) warp.sync = time;
  if (!warp.lanes && all) return;
  LaneOrder& lanes = warp.own_lanes();
  ClockPtr together;
  for (uint32_t rest = mask; rest; rest &= rest - 1)
    together = joiner_.join(together, lanes.clock[std::countr_zero(rest)]);
  ClockPtr pending_own, pending_all;
  take_pending(pending_own, pending_all, lanes, mask);
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    lanes.pending_own[std::countr_zero(rest)] = pending_own;
    lanes.pending_all[std::countr_zero(rest)] = pending_all;
  }
  if (all) {
    warp.clock = joiner_.join(warp.clock, together);
    for (ClockPtr& own : lanes.clock) own = nullptr;
    return;
  }
  block.knows_more = true;
  Time known[kLanes] = {};
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    for (uint32_t of = 0; of < kLanes; ++of) known[of] = std::max(known[of], lanes.known[lane][of]);
  }
  for (uint32_t rest = mask; rest; rest &= rest - 1) known[std::countr_zero(rest)] = time;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    std::copy(std::begin(known), std::end(known), lanes.known[lane]);
    lanes.clock[lane] = together;
  }
}

// A relaxed arrival passes on what its lanes did before a fence.
void Order::add_fenced_lanes(ClockBuilder& to, const BlockOrder& block, uint32_t index,
                             uint32_t mask) const {
  const WarpOrder& warp = block.warps[index];
  for (uint32_t rest = warp.lanes ? mask : 0; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    to.add(thread_subject(block.uid, index, lane), warp.lanes->fence[kClusterLevel][lane]);
  }
}

void Order::on_cluster(const SyncEvent& event) {
  BlockOrder& b = block(event.by.block);
  WarpOrder& warp = b.warps[event.by.warp];
  const uint64_t key = uint64_t{b.cluster} << 32 | event.phase;
  Phase& phase = cluster_phases_[key];
  const Time time = ++now_;
  if (!event.waits) {
    if (event.phase >= 2) cluster_phases_.erase(key - 2);
    if (event.strength != Strength::Relaxed)
      add_view(phase.arriving, b, event.by.warp, event.by.mask, time);
    else
      add_fenced_lanes(phase.arriving, b, event.by.warp, event.by.mask);
  } else if (event.strength != Strength::Relaxed) {
    if (!phase.arriving.empty())
      phase.done = joiner_.join(phase.done, phase.arriving.finish(joiner_));
    learn(b, warp, event.by.mask, phase.done);
    if ((warp.alive & ~event.by.mask) == 0) warp.sync = time;
  }
  warp.epoch = time;
}

}  // namespace kiln::watch::race
