// SPDX-License-Identifier: Apache-2.0
// Which configuration is tried next? All of them where the trials suffice; else a random sample first, then the
// neighbours of the best, the best of them first.
#pragma once

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

class Search {
 public:
  // Spaces with more points are sampled, not listed.
  static constexpr uint64_t kEnumerable = uint64_t{1} << 20;

  // An error where a constraint cannot be evaluated, or none is allowed by all of them.
  static Result<Search> make(const Space& space, Budget budget);

  bool exhaustive() const { return exhaustive_; }
  // How many will be given out at most.
  uint64_t trials() const { return trials_; }
  // How many points no constraint forbids; nothing in a space too large to list.
  std::optional<uint64_t> allowed() const {
    return allowed_.empty() ? std::nullopt : std::optional<uint64_t>(allowed_.size());
  }
  // Up to `count` points that were not given out before; none when it is over. Given the same reports in the same
  // order, the same points.
  std::vector<Point> next(size_t count);
  // What came of a point, also of one that was never asked for (from a journal). No time: it cannot be used.
  void report(const Point& point, double time_us);
  void report_unusable(const Point& point);

 private:
  explicit Search(const Space& space) : space_(&space) {}
  bool give(uint64_t number, std::vector<Point>& to);
  bool give_neighbour_of_best(std::vector<Point>& to);
  double expected_log_us(const Point& point) const;
  bool give_random(std::vector<Point>& to);
  uint64_t random_bits();

  const Space* space_;
  bool exhaustive_ = false;
  uint64_t trials_ = 0;
  uint64_t given_ = 0;
  uint64_t random_state_ = 0;
  std::vector<uint64_t>
      allowed_;  // all points that no constraint forbids, shuffled; empty in a space too large to list
  size_t allowed_at_ = 0;
  std::set<uint64_t> seen_;
  std::multimap<double, uint64_t> timed_;
};

}  // namespace kiln::tune
