// SPDX-License-Identifier: Apache-2.0
// Which barriers and exchanges of lanes are used in a way that CUDA does not define? The engine
// runs most of them as a GPU happens to do; another GPU, or another compiler, may hang.
//
// A barrier is judged when it completes, by who arrived where: so lanes that reach one barrier
// together in the program, but were run one after the other, are not taken for divergent ones.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "watch/sanitize/collector.h"

namespace kiln::watch {

class SyncChecker : public engine::Sink {
 public:
  explicit SyncChecker(Collector& collector) : collector_(collector) {}

  uint32_t wanted() const override {
    return engine::kSyncEvents | engine::kMbarrierEvents | engine::kBlockEvents |
           engine::kFenceEvents;
  }
  void on(const engine::LaunchEvent& event) override;
  void on(const engine::BlockEvent& event) override;
  void on(const engine::SyncEvent& event) override;
  void on(const engine::ExitEvent& event) override;
  void on(const engine::MbarrierEvent& event) override;
  // A fence may bring what others did.
  void on(const engine::FenceEvent& event) override {
    if (collector_.launch()) meets_others(event.by);
  }
  // Adds to a deadlock what is known of its barriers.
  bool recovers(const engine::FaultEvent& fault) override;

 private:
  // Lanes of one warp that have arrived at a barrier of the block, in the phase under way.
  struct Arrival {
    SiteId site;
    uint32_t warp, mask, expected;
    bool aligned;
  };
  // Lanes of one warp that have ended.
  struct Ended {
    SiteId site;
    uint32_t warp, mask;
  };
  // Lanes that stood elsewhere while others waited for them at an exchange.
  struct Passed {
    SiteId at;
    uint32_t warp, waiting_site;
    engine::Actor stood;
  };
  struct Mbarrier {
    SiteId init = kNoSite;
    uint32_t wanted = 0, pending = 0;
    uint64_t phase = 0;
  };
  // A use of an mbarrier that nobody has set up yet.
  struct Early {
    uint64_t address;
    SiteId site;
    Who by;
  };
  struct BlockState {
    std::array<std::vector<Arrival>, 16> barriers;
    std::array<std::vector<Arrival>, 16> completed;  // those of the phase before
    std::array<uint32_t, 16> completed_at = {};      // when, counted in phases of the block
    uint32_t now = 0;
    std::array<uint32_t, engine::kWarpSize> synced = {};  // by warp: when it last met others
    std::vector<Ended> ended;
    std::vector<Passed> passed;
    std::vector<uint32_t> alive;  // by warp
    std::map<uint64_t, Mbarrier> mbarriers;
    std::vector<Early> early;
  };

  BlockState& block(uint64_t number);
  uint32_t full_mask(uint32_t warp) const;
  Who first_of(uint64_t block, uint32_t warp, uint32_t mask) const;

  void arrives(const engine::SyncEvent& event);
  void completes(const engine::SyncEvent& event);
  bool check_twice(uint64_t number, uint32_t id, const std::vector<Arrival>& arrivals);
  bool check_warp(uint64_t number, const BlockState& state, uint32_t warp,
                  const std::vector<Arrival>& arrivals);
  void missing_lanes(uint64_t number, const BlockState& state, const Arrival& arrival,
                     uint32_t missing);
  void check_counts(uint64_t number, uint32_t id, const std::vector<Arrival>& arrivals);
  void check_phases(uint64_t number, uint32_t id, const BlockState& state);
  void meets_others(const engine::Actor& by);
  void explain_deadlock(const engine::FaultEvent& fault);
  // Of a deadlock. True: it was reported as the cause.
  bool explain_by_counts(uint64_t number, const BlockState& state);
  void passes(const engine::SyncEvent& event);
  uint32_t went_past(const engine::SyncEvent& event, const BlockState& state);
  void exchanges(const engine::SyncEvent& event);
  void check_sources(const engine::SyncEvent& event, SiteId site);
  void used_early(BlockState& state, const engine::MbarrierEvent& event);
  void report_early(uint64_t number, BlockState& state, const engine::MbarrierEvent* setup);
  void misused(const engine::MbarrierEvent& event, const Mbarrier* known, std::string message,
               std::string advice);

  Collector& collector_;
  std::unordered_map<uint64_t, BlockState> blocks_;
  uint64_t last_number_ = ~uint64_t{0};
  BlockState* last_ = nullptr;
  // leads_to(), by a program's serial and two sites.
  std::map<std::tuple<uint64_t, uint32_t, uint32_t>, bool> ways_;
  bool stopped_ = false;       // by a fault: barriers are left as they were
  bool peers_arrive_ = false;  // at mbarriers of other blocks: arrivals are not counted then
};

}  // namespace kiln::watch
