// SPDX-License-Identifier: Apache-2.0
// Does an error read as it should, for people and for programs?
#include "base/result.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace kiln {
namespace {

TEST(Format, LeavesOutWhatIsEmpty) {
  EXPECT_EQ(format({Fault::Work, "cannot load a.so", "it is empty", "build it"}),
            "error: cannot load a.so\n  why: it is empty\n  fix: build it");
  EXPECT_EQ(format({Fault::Work, "cannot load a.so", "", ""}), "error: cannot load a.so");
}

TEST(Format, KeepsCaretsUnderWhatTheyMean) {
  EXPECT_EQ(format({Fault::Work, "x", "a = b;\n    ^", ""}),
            "error: x\n  why: a = b;\n           ^");
}

TEST(ToJson, HasAllFourFields) {
  EXPECT_EQ(dump(to_json({Fault::Environment, "a", "b", "c"})),
            R"({"error":{"what":"a","why":"b","fix":"c","fault":"environment"}})");
}

TEST(Dump, ReplacesBytesThatAreNoText) { EXPECT_EQ(dump(Json("a\xff")), "\"a\xef\xbf\xbd\""); }

TEST(ParseJson, NamesTheSourceOfWhatItCannotRead) {
  auto result = parse_json("{", "x.json");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().what, "cannot read x.json");
}

Result<int> half(int value) {
  if (value % 2) return Error{Fault::Usage, "odd", "", ""};
  return value / 2;
}
Result<int> quarter(int value) {
  TRY(int once, half(value));
  TRY(int twice, half(once));
  return twice;
}

TEST(Try, PassesTheFirstErrorOn) {
  EXPECT_EQ(*quarter(8), 2);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().what, "odd");
}

}  // namespace
}  // namespace kiln
