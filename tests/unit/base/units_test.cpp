// SPDX-License-Identifier: Apache-2.0
// Are times, sizes and rates written in three digits, also at the edges of their units?
#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace kiln {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                 kInfinite = std::numeric_limits<double>::infinity();

TEST(Units, TimesHaveThreeDigits) {
  EXPECT_EQ(time_text(1), "1 ns");
  EXPECT_EQ(time_text(7263), "7.26 us");
  EXPECT_EQ(time_text(53212e3), "53.2 ms");
  EXPECT_EQ(time_text(185.4e9), "185 s");
}

TEST(Units, TimesAtTheEdges) {
  EXPECT_EQ(time_text(0), "0 ns");
  EXPECT_EQ(time_text(-0.3), "0 ns");
  EXPECT_EQ(time_text(1e-9), "0 ns");
  EXPECT_EQ(time_text(-1500), "-1.50 us");
  EXPECT_EQ(time_text(1e12), "1000 s");
  EXPECT_EQ(time_text(kNan), "-");
  EXPECT_EQ(time_text(kInfinite), "-");
  EXPECT_EQ(time_text(-kInfinite), "-");
}

TEST(Units, ARoundedNumberTakesTheUnitItBelongsTo) {
  EXPECT_EQ(time_text(999.4), "999 ns");
  EXPECT_EQ(time_text(999.6), "1.00 us");
  EXPECT_EQ(time_text(9996), "10.0 us");
  EXPECT_EQ(time_text(99960), "100 us");
  EXPECT_EQ(time_text(999600), "1.00 ms");
}

TEST(Units, SizesCountInTensForFilesAndInTwosForAGpu) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1000), "1.00 KB");
  EXPECT_EQ(bytes_text(49152), "49.2 KB");
  EXPECT_EQ(bytes_text(1e12), "1000 GB");
  EXPECT_EQ(bytes_text(kNan), "-");
  EXPECT_EQ(memory_text(0), "0 bytes");
  EXPECT_EQ(memory_text(1023), "1023 bytes");
  EXPECT_EQ(memory_text(49152), "48.0 KiB");
  EXPECT_EQ(memory_text(192 << 20), "192 MiB");
  EXPECT_EQ(memory_text(-2048), "-2.00 KiB");
}

TEST(Units, RatesAndCounts) {
  EXPECT_EQ(rate_text(3903.2), "3903 GB/s");
  EXPECT_EQ(rate_text(0), "0.00 GB/s");
  EXPECT_EQ(rate_text(kNan), "-");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(std::numeric_limits<uint64_t>::max()), "18,446,744,073,709,551,615");
}

}  // namespace
}  // namespace kiln
