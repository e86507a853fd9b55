// SPDX-License-Identifier: Apache-2.0
// What did each instruction of a launch do? Counts by site, and the memory that blocks touched.
//
// Numbers of one launch are sums over warps and blocks, and the model of caches orders blocks by
// their number (footprint.h): they are the same for every schedule. Events come from one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/machine/events.h"
#include "results/counters.h"
#include "watch/counters/footprint.h"
#include "watch/counters/listing.h"
#include "watch/counters/patterns.h"
#include "watch/counters/reuse.h"

namespace kiln::watch {

class Counters : public engine::Sink {
 public:
  using Write = std::function<void(const std::string&)>;

  // `write` gets whole lines of results/counters.h.
  Counters(Write write, const Caches& caches, std::string_view version);

  uint32_t wanted() const override {
    return engine::kAccessEvents | engine::kStretchEvents | engine::kControlEvents |
           engine::kSyncEvents | engine::kBlockEvents;
  }
  void on(const engine::AccessEvent& event) override;
  void on(const engine::StretchEvent& event) override;
  void on(const engine::BranchEvent& event) override;
  void on(const engine::SyncEvent& event) override;
  void on(const engine::BlockEvent& event) override;
  void on(const engine::LaunchEvent& event) override;

 private:
  // What an access by base and step cost: the same pattern comes again and again. Passes of shared
  // memory depend on the base only by its place in 16 bytes: a shift by whole words turns the
  // banks.
  struct Pattern {
    uint64_t step = ~uint64_t{0}, row_step = 0;
    uint32_t mask = 0;
    uint8_t row_lanes = 0, phase = 0;
    bool load = false;
    uint16_t cost = 0, ideal = 0;
    uint16_t passes4 = 0, passes8 = 0, passes16 = 0;  // as if it had another width; 0: cannot
    uint64_t times = 0;                               // that are not among the site's counts yet
  };
  // A run of lanes whose bytes touch: its sectors are those of one range.
  struct Run {
    uint64_t step = ~uint64_t{0};
    uint32_t mask = 0;
    bool is_range = false;
    int64_t offset = 0;  // of the lowest byte, from the base
    uint64_t span = 0;   // bytes
    uint32_t lanes = 0, ideal = 0;
    uint64_t times = 0;  // loads and stores whose requests are not among the site's counts yet
  };
  struct Site {
    uint64_t stretches = 0, threads = 0, guarded = 0;  // of the stretch that begins here
    uint32_t stretch_length = 0;
    uint32_t sample_cost = 0;
    uint64_t sample_block = 0;
    uint32_t sample_warp = 0;
    bool has_sample = false, may_merge = false, rounds = false;
    engine::AccessKind kind = engine::AccessKind::Load;  // of the last access
    uint32_t bytes = 0;
    Run run;
    Pattern patterns[4];
    results::OtherWidths other;
    results::Counts counts;
    std::unique_ptr<results::WarpSample> sample;
  };
  struct Block {
    uint64_t number = 0;
    Touched touched;
    std::unique_ptr<WarpReuse> first_warp;  // of a block that stands for others
  };
  // Lanes of one instruction that come one by one.
  struct Pending {
    engine::AccessEvent event;
    uint64_t addresses[kWarpSize] = {};
    bool waits = false;
  };

  Site& site_of(const engine::Actor& by);
  void begin_program(const engine::Program& program);
  static Pattern& pattern_of(const engine::AccessEvent& event, Site& site, Pattern& other);
  static void add_pattern(Site& site, Pattern& pattern);
  static void begin_run(const engine::AccessEvent& event, uint64_t step, Site& site);
  static void add_run(Site& site);
  Block& block_of(uint64_t number) {
    if (last_block_ && last_block_->number == number) return *last_block_;
    return find_block(number);
  }
  Block& find_block(uint64_t number);
  bool stands_for_others(uint64_t block) const;
  void end_block(Block& block);
  void take(const engine::AccessEvent& event);
  bool is_repeated(const engine::AccessEvent& event);
  bool join(const engine::AccessEvent& event);
  void flush();
  void global_access(const engine::AccessEvent& event, Site& site);
  // By the first warp of the block that was asked for last.
  void track(const engine::AccessEvent& event, uint64_t first, uint64_t last);
  uint32_t touch_run(const engine::AccessEvent& event, const Run& run);
  uint32_t touch_lanes(const engine::AccessEvent& event);
  void count_special(const engine::AccessEvent& event, Site& site, uint32_t cost);
  void shared_access(const engine::AccessEvent& event, Site& site);
  void bulk_access(const engine::AccessEvent& event, Site& site);
  void split_generic(const engine::AccessEvent& event);
  // The costliest request of a site; of several the first warp's, so that the schedule does not
  // matter.
  static bool is_better_sample(const engine::AccessEvent& event, const Site& site, uint32_t cost) {
    if (!site.has_sample || cost != site.sample_cost)
      return !site.has_sample || cost > site.sample_cost;
    return event.by.block < site.sample_block ||
           (event.by.block == site.sample_block && event.by.warp < site.sample_warp);
  }
  void keep_sample(const engine::AccessEvent& event, Site& site, bool shared, uint32_t cost);
  void end_launch(const engine::LaunchEvent& event);
  void add_sites(const engine::Program& program, std::vector<Site>& sites,
                 results::CounterLaunch* launch);

  Write write_;
  Caches caches_;
  std::unordered_map<const engine::Program*, std::vector<Site>> running_;
  std::unordered_map<uint64_t, Listing> listings_;  // by Program::serial
  const engine::Program* last_program_ = nullptr;
  std::vector<Site>* last_sites_ = nullptr;
  std::vector<std::unique_ptr<Block>> blocks_;  // that run now: a few
  std::vector<std::unique_ptr<Block>> spare_blocks_;
  Block* last_block_ = nullptr;
  Pending pending_;
  Footprint footprint_;
  uint64_t strong_sectors_ = 0;  // loaded past L1
  AtomicUpdates updates_;
  uint64_t resident_blocks_ = 1;
  uint64_t launch_blocks_ = 1;
  ReuseScale reuse_scale_;
  Reuse reuse_;
};

}  // namespace kiln::watch
