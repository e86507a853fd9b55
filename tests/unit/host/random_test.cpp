// SPDX-License-Identifier: Apache-2.0
// Are the random numbers what they say: the same everywhere, uniform, normal?
#include "host/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace kiln::host {
namespace {

double normal_distribution(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }

// These numbers are the contract with every other machine.
TEST(Random, TheSameOnEveryMachine) {
  EXPECT_EQ(random_bits(0, 0), 0xa706dd2f4d197e6fu);
  EXPECT_EQ(random_bits(1, 2), 0xb95f66d327e8d78u);
  // Centre, middle and tail.
  EXPECT_EQ(normal(random_bits(0, 0)), 0x1.91588c88ea018p-2);
  EXPECT_EQ(normal(random_bits(0, 20)), 0x1.059277633cdcep+1);
  EXPECT_EQ(normal(0), -0x1.06b48528cea51p+3);
}

TEST(Random, NormalInvertsItsDistribution) {
  for (int i = 1; i < 4096; ++i) {
    const uint64_t random = static_cast<uint64_t>(i) << 52;
    const double probability = (static_cast<double>(random >> 12) + 0.5) * 0x1p-52;
    EXPECT_NEAR(normal_distribution(normal(random)) / probability, 1.0, 1e-13) << i;
  }
  // The far tail, where the third pair of polynomials works.
  for (int shift = 13; shift < 60; ++shift) {
    const uint64_t random = uint64_t{1} << shift;
    const double probability = (static_cast<double>(random >> 12) + 0.5) * 0x1p-52;
    EXPECT_NEAR(normal_distribution(normal(random)) / probability, 1.0, 1e-12) << shift;
  }
}

TEST(Random, NormalIsSymmetric) {
  for (uint64_t random : {uint64_t{0}, uint64_t{1} << 20, uint64_t{0x123456789abcdef}})
    EXPECT_NEAR(normal(random), -normal(~random), 1e-9 * std::fabs(normal(random)));
}

TEST(Random, MomentsOfAMillion) {
  constexpr int kCount = 1000000;
  double sum = 0, squares = 0, fourth = 0, lag = 0, previous = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = normal(random_bits(7, static_cast<uint64_t>(i)));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
    lag += x * previous;
    previous = x;
  }
  // Five standard errors each.
  EXPECT_NEAR(sum / kCount, 0, 5e-3);
  EXPECT_NEAR(squares / kCount, 1, 5 * 1.42e-3);
  EXPECT_NEAR(fourth / kCount, 3, 5 * 9.8e-3);
  EXPECT_NEAR(lag / kCount, 0, 5e-3);
}

TEST(Random, UniformStaysBelowOneInItsFormat) {
  EXPECT_LT(uniform(~uint64_t{0}, 53), 1.0);
  EXPECT_LT(static_cast<float>(uniform(~uint64_t{0}, 24)), 1.0f);
  EXPECT_EQ(uniform(0, 24), 0.0);
  std::vector<int> buckets(16);
  for (uint64_t i = 0; i < 160000; ++i)
    ++buckets[static_cast<size_t>(uniform(random_bits(3, i), 24) * 16)];
  double chi_squared = 0;
  for (int count : buckets) chi_squared += (count - 10000.0) * (count - 10000.0) / 10000.0;
  EXPECT_LT(chi_squared, 44.3);  // 15 degrees of freedom, p = 1e-4
}

TEST(Random, IntegersCoverTheirRangeAndNoMore) {
  std::vector<int> seen(10);
  for (uint64_t i = 0; i < 1000; ++i) {
    const int64_t value = random_integer(random_bits(1, i), -5, 5);
    ASSERT_GE(value, -5);
    ASSERT_LT(value, 5);
    ++seen[static_cast<size_t>(value + 5)];
  }
  for (int count : seen) EXPECT_GT(count, 50);
  EXPECT_EQ(random_integer(~uint64_t{0}, INT64_MIN, INT64_MAX), INT64_MAX - 1);
  EXPECT_EQ(random_integer(0, INT64_MIN, INT64_MAX), INT64_MIN);
}

TEST(Random, ArgumentsOfOneCallDiffer) {
  EXPECT_NE(seed_for_argument(0, 0), seed_for_argument(0, 1));
  EXPECT_NE(seed_for_argument(0, 1), seed_for_argument(1, 0));
}

}  // namespace
}  // namespace kiln::host
