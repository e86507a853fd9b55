// SPDX-License-Identifier: Apache-2.0
// What has happened before what, inside of a launch? (PTX ISA, chapter Memory Consistency Model)
//
// Each warp has a time: that of its last barrier, fence or arrival. An access is stamped with it.
// Who has synchronised with a warp at a later time knows all its accesses that came before. Most
// threads synchronise by barriers of their block and their warp alone, which is one number each;
// the rest is in clocks (clock.h). So the common question, "has this block met at a barrier
// since?", is one comparison, however many threads there are.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/machine/events.h"
#include "watch/race/clock.h"
#include "watch/race/shadow.h"

namespace kiln::watch::race {

constexpr uint32_t kLanes = engine::kWarpSize;

// What lanes of a warp know each for itself; most warps have none.
struct LaneOrder {
  Time known[kLanes][kLanes] = {};  // [who][of whom]: by syncs of some lanes
  ClockPtr clock[kLanes];
  // The last fence of each lane by its scope (kBlockLevel...): what a strong write passes on.
  Time fence[3][kLanes] = {};
  Time barrier_at_fence[3][kLanes] = {};  // the block's last barrier at that time
  // Of strong reads: what a fence that follows brings; from the own block, and from all.
  ClockPtr pending_own[kLanes], pending_all[kLanes];
};
constexpr uint32_t kBlockLevel = 0, kClusterLevel = 1, kGpuLevel = 2;

struct WarpOrder {
  Time epoch = 0;  // the last event that it took part in, without barriers of the whole block
  Time sync = 0;   // the last sync of all its lanes
  uint32_t alive = 0;
  ClockPtr clock;  // known to all lanes
  std::unique_ptr<LaneOrder> lanes;

  LaneOrder& own_lanes() {
    if (!lanes) lanes = std::make_unique<LaneOrder>();
    return *lanes;
  }
};

struct BlockOrder {
  uint64_t number = 0;      // in the grid
  uint32_t uid = 0;         // of its own, in the process
  uint32_t cluster = 0;     // uid of the first block of its cluster
  Time barrier = 0;         // the last barrier of the whole block
  uint32_t live = 0;        // threads
  bool knows_more = false;  // there are clocks, or lanes that know apart, or may be
  ClockPtr clock;           // known to all threads
  // Of strong reads before a barrier: what a fence of any thread brings (LaneOrder).
  ClockPtr pending_own, pending_all;
  std::vector<WarpOrder> warps;
  struct Arrival {
    uint32_t warp, mask;
  };
  struct Barrier {
    std::vector<Arrival> waiting;
    ClockBuilder passed_by;  // what those knew who arrived and went on
    bool counts = false;     // it is of so many threads, not of the block
  };
  Barrier barriers[16];
  bool used_barriers = false;
  Lines shared;  // of its shared memory

  Time time_of(const WarpOrder& warp) const { return warp.epoch > barrier ? warp.epoch : barrier; }
};

// A place that threads synchronise through: a flag, a counter, a lock.
struct SyncLocation {
  struct Level {
    ClockPtr clock;
    uint32_t domain = 0;                        // block or cluster, of the narrower levels
    uint32_t from_block = 0, from_cluster = 0;  // who released; ~0: several
  } levels[3];
};

class Order {
 public:
  explicit Order(Pool& pool) : pool_(pool) {}
  // `in_part`: more than barriers of blocks and warps may order threads (partial_order.h).
  void begin_launch(const engine::LaunchEvent& launch, uint32_t first_uid, bool in_part);
  void end_launch();
  void on(const engine::BlockEvent& event);
  void on(const engine::SyncEvent& event);
  void on(const engine::ExitEvent& event);
  void on(const engine::FenceEvent& event);
  void on(const engine::MbarrierEvent& event);

