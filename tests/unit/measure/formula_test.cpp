// SPDX-License-Identifier: Apache-2.0
// Are formulas, axes and their combinations read as they are meant?
#include "measure/formula.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::measure {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Values kValues = {{"n", "2^20"}, {"t", "bf16"}, {"x", "0.5"}};

double value(std::string_view formula) {
  const auto result = evaluate(formula, kValues);
  EXPECT_TRUE(result) << formula << ": " << (result ? "" : result.error().why);
  return result ? *result : -1;
}

TEST(Formula, Values) {
  EXPECT_EQ(value("3 * n * size(t)"), 3.0 * (1 << 20) * 2);
  EXPECT_EQ(value("2^3^2"), 512);
  EXPECT_EQ(value("2 ** 4 - -1"), 17);
  EXPECT_EQ(value("(1 + 2) * 3 / 2"), 4.5);
  EXPECT_EQ(value("size(f32)"), 4);
  EXPECT_EQ(value("x*1e3"), 500);
}

TEST(Formula, Mistakes) {
  const auto why = [](std::string_view formula) {
    const auto result = evaluate(formula, kValues);
    return result ? std::string("no error") : result.error().why;
  };
  EXPECT_EQ(why("3 * m"), "there is no axis 'm'");
  EXPECT_EQ(why("(1 + 2"), "a ')' is missing");
  EXPECT_EQ(why("1 +"), "it ends too early");
  EXPECT_EQ(why(""), "it ends too early");
  EXPECT_EQ(why("t * 2"), "the axis t is 'bf16', which is not a number");
  EXPECT_EQ(why("size(n)"), "unknown dtype '2^20'");
  EXPECT_EQ(why("1 / 0"), "it is not a finite number");
  EXPECT_EQ(why("1 ; 2"), "unexpected '; 2'");
  EXPECT_EQ(why(std::string(1000, '(')), "it is nested too deeply");
}

TEST(Axis, IsParsed) {
  const auto axis = parse_axis("n=2^20, 2^24");
  ASSERT_TRUE(axis);
  EXPECT_EQ(axis->name, "n");
  EXPECT_THAT(axis->values, ElementsAre("2^20", "2^24"));
  EXPECT_FALSE(axis->is_define);
  EXPECT_TRUE(parse_axis("D:BLOCK=128,256")->is_define);
  for (const char* wrong : {"n", "n=", "=1", "n=1,,2", "3=4"})
    EXPECT_FALSE(parse_axis(wrong)) << wrong;
}

TEST(Axis, CombinationsTakeEachWithEach) {
  const std::vector<Values> all =
      combinations({{"a", {"1", "2"}, false}, {"b", {"x", "y"}, false}});
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[1], (Values{{"a", "1"}, {"b", "y"}}));
  EXPECT_EQ(combinations({}).size(), 1u);
}

TEST(Axis, Substitution) {
  EXPECT_EQ(*substitute("randn:{t}:{n}x4", kValues), "randn:bf16:2^20x4");
  EXPECT_EQ(*substitute("plain", kValues), "plain");
  EXPECT_THAT(substitute("{m}", kValues).error().why, HasSubstr("no axis 'm'"));
  EXPECT_FALSE(substitute("{n", kValues));
}

}  // namespace
}  // namespace kiln::measure
