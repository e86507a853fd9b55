// SPDX-License-Identifier: Apache-2.0
// Which accesses to shared, cluster and global memory race? (docs/design/race.md) A watcher that
// needs events alone: it is tested with recorded ones.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "engine/machine/events.h"
#include "engine/memory/memory.h"
#include "watch/race/check.h"
#include "watch/sanitize/collector.h"

namespace kiln::watch {

namespace race {
// Of a shared address: the offset in its block's memory, without the block's rank in the cluster.
constexpr uint64_t kOffsetBits = (uint64_t{1} << engine::kPeerShift) - 1;
}  // namespace race

class RaceChecker : public engine::Sink, private race::Reporter {
 public:
  explicit RaceChecker(Collector& collector);

  uint32_t wanted() const override {
    return engine::kAccessEvents | engine::kSyncEvents | engine::kFenceEvents |
           engine::kMbarrierEvents | engine::kBlockEvents | engine::kHostEvents |
           engine::kGroupedAccesses;
  }
  void on(const engine::AccessEvent& event) override;
  void on(const engine::SyncEvent& event) override { order_.on(event); }
  void on(const engine::ExitEvent& event) override { order_.on(event); }
  void on(const engine::FenceEvent& event) override { order_.on(event); }
  void on(const engine::MbarrierEvent& event) override;
  void on(const engine::BlockEvent& event) override { order_.on(event); }
  void on(const engine::HostEvent& event) override;
  void on(const engine::LaunchEvent& event) override;

  const race::Pool& pool() const { return pool_; }

 private:
  race::Line* shared_line(uint64_t address, race::Accessor& me);
  race::Line* line_of(const engine::AccessEvent& event, uint64_t address, race::Accessor& me);
  void add(const engine::AccessEvent& event, uint64_t address, const race::Entry& mine,
           race::Accessor& me, bool scattered);
  // Neighbouring lanes from `lane` on, at neighbouring elements. False: not in this form.
  bool add_dense(const engine::AccessEvent& event, uint64_t base, uint32_t lane, uint32_t mask,
                 race::Entry mine, race::Accessor& me);
  void add_lane(const engine::AccessEvent& event, uint64_t address, uint32_t lanes,
                race::Entry mine, race::Accessor& me, bool scattered);
  void add_rows(const engine::AccessEvent& event, const race::Entry& mine, race::Accessor& me);
  bool add_place(const engine::AccessEvent& event, uint64_t address, race::Entry& mine,
                 race::Accessor& me, bool scattered);
  void add_words(const engine::AccessEvent& event, const uint64_t* addresses, race::Entry one,
                 race::Accessor& me);
  void read_words(const engine::AccessEvent& event, const uint64_t* addresses, race::Entry one,
                  race::Accessor& me);
  void add_shared_words(const engine::AccessEvent& event, const uint64_t* addresses,
                        race::Entry one, race::Accessor& me);
  void add_lanes(const engine::AccessEvent& event, const uint64_t* addresses,
                 const race::Entry& mine, race::Accessor& me);
  void add_run(const engine::AccessEvent& event, const race::Entry& mine, race::Accessor& me);
  void add_unknown(const engine::AccessEvent& event, const race::Entry& mine, race::Accessor& me);
  // What is left of on(), apart so that the common cases stay short.
  [[gnu::noinline]] void add_other(const engine::AccessEvent& event, const race::Entry& mine,
                                   race::Accessor& me);
  [[gnu::noinline]] void turn_to(const engine::Actor& by);
  void add_event(const engine::AccessEvent& event, race::Entry& mine, race::Accessor& me);
  void add_span(const engine::AccessEvent& event, uint64_t address, uint32_t lanes,
                race::Entry mine, race::Accessor& me);
  [[gnu::noinline]] void add_repeats(const engine::AccessEvent& event, const race::Entry& mine,
                                     race::Accessor& me);
  void synchronize(const engine::AccessEvent& event, race::BlockOrder& block);

  void host_access(const engine::HostEvent& event, const race::HostOrder::Operation& by,
                   const engine::Rows& rows, bool writes);
  void host_range(uint64_t address, uint64_t bytes, race::Entry mine, race::Accessor& me);
  void check_free(const engine::HostEvent& event);
  void forget_all();
  bool in_part(const engine::Program& program);

  void race(const race::Party& earlier, const race::Party& later, uint64_t address,
            bool same_value) override;
  // A hash of what the lanes of a store write; 0: not known, or not the same.
  static uint32_t stored_value(const engine::AccessEvent& event, uint32_t lanes);
  void fill(results::Finding& finding, results::Rule rule, const race::Party& first,
            const race::Party& second, uint64_t address);
  results::FindingPlace place_of(const race::Party& party) const;
  bool is_memory(uint64_t address) const;
  bool sets_up(const race::Place& a, const race::Place& b) const;
  // Notes, where no other pair of the same lines is an error.
  void report_notes();

  Collector& collector_;
  race::Pool pool_;
  race::GlobalShadow global_{pool_};
  race::Order order_{pool_};
  race::HostOrder host_;
  race::Places places_;
  race::Checker checker_;
  uint32_t launch_uid_ = 0;
  std::unordered_map<uint64_t, bool> in_part_;  // orders_in_part(), by a program's serial
  race::Accessor accessor_;                     // of the event at hand
  uint64_t accessor_block_ = 0;                 // its number; the rest: turn_to()
  race::Time accessor_time_ = 0, accessor_since_ = ~0u;
  race::Time launch_line_before_ = 0;  // Accessor::line_before, of global memory
  struct Note {
    SiteId first = kNoSite, second = kNoSite;
    results::Finding finding;
  };
  std::map<std::pair<uint32_t, uint32_t>, Note> notes_;  // of the launch, by lines
  std::set<std::pair<uint32_t, uint32_t>> errors_;       // lines of races
  uint64_t known_pairs_[64] = {};                        // of places and rule, the latest
  std::set<uint64_t> given_up_;                          // locations of mbarriers, in this launch
  bool running_ = false;
};

}  // namespace kiln::watch