  BlockOrder& block(uint64_t number) {
    return last_ && last_->number == number ? *last_ : look_up(number);
  }
  // A peer of the cluster; null: it has none of that rank, or it has ended.
  BlockOrder* peer(const BlockOrder& of, uint32_t rank);
  bool clustered() const { return cluster_size_ > 1; }
  // No two blocks of the launch were running at a time, until now.
  bool one_by_one() const { return one_by_one_; }
  // The uid of the first block of a block's cluster, in the launch at hand.
  uint32_t cluster_of(uint32_t uid) const;

  // What a strong access of a lane brings to it and passes on. In the order of the lanes.
  void strong_access(BlockOrder& block, uint32_t warp, uint32_t lane, uint64_t location,
                     const engine::AccessEvent& event);
  // True: no relaxed access of this warp can bring or pass on anything.
  bool strong_is_plain(const WarpOrder& warp) const { return locations_.empty() && !warp.lanes; }

  // Has `lane` of another warp, which accessed at `time`, a way to who asks? By clocks alone.
  bool knows(const BlockOrder& block, const WarpOrder& warp, uint32_t lane, uint32_t of_block,
             uint32_t of_warp, uint32_t of_lane, Time time) const;
  // Strong writes to a location up to `time`, for who has read it. To who writes there, reading it
  // is enough, without a fence: the last block of a reduction sets the counter back to 0.
  bool knows_location(const BlockOrder& block, const WarpOrder& warp, uint32_t lane,
                      uint64_t location, Time time, bool writes) const;

  Time now() const { return now_; }
  // Where counters would wrap: all that was is forgotten.
  void restart() { now_ = 0; }
  uint64_t location_of(const BlockOrder& block, uint64_t address) const;

 private:
  struct Phase {
    ClockBuilder arriving;
    ClockPtr done;
  };

  BlockOrder& look_up(uint64_t number);
  void complete_barrier(BlockOrder& block, BlockOrder::Barrier& barrier);
  void complete_whole(BlockOrder& block);
  void sync_warp(BlockOrder& block, uint32_t warp, uint32_t mask);
  void on_cluster(const engine::SyncEvent& event);
  // What lanes know and did, until `time`.
  void add_view(ClockBuilder& to, const BlockOrder& block, uint32_t warp, uint32_t mask,
                Time time) const;
  // What a strong write of a lane passes on of its block, which has had barriers since the fence.
  void add_fenced(ClockBuilder& to, const BlockOrder& block, uint32_t warp, uint32_t lane,
                  uint32_t level) const;
  void add_fenced_lanes(ClockBuilder& to, const BlockOrder& block, uint32_t warp,
                        uint32_t mask) const;
  void take_pending(ClockPtr& own, ClockPtr& all, LaneOrder& lanes, uint32_t mask);
  void learn(BlockOrder& block, WarpOrder& warp, uint32_t mask, const ClockPtr& clock);
  void acquire(BlockOrder& block, WarpOrder& warp, uint32_t lane, uint64_t location,
               engine::Scope scope, bool at_once);
  void release(BlockOrder& block, uint32_t warp, uint32_t lane, uint64_t location,
               engine::Scope scope, bool at_once, bool keeps);

  Pool& pool_;
  Joiner joiner_;
  Time now_ = 0;
  uint32_t first_uid_ = 0;
  uint32_t threads_ = 0, cluster_size_ = 1;
  uint64_t shared_bytes_ = 0;
  bool in_part_ = false, one_by_one_ = true;
  KilnDim3 grid_{}, cluster_{};
  BlockOrder* last_ = nullptr;
  std::unordered_map<uint64_t, std::unique_ptr<BlockOrder>> blocks_;  // running, by number
  std::vector<std::unique_ptr<BlockOrder>> free_;
  std::unordered_map<uint64_t, SyncLocation> locations_;
  std::unordered_map<uint64_t, Phase> mbarriers_;
  std::unordered_map<uint64_t, Phase> cluster_phases_;  // by cluster and phase
};

}  // namespace kiln::watch::race
