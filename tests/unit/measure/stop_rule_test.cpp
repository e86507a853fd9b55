// SPDX-License-Identifier: Apache-2.0
// When does a measurement end?
#include "measure/sample/stop_rule.h"

#include <gtest/gtest.h>

namespace kiln::measure {
namespace {

TEST(StopRule, NeedsSamplesTimeAndPrecision) {
  const Patience patience;
  const std::vector<double> steady(30, 100.0), few(10, 100.0);
  std::vector<double> wide;
  for (int i = 0; i < 30; ++i) wide.push_back(100 + i);
  EXPECT_EQ(progress(steady, 0.6, 1, patience), Progress::Converged);
  EXPECT_EQ(progress(few, 0.6, 1, patience), Progress::More);
  EXPECT_EQ(progress(steady, 0.4, 1, patience), Progress::More);
  EXPECT_EQ(progress(wide, 0.6, 1, patience), Progress::More);
  EXPECT_EQ(progress(wide, 0.6, 15, patience), Progress::NotConverged);
}

TEST(StopRule, TwoModesAreNotWaitedFor) {
  const Patience patience;
  std::vector<double> two(200, 51.3);
  for (size_t i = 100; i < 200; ++i) two[i] = 52.8;
  EXPECT_EQ(progress(two, 0.6, 1, patience), Progress::More);
  EXPECT_EQ(progress(two, 1.1, 2, patience), Progress::Converged);
}

TEST(StopRule, WarmUpLastsUntilTheMedianIsSteady) {
  const Patience patience;
  std::vector<double> falling, steady(40, 10.0);
  for (int i = 0; i < 40; ++i) falling.push_back(100.0 - i);
  EXPECT_FALSE(is_warm(steady, 0.1, patience));  // too soon
  EXPECT_TRUE(is_warm(steady, 0.25, patience));
  EXPECT_FALSE(is_warm(falling, 0.25, patience));
  EXPECT_TRUE(is_warm(falling, 2.0, patience));  // never steady: enough
  EXPECT_FALSE(is_warm(std::vector{1.0, 1.0}, 1.0, patience));
}

}  // namespace
}  // namespace kiln::measure
