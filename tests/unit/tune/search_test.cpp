// SPDX-License-Identifier: Apache-2.0
// Does the search try everything where it can, and find the best where it cannot?
#include "tune/search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace kiln::tune {
namespace {

// A valley with its floor at (11, 4, 7); a fourth axis that does not matter.
double time_of(const Point& p) {
  const auto off = [](size_t at, double best) {
    return (static_cast<double>(at) - best) * (static_cast<double>(at) - best);
  };
  return 100 + off(p[0], 11) + 3 * off(p[1], 4) + 2 * off(p[2], 7);
}

std::string values(int count) {
  std::string text = "0";
  for (int i = 1; i < count; i++) text += "," + std::to_string(i);
  return text;
}

TEST(Search, ExhaustiveGivesEachAllowedPointOnce) {
  const Space space = *Space::from_flags({"A=0,1,2,3", "B=0,1,2"}, {"A != B"});
  Search search = *Search::make(space, {});
  EXPECT_TRUE(search.exhaustive());
  EXPECT_EQ(search.trials(), 9u);
  std::set<Point> seen;
  for (;;) {
    const std::vector<Point> batch = search.next(4);
    if (batch.empty()) break;
    for (const Point& point : batch) {
      EXPECT_NE(point[0], point[1]);
      EXPECT_TRUE(seen.insert(point).second);
    }
  }
  EXPECT_EQ(seen.size(), 9u);
}

// 4,000 points, 150 trials: within 2 % of the best, whatever the seed.
TEST(Search, LocalSearchFindsTheValley) {
  const Space space =
      *Space::from_flags({"A=" + values(20), "B=" + values(10), "C=" + values(10), "D=0,1"}, {});
  for (uint64_t seed = 0; seed < 5; seed++) {
    Search search = *Search::make(space, {150, seed});
    EXPECT_FALSE(search.exhaustive());
    double best = 1e9;
    uint64_t tried = 0;
    for (;;) {
      const std::vector<Point> batch = search.next(4);
      if (batch.empty()) break;
      for (const Point& point : batch) {
        search.report(point, time_of(point));
        best = std::min(best, time_of(point));
        tried++;
      }
    }
    EXPECT_EQ(tried, 150u);
    EXPECT_LE(best, 102.0) << "seed " << seed;
  }
}

// What does a search with `trials` of them find, over the best of all? `time_us` gives 0 for what
// is refused.
struct Found {
  double ratio = 0;
  uint64_t tried = 0, timed = 0;
};
template <class Time>
Found find(const Space& space, uint64_t trials, uint64_t seed, size_t at_a_time, Time time_us) {
  double best = 1e300, found = 1e300;
  for (uint64_t i = 0; i < space.size(); i++)
    if (const double us = time_us(space.point(i)); us > 0) best = std::min(best, us);
  Search search = *Search::make(space, {trials, seed});
  Found outcome;
  std::vector<Point> pending;
  for (;;) {
    for (const Point& point : search.next(at_a_time - pending.size())) pending.push_back(point);
    if (pending.empty()) break;
    const Point point = pending.front();
    pending.erase(pending.begin());
    const double us = time_us(point);
    outcome.tried++;
    outcome.timed += us > 0;
    if (us > 0) {
      search.report(point, us);
      found = std::min(found, us);
    } else {
      search.report_refused(point);
    }
  }
  outcome.ratio = found / best;
  return outcome;
}

// Chance that is the same for a point and seed, between -1 and 1.
double noise(const Point& point, uint64_t seed) {
  uint64_t bits = seed * 0x9e3779b97f4a7c15u + 1;
  for (const size_t value : point) bits = (bits ^ value) * 0xbf58476d1ce4e5b9u, bits ^= bits >> 29;
  return static_cast<double>(bits % 20001) / 10000 - 1;
}

// Axes without an order, each two of which act on each other, half a percent of noise.
double rough(const Point& point, uint64_t seed) {
  double log_us = 5 + 0.005 * noise(point, seed);
  for (size_t a = 0; a < point.size(); a++)
    for (size_t b = 0; b <= a; b++)
      log_us += (a == b ? 0.2 : 0.05) * noise({a, b, point[a], point[b]}, seed + 1000);
  return std::exp(log_us);
}

TEST(Search, FindsTheBestOfAxesThatActOnEachOther) {
  const Space space =
      *Space::from_flags({"A=0,1", "B=" + values(8), "C=0,1,2", "D=0,1", "E=0,1"}, {});
  int near = 0;
  for (uint64_t seed = 0; seed < 40; seed++)
    near += find(space, 48, seed, 8, [&](const Point& p) { return rough(p, seed); }).ratio <= 1.02;
  EXPECT_GE(near, 36);
}

// The larger the tile the faster, until it spills: the best have more refused neighbours than timed
// ones.
TEST(Search, FindsTheBestBesideWhatIsRefused) {
  const Space space =
      *Space::from_flags({"A=" + values(8), "B=" + values(8), "C=0,1,2", "D=0,1"}, {});
  int near = 0;
  for (uint64_t seed = 0; seed < 20; seed++) {
    const Found found = find(space, 60, seed, 16, [&](const Point& p) {
      if (p[0] + p[1] + 2 * p[3] > 8) return 0.0;
      return 400 * std::exp(-0.06 * static_cast<double>(p[0] + p[1]) -
                            0.1 * static_cast<double>(p[3]) + 0.03 * noise(p, seed));
    });
    near += found.ratio <= 1.02;
    EXPECT_LE(found.timed, 60u);
    EXPECT_LE(found.tried, 120u);
  }
  EXPECT_GE(near, 15);
}

// A trial is what gets to the GPU; what never does is bounded too.
TEST(Search, WhatIsRefusedIsNoTrialButBounded) {
  const Space space = *Space::from_flags({"A=" + values(20), "B=" + values(20)}, {});
  const Found some = find(
      space, 50, 1, 4, [](const Point& p) { return p[0] % 4 == 0 ? 0.0 : 100.0 + double(p[1]); });
  EXPECT_EQ(some.timed, 50u);
  EXPECT_GT(some.tried, 50u);
  const Found none =
      find(space, 50, 1, 4, [](const Point& p) { return p[0] == 3 && p[1] == 3 ? 1.0 : 0.0; });
  EXPECT_EQ(none.tried, 100u);
}

TEST(Search, WhatCrashedOnTheGpuIsATrial) {
  const Space space = *Space::from_flags({"A=" + values(20), "B=" + values(20)}, {});
  Search search = *Search::make(space, {10, 1});
  uint64_t tried = 0;
  for (std::vector<Point> batch = search.next(3); !batch.empty(); batch = search.next(3))
    for (const Point& point : batch) search.report_untimed(point), tried++;
  EXPECT_EQ(tried, 10u);
}

// Every two values meet soon, also where a constraint ties two axes.
TEST(Search, TheSampleShowsEveryPairOfValues) {
  const Space space = *Space::from_flags({"M=64,128", "N=" + values(4), "W=4,8"}, {"M >= 16 * W"});
  Search search = *Search::make(space, {18, 3});
  std::set<std::pair<size_t, size_t>> met;
  for (const Point& point : search.next(6)) met.emplace(point[0], point[2]);
  EXPECT_EQ(met.size(), 3u);
}

// However many builders there are, most of the trials follow results.
TEST(Search, FewAreUnderWayOnceItFollowsResults) {
  const Space space = *Space::from_flags({"A=" + values(20), "B=" + values(20)}, {});
  Search search = *Search::make(space, {48, 1});
  const std::vector<Point> sample = search.next(64);
  EXPECT_EQ(sample.size(), 48u);  // nothing is known, so there is nothing to follow
  Search other = *Search::make(space, {48, 1});
  const std::vector<Point> first = other.next(16);
  for (const Point& point : first) other.report(point, 100 + double(point[0]));
  EXPECT_EQ(other.next(64).size(), 6u);
}

TEST(Search, TheSameReportsGiveTheSamePoints) {
  const Space space = *Space::from_flags({"A=" + values(30), "B=" + values(30)}, {"A + B < 40"});
  const auto run = [&] {
    Search search = *Search::make(space, {60, 5});
    std::vector<Point> all;
    for (std::vector<Point> batch = search.next(3); !batch.empty(); batch = search.next(3))
      for (const Point& point : batch) {
        all.push_back(point);
        search.report(point, static_cast<double>(point[0] * 7 % 11 + point[1]));
      }
    return all;
  };
  EXPECT_EQ(run(), run());
}

TEST(Search, GoesOnFromAJournal) {
  const Space space = *Space::from_flags({"A=0,1,2,3"}, {});
  Search search = *Search::make(space, {});
  search.report({1}, 5.0);
  search.report_refused({2});
  const std::vector<Point> left = search.next(10);
  EXPECT_EQ(left, (std::vector<Point>{{0}, {3}}));
}

TEST(Search, ASpaceTooLargeToList) {
  std::vector<std::string> axes;
  for (int i = 0; i < 12; i++) axes.push_back("A" + std::to_string(i) + "=" + values(10));
  const Space space = *Space::from_flags(axes, {"A0 < 5"});
  Search search = *Search::make(space, {200, 1});
  const std::vector<Point> batch = search.next(100);
  EXPECT_EQ(batch.size(), 100u);
  for (const Point& point : batch) EXPECT_LT(point[0], 5u);
}

TEST(Search, NothingAllowed) {
  const Space space = *Space::from_flags({"A=1,2"}, {"A > 2"});
  EXPECT_EQ(Search::make(space, {}).error().why,
            "the constraints forbid every configuration of the space");
}

}  // namespace
}  // namespace kiln::tune
