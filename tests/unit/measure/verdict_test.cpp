// SPDX-License-Identifier: Apache-2.0
// Are equals called equal, and is a slowdown of 3 % found? Over 200 simulated comparisons each,
// with drift and outliers.
#include "measure/sample/verdict.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "measure/device/fake_device.h"
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
  options.patience = {
      .min_warm_up_s = 0.001, .max_warm_up_s = 0.005, .min_time_s = 0.03, .max_time_s = 0.05};
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

// Times of a short kernel as an H200 gives them: in steps of 32 ns, each contender with a memory of
// its last samples, all on a clock that drifts, and now and then one that takes long.
class Rounds {
 public:
  explicit Rounds(uint32_t seed) : random_(seed) {}
  std::vector<double> of(double ns, const std::vector<double>& speed) {
    std::vector<double> out;
    double memory = 0;
    for (double now : speed) {
      memory = 0.6 * memory + 0.008 * normal_(random_);
      double sample = ns * now * (1 + memory) * (uniform_(random_) < 0.02 ? 2 : 1);
      out.push_back(32 * std::round(sample / 32));
    }
    return out;
  }
  std::vector<double> speed(size_t rounds) {
    std::vector<double> out;
    double slow = 0;
    for (size_t i = 0; i < rounds; ++i) {
      slow = 0.97 * slow + 0.005 * normal_(random_);
      out.push_back(1 + 0.03 * static_cast<double>(i) / static_cast<double>(rounds) + slow);
    }
    return out;
  }

 private:
  std::mt19937 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
};

Verdict of_rounds(double slowdown, uint32_t seed) {
  Rounds rounds(seed);
  const std::vector<double> speed = rounds.speed(250), a = rounds.of(8600 * slowdown, speed),
                            b = rounds.of(8600, speed), again = rounds.of(8600 * slowdown, speed);
  return judge(a, b, a, again, seed).verdict;
}

TEST(Verdict, EqualsWithAMemoryAreNotToldApart) {
  int told_apart = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const Verdict verdict = of_rounds(1.0, seed);
    told_apart += verdict == Verdict::Faster || verdict == Verdict::Slower;
  }
  EXPECT_LE(told_apart, 10);
}

TEST(Verdict, ThreePercentOfTimesWithAMemoryAreFound) {
  int found = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) found += of_rounds(1.03, seed) == Verdict::Slower;
  EXPECT_GE(found, 190);
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
