// SPDX-License-Identifier: Apache-2.0
// Are equals called equal, and is a slowdown of 3 % found? Over 200 simulated comparisons each, with drift and
// outliers.
#include "measure/verdict.h"

#include <gtest/gtest.h>

#include "measure/fake_device.h"
#include "measure/run.h"

namespace kiln::measure {
namespace {

Verdict compare_once(double slowdown, uint64_t seed) {
  FakeModel model;
  model.noise = 0.01;
  model.outlier_share = 0.02;
  model.window_drift = 0.5;  // 50 % a second: sequential windows would differ by several %
  model.seed = seed;
  FakeDevice device(model);
  const auto contender = [&](std::string name, double factor) {
    return Contender{.name = std::move(name), .call = [&device, factor](int) -> Status {
                       device.launch({.fixed_ns = 2000, .bytes = factor * (100 << 20)});
                       return {};
                     }};
  };
  RunOptions options;
  options.patience = {.warm_up_least_s = 0.001, .warm_up_most_s = 0.005, .time_least_s = 0.03, .time_most_s = 0.05};
  options.side = options.kernels = options.roof = false;
  options.seed = seed;
  const auto report = run(device, {contender("a", slowdown), contender("b", 1)}, options);
  return report ? report->comparisons[0].judgement.verdict : Verdict::Ambiguous;
}

TEST(Verdict, EqualsAreNotToldApart) {
  int told_apart = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Verdict verdict = compare_once(1.0, seed);
    told_apart += verdict == Verdict::Faster || verdict == Verdict::Slower;
  }
  EXPECT_LE(told_apart, 10);  // 5 %
}

TEST(Verdict, ThreePercentAreFound) {
  int found = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) found += compare_once(1.03, seed) == Verdict::Slower;
  EXPECT_GE(found, 190);  // 95 %
}

TEST(Verdict, FasterIsFoundToo) { EXPECT_EQ(compare_once(0.95, 1), Verdict::Faster); }

TEST(Verdict, OfARatioAndAThreshold) {
  EXPECT_EQ(verdict_of({1.03, {1.02, 1.04}}, 0.005), Verdict::Slower);
  EXPECT_EQ(verdict_of({0.97, {0.96, 0.98}}, 0.005), Verdict::Faster);
  EXPECT_EQ(verdict_of({1.001, {0.999, 1.003}}, 0.005), Verdict::Same);
  EXPECT_EQ(verdict_of({1.005, {0.999, 1.011}}, 0.005), Verdict::Ambiguous);
}

TEST(Verdict, TheNoiseOfEqualsRaisesTheThreshold) {
  std::vector<double> a, b, again;
  for (int i = 0; i < 50; ++i) {
    a.push_back(103);
    b.push_back(100);
    again.push_back(i % 2 ? 110 : 95);
  }
  const Judgement judgement = judge(a, b, b, again);
  EXPECT_GT(judgement.threshold, 0.04);
  EXPECT_EQ(judgement.verdict, Verdict::Same);
}

}  // namespace
}  // namespace kiln::measure
