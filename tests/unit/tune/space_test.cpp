// SPDX-License-Identifier: Apache-2.0
// Does a space list what kiln.toml or the flags say, and refuse what makes no sense?
#include "tune/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::tune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Space example() {
  return *Space::from_json(
      Json::parse(R"({"M": [64, 128], "FAST": [true, false], "KIND": ["a", "b", "c"]})"),
      Json::parse(R"(["M == 64 || FAST"])"));
}

TEST(Space, NumbersAndPoints) {
  const Space space = example();
  ASSERT_EQ(space.size(), 12u);
  for (uint64_t number = 0; number < space.size(); number++)
    EXPECT_EQ(space.number(space.point(number)), number);
  EXPECT_THAT(space.defines(space.point(0)), ElementsAre("M=64", "FAST=1", "KIND=a"));
  EXPECT_EQ(space.text(space.point(11)), "M=128 FAST=0 KIND=c");
  EXPECT_EQ(*space.find({"KIND=c", "M=128", "FAST=0"}), space.point(11));
  EXPECT_FALSE(space.find({"KIND=d", "M=128", "FAST=0"}));
  EXPECT_FALSE(space.find({"M=128"}));
}

TEST(Space, Constraints) {
  const Space space = example();
  EXPECT_EQ(*space.forbidden_by(*space.find({"M=64", "FAST=0", "KIND=a"})), "");
  EXPECT_EQ(*space.forbidden_by(*space.find({"M=128", "FAST=0", "KIND=a"})), "M == 64 || FAST");
}

TEST(Space, Neighbours) {
  const Space space = example();
  EXPECT_THAT(space.neighbours({0, 0, 1}),
              ElementsAre(Point{1, 0, 1}, Point{0, 1, 1}, Point{0, 0, 0}, Point{0, 0, 2}));
}

TEST(Space, Flags) {
  const Space space = *Space::from_flags({"M=64, 128", "K=1"}, {"M > K"});
  EXPECT_EQ(space.size(), 2u);
  EXPECT_EQ(space.text({1, 0}), "M=128 K=1");
}

TEST(Space, Refusals) {
  const auto why = [](const char* axes, const char* constraints = "[]") {
    const Result<Space> space = Space::from_json(Json::parse(axes), Json::parse(constraints));
    return space ? "accepted" : space.error().why;
  };
  EXPECT_EQ(why("{}"), "it has no axis");
  EXPECT_EQ(why("[]"), "vary is not a table of defines and their values");
  EXPECT_EQ(why(R"({"M": 3})"), "M is not a list of values");
  EXPECT_EQ(why(R"({"M": []})"), "the axis M has no values");
  EXPECT_EQ(why(R"({"M": [1.5]})"),
            "M has the value 1.5; a value must be an integer, a string, true or false");
  EXPECT_EQ(why(R"({"M": [1, 1]})"), "M has the value 1 twice");
  EXPECT_EQ(why(R"({"a b": [1]})"), "'a b' cannot be the name of a define");
  EXPECT_EQ(why(R"({"BLOCK": [1]})", R"(["BLOK > 1"])"),
            "the constraint \"BLOK > 1\" names BLOK, which is not an axis; did you mean BLOCK?");
  EXPECT_THAT(why(R"({"M": [1]})", R"(["M >"])"), HasSubstr("column 4"));
  EXPECT_EQ(Space::from_flags({"M=1", "M=2"}, {}).error().why, "the axis M is given twice");
  EXPECT_EQ(Space::from_flags({"M"}, {}).error().why,
            "'M' does not have the form NAME=VALUE,VALUE");
  EXPECT_EQ(Space::from_flags({"M=1,"}, {}).error().why, "the axis M has an empty value");
}

TEST(Space, ATextInAConstraintIsAnError) {
  const Space space = *Space::from_flags({"KIND=a,b"}, {"KIND == 1"});
  EXPECT_EQ(space.forbidden_by({0}).error().why, "KIND does not have an integer value");
}

TEST(Space, LargeSizesSaturate) {
  std::vector<std::string> axes;
  for (int i = 0; i < 70; i++) axes.push_back("A" + std::to_string(i) + "=1,2,3");
  EXPECT_EQ(Space::from_flags(axes, {})->size(), static_cast<uint64_t>(INT64_MAX));
}

}  // namespace
}  // namespace kiln::tune
