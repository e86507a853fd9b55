// SPDX-License-Identifier: Apache-2.0
// Are 16-bit and 8-bit floats rounded once, to nearest even, and read back exactly?
#include "host/small_float.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace kiln::host {
namespace {

struct Format {
  const char* name;
  SmallFloat format;
};
const Format kFormats[] = {
    {"f16", kF16}, {"bf16", kBF16}, {"f8e5m2", kF8E5M2}, {"f8e4m3", kF8E4M3}};

unsigned code_count(SmallFloat format) {
  return 1u << (1 + format.exponent_bits + format.mantissa_bits);
}

TEST(SmallFloat, EveryCodeComesBack) {
  for (const Format& row : kFormats)
    for (unsigned bits = 0; bits < code_count(row.format); ++bits) {
      const double value = decode(row.format, static_cast<uint16_t>(bits));
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(row.format, encode(row.format, value)))) << row.name;
        continue;
      }
      ASSERT_EQ(encode(row.format, value), bits) << row.name << " " << value;
    }
}

// The definition of round-to-nearest-even, checked against every pair of neighbours of every
// format.
TEST(SmallFloat, BetweenNeighboursTheNearerOneAndOnATieTheEvenOne) {
  for (const Format& row : kFormats)
    for (unsigned bits = 0; bits + 1 < code_count(row.format) / 2; ++bits) {
      const double low = decode(row.format, static_cast<uint16_t>(bits));
      const double high = decode(row.format, static_cast<uint16_t>(bits + 1));
      if (!std::isfinite(low) || !std::isfinite(high)) break;
      const double middle = low + (high - low) / 2;
      ASSERT_EQ(encode(row.format, middle), bits & 1 ? bits + 1 : bits)
          << row.name << " " << middle;
      ASSERT_EQ(encode(row.format, std::nextafter(middle, low)), bits) << row.name << " " << middle;
      ASSERT_EQ(encode(row.format, std::nextafter(middle, high)), bits + 1)
          << row.name << " " << middle;
      ASSERT_EQ(encode(row.format, -middle) & (code_count(row.format) / 2 - 1),
                bits & 1 ? bits + 1 : bits);
    }
}

TEST(SmallFloat, KnownCodes) {
  EXPECT_EQ(encode(kF16, 1.0), 0x3c00);
  EXPECT_EQ(encode(kF16, 65504.0), 0x7bff);
  EXPECT_EQ(encode(kF16, 0x1p-24), 0x0001);
  EXPECT_EQ(encode(kF16, -0.0), 0x8000);
  EXPECT_EQ(encode(kBF16, 1.0), 0x3f80);
  EXPECT_EQ(encode(kBF16, 3.140625), 0x4049);
  EXPECT_EQ(encode(kF8E4M3, 448.0), 0x7e);
  EXPECT_EQ(encode(kF8E4M3, 0x1p-9), 0x01);
  EXPECT_EQ(encode(kF8E5M2, 57344.0), 0x7b);
  EXPECT_EQ(encode(kF8E5M2, 1.0), 0x3c);
}

TEST(SmallFloat, BeyondTheLargest) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(encode(kF16, 65519.999), 0x7bff);
  EXPECT_EQ(encode(kF16, 65520.0), 0x7c00);
  EXPECT_EQ(encode(kF16, 1e300), 0x7c00);
  EXPECT_EQ(encode(kF16, -infinity), 0xfc00);
  EXPECT_EQ(encode(kBF16, 3.4e38), 0x7f80);
  EXPECT_EQ(encode(kF8E5M2, 61440.0), 0x7c);
  // e4m3fn has no infinity: 464 is the tie between 448 and the code of NaN.
  EXPECT_EQ(encode(kF8E4M3, 464.0), 0x7e);
  EXPECT_EQ(encode(kF8E4M3, 464.001), 0x7f);
  EXPECT_EQ(encode(kF8E4M3, infinity), 0x7f);
  EXPECT_EQ(encode(kF8E4M3, -1e9), 0xff);
}

// By way of float this number would first round to a tie, then to the wrong side.
TEST(SmallFloat, RoundsOnceFromDouble) {
  const double just_above_tie = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(encode(kF16, just_above_tie), 0x3c01);
  EXPECT_EQ(encode(kF16, static_cast<double>(static_cast<float>(just_above_tie))), 0x3c00);
}

// bf16 is the upper half of a float: an independent way to the same rounding.
TEST(SmallFloat, Bf16AgreesWithTheFloatTrick) {
  for (uint64_t i = 0; i < 200000; ++i) {
    const auto bits = static_cast<uint32_t>(i * 2654435761u);
    const float value = std::bit_cast<float>(bits);
    if (!std::isfinite(value) || std::fabs(value) < 1e-37f) continue;
    const uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
    ASSERT_EQ(encode(kBF16, value), rounded >> 16) << value;
  }
}

}  // namespace
}  // namespace kiln::host
