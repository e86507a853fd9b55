// SPDX-License-Identifier: Apache-2.0
// Is a tensor shown and compared as it is?
#include "host/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/json.h"
#include "host/generate.h"
#include "host/summary.h"

namespace kiln::host {
namespace {

Array made(const std::string& text) {
  Result<TensorSpec> spec = parse_tensor_spec(text);
  EXPECT_TRUE(spec) << (spec ? "" : format(spec.error()));
  return *make_array(*spec, 0);
}

void set(Array& array, int64_t at, double value) {
  const DType& type = array.type();
  store_number(type, array.storage.data() + static_cast<size_t>(at) * type.bytes, value);
}

Comparison compared(const Array& seen, const Array& wanted) {
  return compare(seen, wanted, tolerance_for(seen, wanted, std::nullopt, std::nullopt));
}

TEST(Compare, EqualWithinTheToleranceOfTheDtype) {
  EXPECT_TRUE(compared(made("full=1:f32:4"), made("full=1.00001:f32:4")).equal);
  EXPECT_FALSE(compared(made("full=1:f32:4"), made("full=1.0001:f32:4")).equal);
  EXPECT_TRUE(compared(made("full=1:bf16:4"), made("full=1.01:f32:4")).equal);
  EXPECT_FALSE(compared(made("full=1:f64:4"), made("full=1.00001:f64:4")).equal);
  EXPECT_FALSE(compared(made("full=1:i64:4"), made("full=2:i64:4")).equal);
}

TEST(Compare, FirstMismatchHasItsCoordinateWhateverTheStrides) {
  Array wanted = made("arange:f32:2x3");
  const Array seen = made("arange:f32:2x3:t");
  EXPECT_TRUE(compared(seen, wanted).equal);
  set(wanted, 5, 5.5);
  set(wanted, 4, 8);
  const Comparison result = compared(seen, wanted);
  EXPECT_EQ(result.mismatches, 2);
  EXPECT_EQ(result.count, 6);
  EXPECT_EQ(coordinate_text(result.first), "(1, 1)");
  EXPECT_EQ(result.first_seen, "4");
  EXPECT_EQ(result.first_wanted, "8");
  EXPECT_EQ(result.max_absolute, 4);
  EXPECT_EQ(result.max_relative, 0.5);
}

TEST(Compare, NanAndInfinity) {
  EXPECT_TRUE(compared(made("full=nan:f32:1"), made("full=nan:f32:1")).equal);
  EXPECT_FALSE(compared(made("full=nan:f32:1"), made("full=1:f32:1")).equal);
  EXPECT_FALSE(compared(made("full=1:f32:1"), made("full=nan:f32:1")).equal);
  EXPECT_TRUE(compared(made("full=inf:f32:1"), made("full=inf:f32:1")).equal);
  EXPECT_FALSE(compared(made("full=inf:f32:1"), made("full=-inf:f32:1")).equal);
  EXPECT_FALSE(compared(made("full=1e30:f32:1"), made("full=inf:f32:1")).equal);
}

TEST(Compare, LargeIntegersExactly) {
  const Comparison result =
      compared(made("full=9007199254740993:i64:1"), made("full=9007199254740992:i64:1"));
  EXPECT_FALSE(result.equal);
  EXPECT_EQ(result.max_absolute, 1);
  EXPECT_EQ(result.first_seen, "9007199254740993");
  EXPECT_FALSE(compared(made("full=-1:i64:1"), made("full=18446744073709551615:u64:1")).equal);
}

TEST(Compare, ShapesAndKindsMustAgree) {
  EXPECT_EQ(compared(made("ones:f32:4x5"), made("ones:f32:5x4")).unlike,
            "got shape 4x5, expected 5x4");
  EXPECT_EQ(compared(made("ones:f32:scalar"), made("ones:f32:1")).unlike,
            "got shape scalar, expected 1");
  EXPECT_EQ(compared(made("ones:f32:4"), made("ones:i32:4")).unlike, "got dtype f32, expected i32");
  const Comparison wider = compared(made("ones:f32:4"), made("ones:f64:4"));
  EXPECT_TRUE(wider.equal);
  EXPECT_EQ(wider.note, "compared f32 with f64");
}

TEST(Compare, UnsignedIntegersStandForTheBitsOfBf16) {
  const Comparison result = compared(made("ones:bf16:4"), made("full=0x3f80:u16:4"));
  EXPECT_TRUE(result.equal);
  EXPECT_EQ(result.note, "the expected u16 are read as the bits of bf16");
}

Array array_of(const DType& type, const Json& values) {
  Array array = made("zeros:" + std::string(type.name) + ":" + std::to_string(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    uint8_t* at = array.storage.data() + i * type.bytes;
    if (is_integral(type.kind))
      store_integer(type, at, values[i].get<uint64_t>());
    else
      store_number(type, at,
                   values[i].is_string() ? *parse_float(values[i].get<std::string>())
                                         : values[i].get<double>());
  }
  return array;
}

std::optional<double> given(const Json& from, const char* name) {
  return from.contains(name) ? std::optional<double>(from.at(name).get<double>()) : std::nullopt;
}

// tests/python/test_one_rule.py compares the same cases by kiln.test's way.
TEST(Compare, ResultsAreRightAsTheSharedCasesSay) {
  std::ifstream file(KILN_TEST_DATA "/unit/host/tolerance_cases.json");
  const Json cases = Json::parse(file);
  EXPECT_GT(cases.size(), 25u);
  for (const Json& one : cases) {
    const DType& type = *find_dtype(one.at("dtype").get<std::string>());
    const Array seen = array_of(type, one.at("seen")), wanted = array_of(type, one.at("wanted"));
    const Tolerance tolerance = tolerance_for(seen, wanted, given(one, "rtol"), given(one, "atol"));
    EXPECT_EQ(compare(seen, wanted, tolerance).equal, one.at("right").get<bool>())
        << one.at("why") << ": rtol " << tolerance.rtol << ", atol " << tolerance.atol;
  }
}

TEST(Compare, TheScaleOfBitsIsThatOfTheirValues) {
  // 0x4120 is 10 in bf16; as a number it would be 16672, and so would the tolerance.
  const Array seen = made("full=10:bf16:4"), wanted = made("full=0x4120:u16:4");
  const Tolerance tolerance = tolerance_for(seen, wanted, std::nullopt, std::nullopt);
  EXPECT_DOUBLE_EQ(tolerance.atol, 10 * tolerance.rtol);
}

TEST(Summarise, CountsAndRange) {
  Array array = made("arange=-1:f32:2x4:t");
  set(array, 7, NAN);
  set(array, 6, -INFINITY);
  const Summary summary = summarise(array);
  EXPECT_EQ(summary.count, 8);
  EXPECT_EQ(summary.nan_count, 1);
  EXPECT_EQ(summary.infinite_count, 1);
  EXPECT_TRUE(summary.has_range);
  EXPECT_EQ(summary.least.number.real(), -1);
  EXPECT_EQ(summary.greatest.number.real(), 5);
  EXPECT_DOUBLE_EQ(summary.mean.real(), (-1 + 0 + 1 + 3 + 4 + 5) / 6.0);
}

TEST(Summarise, IntegersExactly) {
  const Summary summary = summarise(made("arange=9223372036854775806:i64:2"));
  EXPECT_EQ(static_cast<int64_t>(summary.least.integer), INT64_MAX - 1);
  EXPECT_EQ(static_cast<int64_t>(summary.greatest.integer), INT64_MAX);
  EXPECT_EQ(static_cast<int64_t>(summarise(made("arange=-5:i8:10")).least.integer), -5);
}

TEST(Summarise, WithoutFiniteElements) {
  EXPECT_FALSE(summarise(made("zeros:f32:0")).has_range);
  EXPECT_FALSE(summarise(made("empty:f32:3")).has_range);
  EXPECT_FALSE(summarise(made("ones:c64:3")).has_range);
  EXPECT_EQ(summarise(made("full=1,2:c64:3")).mean, (std::complex<double>{1, 2}));
}

TEST(Elements, LikeNumpy) {
  EXPECT_EQ(elements_text(made("arange:i64:5"), 3, ""), "[0 1 2 3 4]");
  EXPECT_EQ(elements_text(made("arange:i64:100"), 3, ""), "[0 1 2 ... 97 98 99]");
  EXPECT_EQ(elements_text(made("arange:i64:100"), 1, ""), "[0 ... 99]");
  EXPECT_EQ(elements_text(made("arange:i64:20x20"), 1, "  "),
            "[[0 ... 19]\n   ...\n   [380 ... 399]]");
  EXPECT_EQ(elements_text(made("full=0.5:f32:scalar"), 3, ""), "0.5");
  EXPECT_EQ(elements_text(made("zeros:f32:3x0"), 3, ""), "[]");
  EXPECT_EQ(elements_text(made("arange:i64:100"), 0, ""), "[...]");
}

}  // namespace
}  // namespace kiln::host
