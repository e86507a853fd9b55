// SPDX-License-Identifier: Apache-2.0
// Does text stay text on a page, whatever it is made of?
#include "report/page.h"

#include <gmock/gmock.h>

namespace kiln::report {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Escape, MarkupBecomesText) {
  EXPECT_EQ(escape("<script>alert('x')</script>"),
            "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
  EXPECT_EQ(escape("\" onload=\"x"), "&quot; onload=&quot;x");
  EXPECT_EQ(escape("&lt;"), "&amp;lt;");
  EXPECT_EQ(escape(""), "");
}

// XML forbids control characters, and a parser of it refuses the whole picture.
TEST(Escape, ControlCharactersBecomeBlanks) {
  EXPECT_EQ(escape(std::string_view("a\0b\x01\x1f\x7f.", 7)), "a b   .");
  EXPECT_EQ(escape("a\tb\nc"), "a\tb\nc");
}

TEST(Escape, WhatIsNotUtf8IsReplaced) {
  EXPECT_EQ(escape("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x94\xa5"),
            "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x94\xa5");
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(escape("\xff<"), bad + "&lt;");
  EXPECT_EQ(escape("\xe2\x82"), bad + bad);            // cut in two
  EXPECT_EQ(escape("\xc0\xbc"), bad + bad);            // an overlong '<'
  EXPECT_EQ(escape("\xed\xa0\x80"), bad + bad + bad);  // a surrogate
  EXPECT_EQ(escape("\xf4\x90\x80\x80"), bad + bad + bad + bad);
}

TEST(Embedded, NothingEndsTheScriptElement) {
  const Json value = {{"name", "</script><!--<script>"}, {"bytes", "\xff"}};
  const std::string text = embedded(value);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  const auto back = parse_json(text, "the page");
  ASSERT_TRUE(back);
  EXPECT_EQ((*back)["name"], "</script><!--<script>");
}

TEST(Shortened, CutsBetweenCharacters) {
  EXPECT_EQ(shortened("kernel", 6), "kernel");
  EXPECT_EQ(shortened("kernel", 5), "kern…");
  EXPECT_EQ(shortened("\xc3\xa4\xc3\xb6\xc3\xbc", 2), "\xc3\xa4…");
  EXPECT_EQ(shortened("", 0), "");
  EXPECT_EQ(shortened("a", 0), "…");
}

TEST(Page, HasTheLookAndOnlyWhatWasAsked) {
  const std::string plain = page({.title = "<b>", .body = "<p>text</p>"});
  EXPECT_THAT(plain, HasSubstr("<title>&lt;b&gt;</title>"));
  EXPECT_THAT(plain, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(plain, HasSubstr("<p>text</p>"));
  EXPECT_THAT(plain, Not(HasSubstr("<script")));
  EXPECT_THAT(plain, Not(HasSubstr("http")));
  const std::string full = page({.title = "t",
                                 .body = "b",
                                 .style = "p { color:red }",
                                 .script = "run();",
                                 .header = "<header>h</header>",
                                 .data = Json::array({1, 2})});
  EXPECT_THAT(full, HasSubstr("p { color:red }</style>"));
  EXPECT_THAT(full, HasSubstr("<header>h</header><main>"));
  EXPECT_THAT(full, HasSubstr("id=\"data\">[1,2]</script>"));
  EXPECT_THAT(full, HasSubstr("<script>\nrun();</script>"));
}

TEST(Table, NumbersAreAlignedRightUnlessSaidOtherwise) {
  EXPECT_EQ(table({{"a", "b"}}),
            "<div class=\"wide\"><table>\n<thead><tr><th scope=\"col\">a</th>"
            "<th scope=\"col\" class=\"num\">b</th></tr></thead>\n<tbody>\n"
            "</tbody></table></div>\n");
  EXPECT_THAT(table({{"a", "b", "c"}, {"1", "2", "3"}}, "ntt"),
              HasSubstr("<td class=\"num\">1</td><td>2</td><td>3</td>"));
  EXPECT_EQ(table({}), "");
  EXPECT_THAT(table({{"a"}, {"1"}}, "", "sortable"), HasSubstr("<table class=\"sortable\">"));
}

}  // namespace
}  // namespace kiln::report
