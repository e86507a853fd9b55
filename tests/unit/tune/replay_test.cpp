// SPDX-License-Identifier: Apache-2.0
#include "tune/replay.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kiln::tune {
namespace {

// Times that fall towards A=8 B=8, with a part that cannot be built.
Json result() {
  Json result{
      {"space",
       {{"params", {{"A", Json::array()}, {"B", Json::array()}}}, {"where", Json::array()}}},
      {"outcomes", Json::array()}};
  for (int a = 1; a <= 8; ++a) {
    result["space"]["params"]["A"].push_back(a);
    result["space"]["params"]["B"].push_back(a);
    for (int b = 1; b <= 8; ++b) {
      Json outcome{{"defines", {fmt::format("A={}", a), fmt::format("B={}", b)}},
                   {"fate", "timed"}};
      if (a + b == 5)
        outcome["fate"] = "unbuildable";
      else
        outcome["us"] = 100 - 3 * a - 4 * b;
      result["outcomes"].push_back(std::move(outcome));
    }
  }
  return result;
}

TEST(Replay, ASearchComesNearTheBestOfASmoothSpace) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    auto played = replay(result(), {28, seed}, 4);
    ASSERT_TRUE(played) << format(played.error());
    EXPECT_EQ(played->timed, 28u);
    EXPECT_LE(played->ratio, 1.15) << seed;
    EXPECT_EQ(played->best.time_us, 44);
  }
}

TEST(Replay, AllTrialsFindTheBest) {
  auto played = replay(result(), {0, 0}, 16);
  ASSERT_TRUE(played);
  EXPECT_EQ(played->tried, 64u);
  EXPECT_EQ(played->ratio, 1);
}

TEST(Replay, WhatIsNoWholeResultIsRefused) {
  Json part = result();
  part["outcomes"].erase(0);
  auto played = replay(part, {0, 0}, 1);
  ASSERT_FALSE(played);
  EXPECT_EQ(played.error().why, "it has no outcome of A=1 B=1");
  EXPECT_FALSE(replay(Json::array(), {}, 1));
  EXPECT_FALSE(replay(Json{{"space", 3}, {"outcomes", 4}}, {}, 1));
}

}  // namespace
}  // namespace kiln::tune
