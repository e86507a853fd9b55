// SPDX-License-Identifier: Apache-2.0
// How do checkers report? Each is a Sink that was given a Collector. It gets events, decides, and
// says `found(rule, site, site)`; the Collector keeps one finding for each rule and pair of source
// lines, counts the others, and never holds more than kMostFindings.
//
//   if (Finding* finding = collector.found(Rule::SharedRace, first.site, second.site)) {
//     finding->message = ...;                       // only the first of its kind is filled in
//     finding->places[0] = collector.place(first.site, first.who, "write of 4 bytes");
//     ...
//   }
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/machine/events.h"
#include "results/findings.h"
#include "watch/sanitize/sites.h"

namespace kiln::watch {

// A launch as reports name it. Kept while the process lives: a race can be with an earlier one.
struct KnownLaunch {
  uint64_t number = 0, stream = 0;
  std::string kernel;  // demangled
  KilnDim3 grid{}, block{};
};

// A thread of a launch, in 16 bytes: what shadow memory can afford to keep is less.
struct Who {
  uint64_t launch = 0;  // its number
  uint64_t block = 0;   // in the grid
  uint32_t thread = 0;  // in the block
};
inline Who who(uint64_t launch, const engine::Actor& by, uint32_t lane) {
  return {launch, by.block, by.warp * engine::kWarpSize + lane};
}

class Collector : public engine::Sink {
 public:
  static constexpr size_t kMostFindings = 1000;
  static constexpr size_t kMostLaunches = 4096;  // that are remembered
  static constexpr double kMostSecondsAfterFault = 3;
  static constexpr size_t kMostFaultyBlocks = 4096;  // that are remembered

  // Launch events alone, and those always arrive. First in a Fanout: checkers ask about the launch.
  uint32_t wanted() const override { return 0; }
  void on(const engine::LaunchEvent& event) override;
  // Every sanitized run goes on behind a bad address: a read gives junk, a write is dropped.
  bool recovers(const engine::FaultEvent& fault) override;
  // But a block has kMostSecondsAfterFault of this thread's time for its end.
  bool gives_up(const engine::Actor& by) override;

  // Null: it is known already, or there are too many; it was counted. `second` may be kNoSite.
  // The pair has no order. Findings of the same lines are told apart by `text`, if there is one.
  results::Finding* found(results::Rule rule, SiteId first, SiteId second = kNoSite,
                          std::string_view text = "");
  // The last one, if it is of that rule and happened once: for a checker that knows more of it.
  results::Finding* newest(results::Rule rule);
  // Takes it back: the checker has found its cause, and reports that.
  void withdraw_newest(results::Rule rule);
  // The one of these lines; null: none, or there were too many.
  results::Finding* known(results::Rule rule, SiteId first, SiteId second);
  results::FindingPlace place(SiteId site, const Who& who, std::string action) const;
  // What the host did: a copy, a fill, a call.
  results::FindingPlace host_place(std::string action, uint64_t stream) const;

  SiteTable& sites() { return sites_; }
  // The launch that runs now; null between launches.
  const engine::LaunchEvent* launch() const { return running_ ? &*running_ : nullptr; }
  const KnownLaunch* launch_named(uint64_t number) const;

  // All so far, with the totals.
  const results::Findings& findings();
  bool checks(std::string_view name) const {
    return std::ranges::find(findings_.checks, name) != findings_.checks.end();
  }
  void set_checks(std::vector<std::string> names) { findings_.checks = std::move(names); }
  int64_t launch_count() const { return findings_.launches; }
  size_t kernel_count() const { return findings_.kernels.size(); }
  // New ones since the last call of this.
  bool take_news() { return std::exchange(news_, false); }
  // Rises with each finding, known or not.
  uint64_t times() const { return times_; }
  // Called when a finding comes after new ones, which are whole by then: a kernel may run until the
  // process is killed.
  void on_more(std::function<void()> write) { on_more_ = std::move(write); }
  // For a checker that decides when the process ends, and for what it knows of the parent of a
  // fork.
  void at_end(std::function<void()> decide) { at_end_.push_back(std::move(decide)); }
  void at_fork(std::function<void()> forget_own) { at_fork_.push_back(std::move(forget_own)); }
  // The process ends.
  void end();
  // In the child of a fork: what the parent found is the parent's.
  void forget();

 private:
  struct Key {
    uint64_t lines;
    uint32_t rule;
    uint64_t text;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return (key.lines * 0x9e3779b97f4a7c15u) ^ (uint64_t{key.rule} << 48) ^ key.text;
    }
  };

  void count_launch(const engine::LaunchEvent& event, const std::string& kernel);

  SiteTable sites_;
  std::optional<engine::LaunchEvent> running_;
  std::unordered_map<uint64_t, KnownLaunch> launches_;
  std::unordered_set<uint64_t> programs_;  // serials of those launched, the first of them
  results::Findings findings_;
  std::unordered_map<Key, size_t, KeyHash> known_;  // to the index in findings_
  std::vector<int64_t> counts_;                     // by rule
  // Of the launch that runs: the thread's time at the first fault of each block.
  std::unordered_map<uint64_t, double> faulty_;
  bool news_ = false;
  uint64_t times_ = 0;
  std::function<void()> on_more_;
  std::vector<std::function<void()>> at_end_, at_fork_;
};

}  // namespace kiln::watch
