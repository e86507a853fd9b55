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
  // Where an access ended up: the same pattern comes again and again.
  struct Pattern {
    uint64_t step = ~uint64_t{0};
    uint32_t mask = 0;
    uint8_t phase = 0;  // of the base, in 128 bytes
    uint16_t cost = 0;  // sectors, or wavefronts
  };
  struct Site {
    uint64_t stretches = 0, threads = 0, guarded = 0;  // of the stretch that begins here
    uint32_t stretch_length = 0;
    uint32_t sample_cost = 0;
    Pattern pattern;
    bool may_merge = false;
    Pattern pattern4, pattern8, pattern16;  // as if it had another width
    results::OtherWidths other;
    results::Counts counts;
    std::unique_ptr<results::WarpSample> sample;
  };
  struct Block {
    uint64_t number = 0;
    Touched touched;
  };
  // Lanes of one instruction that come one by one.
  struct Pending {
    engine::AccessEvent event;
    uint64_t addresses[kWarpSize] = {};
    bool waits = false;
  };

  Site& site_of(const engine::Actor& by);
  void begin_program(const engine::Program& program);
  static uint32_t passes(const engine::AccessEvent& event, uint32_t bytes, Pattern& known);
  Block& block_of(uint64_t number);
  void take(const engine::AccessEvent& event);
  bool join(const engine::AccessEvent& event);
  void flush();
  void global_access(const engine::AccessEvent& event, Site& site);
  static void add_other_widths(const engine::AccessEvent& event, Site& site);
  void shared_access(const engine::AccessEvent& event, Site& site);
  void bulk_access(const engine::AccessEvent& event, Site& site);
  void split_generic(const engine::AccessEvent& event);
  static bool is_better_sample(const engine::AccessEvent& event, const Site& site, uint32_t cost);
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
  std::unordered_map<uint64_t, std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Block>> spare_blocks_;
  Block* last_block_ = nullptr;
  Pending pending_;
  Footprint footprint_;
  uint64_t strong_sectors_ = 0;  // loaded past L1
  uint64_t resident_blocks_ = 1;
};

}  // namespace kiln::watch
