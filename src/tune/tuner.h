// SPDX-License-Identifier: Apache-2.0
// In which order are variants built, pruned, checked, timed and raced? Builders run ahead; lanes
// take what is built; every outcome goes to the journal at once; the fastest meet in one
// interleaved run at the end.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "tune/journal.h"
#include "tune/prune.h"
#include "tune/search.h"
#include "tune/workers.h"

namespace kiln::tune {

// What is tuned, and how long one may take.
struct Task {
  std::string op;
  std::vector<std::string> arguments, check;  // to time with; to compare results with
  sys::fs::path reference;                    // the folder of the right results
  bool has_reference = false;  // they are there; else the first variant that runs makes them
  std::optional<double> rtol, atol;
  uint64_t seed = 0;
  Json timing = Json::object(), racing = Json::object();  // options of the timing core
  std::vector<std::string> defines;  // of every variant, besides those of its point
  Rules rules;
  double lane_limit_s = 60, build_limit_s = 600;
  double seconds = 0;  // of the whole; 0: as long as it takes
  size_t finalists = 5;
};

struct Progress {
  uint64_t done = 0, trials = 0;
  std::map<Fate, uint64_t> counts;
  std::optional<Outcome> best;
  double left_s = 0;  // an estimate; 0: not known yet
  std::string doing;
};

// One variant of a search, in maps and messages.
inline std::string key_of(const std::vector<std::string>& defines) {
  return text::join(defines, " ");
}

struct Finalist {
  std::vector<std::string> defines;
  double us = 0, low_us = 0, high_us = 0;
  double ratio = 1, ratio_low = 1,
         ratio_high = 1;  // of its times to those of the one with the best single time
};

struct Tuned {
  std::vector<Finalist> finalists;  // the fastest first; none without a GPU
  bool timed = false;               // on a GPU
  bool time_is_over = false;        // before the search was
  double total_s = 0, build_s = 0,
         measure_s = 0;               // while at least one builder, one lane was at work
  std::vector<std::string> findings;  // of the timing core about the race
};

struct Hooks {
  std::function<double()> now;  // seconds
  std::function<void(const Progress&)> on_progress;
  std::function<void(const Outcome&)> on_outcome;
  std::function<bool()> interrupted;
};

class Tuner {
 public:
  Tuner(const Space& space, Search search, Journal& journal, Workers& workers, Task task,
        Hooks hooks);
  // The outcomes are in the journal.
  Result<Tuned> run();

 private:
  struct Variant {
    Point point;
    std::vector<std::string> defines;
    double since = 0;
    std::string library;
    Json facts = Json::object();
  };
  struct LaneState {
    std::optional<uint64_t> id;
    double since = 0;
  };

  void take_journal();
  Status start_builds();
  Status start_measurements();
  Status see(const WorkEvent& event);
  Status built(uint64_t id, const Json& answer);
  Status measured(uint64_t id, const Json& answer, size_t lane);
  Status end_late();
  Status finish(uint64_t id, Outcome outcome);
  Status step();
  void account();
  bool over() const;
  void forget_slow();
  Json request_for(const Variant& variant, const char* what) const;
  Result<std::vector<Finalist>> race(std::vector<std::string>& findings);
  Result<std::map<std::string, std::string>> libraries_of(const std::vector<Outcome>& outcomes);
  Progress progress(std::string doing) const;

  static constexpr double kWait_s = 0.2;  // how long nothing need happen before times are looked at

  const Space& space_;
  Search search_;
  Journal& journal_;
  Workers& workers_;
  Task task_;
  Hooks hooks_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, Variant> building_;
  std::map<uint64_t, Variant> ready_;  // built, in the order of their numbers
  std::map<uint64_t, Variant> kept_;   // timed, with their libraries still there
  std::map<uint64_t, Variant> measuring_;
  std::vector<LaneState> lanes_;
  size_t next_lane_ = 0;
  bool search_is_over_ = false, establishing_ = false;
  double begun_ = 0, seen_ = 0, build_s_ = 0, measure_s_ = 0;
  uint64_t done_before_ = 0;
};

// The timed outcomes with the least times, the fastest first; the first of them, or nothing.
std::vector<Outcome> fastest(const std::vector<Outcome>& outcomes, size_t count);
std::optional<Outcome> best_of(const std::vector<Outcome>& outcomes);
// What came of a point, in the search's words.
void tell(Search& search, const Point& point, const Outcome& outcome);

}  // namespace kiln::tune
