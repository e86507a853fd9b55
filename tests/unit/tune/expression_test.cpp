// SPDX-License-Identifier: Apache-2.0
// Are constraints read and evaluated as C would?
#include "tune/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::tune {
namespace {

Result<int64_t> evaluate(std::string_view text) {
  TRY(const Expression expression, Expression::parse(text));
  return expression.value([](std::string_view name) -> std::optional<int64_t> {
    if (name == "M") return 128;
    if (name == "WARPS") return 4;
    return std::nullopt;
  });
}
std::string why(std::string_view text) {
  const Result<int64_t> value = evaluate(text);
  return value ? "it has a value" : value.error().why;
}

TEST(Expression, AsInC) {
  const std::pair<std::string_view, int64_t> cases[] = {
      {"1 + 2 * 3", 7},
      {"(1 + 2) * 3", 9},
      {"7 - 2 - 1", 4},
      {"100 / 7 % 4", 2},
      {"M % (16*WARPS)==0", 1},
      {"M<128||WARPS>=4", 1},
      {"M<128 && 1 / 0", 0},
      {"1 || 1 / 0", 1},
      {"!M", 0},
      {"!!M", 1},
      {"-M + 130", 2},
      {"- -3", 3},
      {"min(M, 7, WARPS)", 4},
      {"max(1, M) != M", 0},
      {"1 < 2 == 1", 1},
      {"-7 / 2", -3},
      {"-7 % 2", -1},
      {"2 <= 1", 0},
      {"3 > 2", 1},
      {"9223372036854775807", INT64_MAX},
  };
  for (const auto& [text, expected] : cases) {
    const Result<int64_t> value = evaluate(text);
    ASSERT_TRUE(value) << text << ": " << value.error().why;
    EXPECT_EQ(*value, expected) << text;
  }
}

TEST(Expression, MistakesHaveAColumn) {
  EXPECT_EQ(why("M %"), "column 4: got the end, expected a number, a name or '('");
  EXPECT_EQ(why("(M + 1"), "column 7: got the end, expected ')'");
  EXPECT_EQ(why("M 3"), "column 3: got '3', expected an operator or the end");
  EXPECT_EQ(why("log(M)"),
            "column 1: got 'log(M)', expected min or max (there are no other functions)");
  EXPECT_EQ(why("99999999999999999999"),
            "column 1: got '999999999999', expected a number of at most 63 bits");
  EXPECT_EQ(why(""), "column 1: got the end, expected a number, a name or '('");
  EXPECT_EQ(why("12abc"), "column 1: got '12abc', expected a number of at most 63 bits");
}

TEST(Expression, WhatHasNoValue) {
  EXPECT_EQ(why("N + 1"), "N does not have an integer value");
  EXPECT_EQ(why("1 / (M - 128)"), "a division by zero");
  EXPECT_EQ(why("9223372036854775807 + 1"), "a number of more than 63 bits");
  EXPECT_EQ(why("(-9223372036854775807 - 1) / -1"), "a number of more than 63 bits");
  EXPECT_EQ(*evaluate("(-9223372036854775807 - 1) % -1"), 0);
}

TEST(Expression, DepthIsBounded) {
  EXPECT_FALSE(Expression::parse(std::string(100000, '(')));
  EXPECT_FALSE(Expression::parse(std::string(100000, '!')));
  EXPECT_FALSE(Expression::parse(std::string(100000, '-')));
}

TEST(Expression, AChainWithoutParenthesesIsBoundedToo) {
  const auto chain = [](int count) {
    std::string text = "1";
    for (int i = 1; i < count; ++i) text += "+1";
    return text;
  };
  EXPECT_EQ(*evaluate(chain(900)), 900);
  for (int count : {2000, 1'000'000}) EXPECT_FALSE(Expression::parse(chain(count)));
  for (int depth : {150, 5000}) {
    const std::string nested = std::string(static_cast<size_t>(depth), '(') + "1" +
                               std::string(static_cast<size_t>(depth), ')');
    EXPECT_EQ(static_cast<bool>(Expression::parse(nested)), depth < 200);
  }
  std::string calls = "1";
  for (int i = 0; i < 500; ++i) calls = "max(" + calls + ",2)";
  EXPECT_FALSE(Expression::parse(calls));
}

TEST(Expression, Names) {
  EXPECT_THAT(Expression::parse("M % WARPS == M + min(A, WARPS)")->names(),
              testing::ElementsAre("M", "WARPS", "A"));
}

}  // namespace
}  // namespace kiln::tune
