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
  const Space space = *Space::from_flags({"A=" + values(20), "B=" + values(10), "C=" + values(10), "D=0,1"}, {});
  for (uint64_t seed = 0; seed < 20; seed++) {
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
  search.report_unusable({2});
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
  EXPECT_EQ(Search::make(space, {}).error().why, "the constraints forbid every configuration of the space");
}

}  // namespace
}  // namespace kiln::tune
