// SPDX-License-Identifier: Apache-2.0
// Are the statistics right? The figures are scipy's and numpy's; tests/python/test_statistics.py
// asks a scipy that is there for thousands more.
#include "measure/sample/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace kiln::measure {
namespace {

std::vector<double> first(int count) {
  std::vector<double> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

TEST(Statistics, MedianOfEvenAndOdd) {
  EXPECT_EQ(median(std::vector{3.0, 1.0, 2.0}), 2.0);
  EXPECT_EQ(median(std::vector{4.0, 1.0, 2.0, 3.0}), 2.5);
  EXPECT_EQ(median({}), 0.0);
}

TEST(Statistics, QuantileIsLinearBetweenNeighbours) {
  const std::vector<double> values = {1, 2, 4, 8};  // numpy.quantile(values, 0.3) = 1.9
  EXPECT_DOUBLE_EQ(quantile(values, 0.3), 1.9);
  EXPECT_DOUBLE_EQ(quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(values, 1), 8);
}

TEST(Statistics, BinomialCdf) {
  EXPECT_NEAR(binomial_half_cdf(5, 20), 0.020694732666015625,
              1e-12);  // scipy.stats.binom.cdf(5, 20, 0.5)
  EXPECT_NEAR(binomial_half_cdf(480, 1000), 0.1087244, 1e-6);
  EXPECT_EQ(binomial_half_cdf(-1, 5), 0);
  EXPECT_EQ(binomial_half_cdf(5, 5), 1);
}

// scipy.stats.quantile_test(range(1, n + 1), p=0.5).confidence_interval(0.95)
TEST(Statistics, MedianIntervalByOrderStatistics) {
  EXPECT_EQ(median_interval(first(10)), (Interval{2, 9}));
  EXPECT_EQ(median_interval(first(20)), (Interval{6, 15}));
  EXPECT_EQ(median_interval(first(100)), (Interval{40, 61}));
  EXPECT_EQ(median_interval(first(1000)), (Interval{469, 532}));
}

TEST(Statistics, IntervalOfFewSamplesIsTheirRange) {
  EXPECT_EQ(median_interval(first(5)), (Interval{1, 5}));
  EXPECT_EQ(median_interval(first(1)), (Interval{1, 1}));
}

TEST(Statistics, IntervalOfManySamplesIsQuick) {
  const Interval interval = median_interval(first(200000));
  EXPECT_NEAR(interval.low, 100000 - 1.96 * std::sqrt(200000) / 2, 3);
  EXPECT_NEAR(interval.high, 100000 + 1.96 * std::sqrt(200000) / 2, 3);
}

TEST(Statistics, TukeyLabels) {
  const std::vector<double> values = {10, 10, 11, 11, 12, 12, 13, 13, 16.2, 40};
  const Outliers found = tukey(values);
  EXPECT_EQ(found.low, 0);
  EXPECT_EQ(found.high, 2);
  EXPECT_EQ(found.far, 1);
}

TEST(Statistics, PairedRatioSeesWhatDriftHides) {
  // B is 3 % slower, and both become 50 % slower over the run.
  std::vector<double> a, b;
  for (int i = 0; i < 200; ++i) {
    const double drifting = 100 * (1 + 0.5 * i / 200);
    a.push_back(drifting * (1 + 0.002 * std::sin(i * 7.0)));
    b.push_back(1.03 * drifting * (1 + 0.002 * std::sin(i * 11.0)));
  }
  const Ratio paired = paired_ratio(b, a);
  EXPECT_NEAR(paired.value, 1.03, 0.001);
  EXPECT_GT(paired.interval.low, 1.028);
  EXPECT_LT(paired.interval.high, 1.032);
  EXPECT_LT(unpaired_ratio(b, a).interval.low, 1.0);
}

TEST(Statistics, NeighboursThatAreAlikeWidenTheInterval) {
  // Twenty runs of ten equal pairs each: twenty values, not two hundred.
  std::vector<double> a, b(200, 100.0);
  for (int i = 0; i < 200; ++i) a.push_back(100 + std::sin(i / 10 * 2.4));
  const Interval alone = paired_ratio(a, b).interval,
                 together = paired_ratio(a, b, 0, 1000, 0.95, 10).interval;
  EXPECT_GT(together.high - together.low, 1.5 * (alone.high - alone.low));
  EXPECT_EQ(neighbours(1), 1u);
  EXPECT_EQ(neighbours(1000), 10u);
}

TEST(Statistics, TrimmedMean) {
  EXPECT_DOUBLE_EQ(trimmed_mean(first(10)), 5.5);
  // scipy.stats.trim_mean([1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 200], 0.1)
  EXPECT_DOUBLE_EQ(trimmed_mean(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8, 9, 100, 200}), 16.0);
}

TEST(Statistics, TwoModes) {
  const auto heaps = [](double share) {
    std::vector<double> values;
    for (int i = 0; i < 400; ++i)
      values.push_back((i < share * 400 ? 51.3 : 52.8) + 0.2 * std::sin(i * 12.9898));
    return sorted(values);
  };
  EXPECT_TRUE(has_two_modes(heaps(0.5)));
  EXPECT_TRUE(has_two_modes(heaps(0.53)));
  EXPECT_FALSE(has_two_modes(heaps(0.8)));  // the median is well inside of one
  EXPECT_FALSE(has_two_modes(heaps(1.0)));
}

TEST(Statistics, RatioOfOneSeedIsTheSameEverywhere) {
  const std::vector<double> a = {1, 2, 3, 4, 5}, b = {2, 2, 2, 2, 2};
  EXPECT_EQ(paired_ratio(a, b, 7).interval, paired_ratio(a, b, 7).interval);
  EXPECT_EQ(paired_ratio(a, b, 7).value, 1.5);
}

TEST(Statistics, DriftIsARankCorrelation) {
  EXPECT_DOUBLE_EQ(drift(first(10)), 1.0);
  EXPECT_NEAR(drift(std::vector{1.0, 3.0, 2.0, 5.0, 4.0}), 0.8, 1e-12);  // scipy.stats.spearmanr
  EXPECT_EQ(drift(std::vector{2.0, 2.0, 2.0}), 0);
}

TEST(Statistics, Summary) {
  const Summary s = summarise(first(101));
  EXPECT_EQ(s.median, 51);
  EXPECT_EQ(s.p05, 6);
  EXPECT_EQ(s.p95, 96);
  EXPECT_EQ(s.mean, 51);
  EXPECT_EQ(s.least, 1);
  EXPECT_EQ(s.greatest, 101);
}

}  // namespace
}  // namespace kiln::measure
