// SPDX-License-Identifier: Apache-2.0
// Which configuration is tried next? All of them where the trials suffice; else a sample that shows
// every pair of values about equally often, then where a model of what was timed so far has most
// hope.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/result.h"
#include "tune/space.h"

namespace kiln::tune {

struct Budget {
  uint64_t trials = 0;  // 0: as many as there are, up to kEnumerable points
  uint64_t seed = 0;
};

// A trial is a configuration that gets to the GPU. One that the compiler or pruning refuses costs
// the builders, which run side by side, and is not a trial; but a search builds at most twice as
// many as its trials.
class Search {
 public:
  // Spaces with more points are sampled, not listed.
  static constexpr uint64_t kEnumerable = uint64_t{1} << 20;

  // An error where a constraint cannot be evaluated, or none is allowed by all of them.
  static Result<Search> make(const Space& space, Budget budget);

  bool exhaustive() const { return exhaustive_; }
  // How many will be given out at most, as far as it is known by now.
  uint64_t trials() const { return std::min(trials_ + (exhaustive_ ? 0 : refused_), most_given_); }
  // How many points no constraint forbids; nothing in a space too large to list.
  std::optional<uint64_t> allowed() const {
    return allowed_.empty() ? std::nullopt : std::optional<uint64_t>(allowed_.size());
  }
  // Up to `count` points that were not given out before; none when it is over, or when those under
  // way must be known first. Given the same reports in the same order, the same points.
  std::vector<Point> next(size_t count);
  // What came of a point, also of one that was never asked for (from a journal).
  void report(const Point& point, double time_us);
  void report_untimed(
      const Point& point);  // it had its turn on the GPU or the engine, and there is no time
  void report_refused(const Point& point);  // it never got there

 private:
  // How often two values of two axes met, and how often that was refused; of how many such cells.
  struct Met {
    uint64_t given = 0, refused = 0, of = 1;
  };
  explicit Search(const Space& space) : space_(&space) {}
  bool may_try(uint64_t number) const;
  void give(const Point& point);
  void take_note(const Point& point);
  template <class Visit>
  void for_each_pair(const Point& point, Visit visit);
  double chance_to_run(const Point& point);
  std::optional<Point> first_allowed();
  std::optional<Point> least_seen();
  std::optional<Point> most_hopeful();
  std::vector<Point> draw(size_t count);
  std::vector<Point> candidates();
  uint64_t random_bits();

  const Space* space_;
  bool exhaustive_ = false;
  uint64_t trials_ = 0, most_given_ = 0;
  uint64_t given_ = 0, refused_ = 0;
  uint64_t random_state_ = 0;
  // All points that no constraint forbids, shuffled; empty in a space too large to list.
  std::vector<uint64_t> allowed_;
  size_t allowed_at_ = 0;
  std::set<uint64_t> seen_, pending_;
  std::multimap<double, uint64_t> timed_;
  std::vector<std::vector<Met>> pairs_;  // a table for each two axes, a cell for each two values
};

}  // namespace kiln::tune
