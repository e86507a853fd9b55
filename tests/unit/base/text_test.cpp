// SPDX-License-Identifier: Apache-2.0
// Do the operations on text hold at their edges?
#include "base/text.h"

#include <gmock/gmock.h>

namespace kiln::text {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Text, TrimsBlanksOfBothEnds) {
  EXPECT_EQ(trim("  a b\t\n"), "a b");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(Text, SplitKeepsEmptyPartsAndSplitAnyDoesNot) {
  EXPECT_THAT(split("a;;b", ';'), ElementsAre("a", "", "b"));
  EXPECT_THAT(split("", ';'), ElementsAre(""));
  EXPECT_THAT(split_any(" a, b;", " ,;"), ElementsAre("a", "b"));
  EXPECT_THAT(split_any("", ";"), IsEmpty());
}

TEST(Text, LastNewlineEndsALineAndBeginsNone) {
  EXPECT_THAT(lines("a\nb\n"), ElementsAre("a", "b"));
  EXPECT_THAT(lines("a\n\nb"), ElementsAre("a", "", "b"));
  EXPECT_THAT(lines(""), IsEmpty());
}

TEST(Text, ReplacesEachOnceAndNotItsOwnResult) {
  EXPECT_EQ(replace_all("aaa", "a", "aa"), "aaaaaa");
  EXPECT_EQ(replace_all("abc", "", "x"), "abc");
}

TEST(Text, NumbersAreTheWholeText) {
  EXPECT_EQ(to_int("-12"), -12);
  EXPECT_EQ(to_int("12x"), std::nullopt);
  EXPECT_EQ(to_int(""), std::nullopt);
  EXPECT_EQ(to_int("99999999999999999999"), std::nullopt);
}

TEST(Text, AnIdentifierIsNoKeywordOfCppOrPython) {
  EXPECT_TRUE(is_identifier("my_add2"));
  for (const char* bad : {"", "2d", "a-b", "class", "lambda", "ä"})
    EXPECT_FALSE(is_identifier(bad)) << bad;
}

TEST(Text, MakesAnIdentifierOfAnything) {
  EXPECT_EQ(to_identifier("my-add 2"), "my_add_2");
  EXPECT_EQ(to_identifier("3d"), "_3d");
  EXPECT_EQ(to_identifier("class"), "_class");
  for (const char* any : {"", "a.b", "ü", "for"})
    EXPECT_TRUE(is_identifier(to_identifier(any))) << any;
}

TEST(Text, SuggestsOnlyWhatIsNear) {
  std::vector<std::string> names = {"build", "call", "sources"};
  EXPECT_EQ(closest("buld", names), "build");
  EXPECT_EQ(closest("source", names), "sources");
  EXPECT_EQ(closest("zzz", names), std::nullopt);
}

TEST(Text, ShellQuoteAndSplitAreInverse) {
  for (std::string word : {"a", "", "a b", "it's", "$HOME", "-DX=\"y\"", "a\\b", "[sm_90]"})
    EXPECT_THAT(shell_split(shell_quote(word)), ElementsAre(word));
  EXPECT_THAT(shell_split("ccache  '/opt/my cuda/nvcc' -x\\ y"),
              ElementsAre("ccache", "/opt/my cuda/nvcc", "-x y"));
}

TEST(Text, DurationsReadWell) {
  EXPECT_EQ(duration(0.0034), "3.40 ms");
  EXPECT_EQ(duration(0.9999), "1.00 s");
  EXPECT_EQ(duration(185.4), "3 min 5 s");
}

}  // namespace
}  // namespace kiln::text
