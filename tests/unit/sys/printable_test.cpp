// SPDX-License-Identifier: Apache-2.0
// Can a text from outside steer the terminal?
#include "sys/printable.h"

#include <gtest/gtest.h>

namespace kiln::sys {
namespace {

TEST(Printable, KeepsTextAndKilnsOwnStyles) {
  for (const char* text :
       {"", "a\tb\n", "\x1b[1mbold\x1b[0m", "\x1b[1;31merror:\x1b[0m", "ü 核 🔥", "\\x1b"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, EscapesWhatSteersATerminal) {
  EXPECT_EQ(printable("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
  EXPECT_EQ(printable("\x1b[2J\x1b[8mhidden"), "\\x1b[2J\\x1b[8mhidden");
  EXPECT_EQ(printable("a\rb"), "a\\x0db");
  EXPECT_EQ(printable("a\r\nb"), "a\nb");
  EXPECT_EQ(printable("\x7f\b"), "\\x7f\\x08");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\xc2\\x9b31m")
      << "U+009b is ESC [ in one character";
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
}

TEST(Printable, EscapesBytesThatAreNotUtf8) {
  EXPECT_EQ(printable("\x9b"
                      "31m"),
            "\\x9b31m")
      << "a terminal of eight bits reads it as ESC [";
  EXPECT_EQ(printable("\xc3"), "\\xc3");
  EXPECT_EQ(printable("\xe6\xa0"), "\\xe6\\xa0");
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b") << "two bytes for one";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a pair";
}

TEST(Printable, IsTheSameAgain) {
  const std::string once = printable("\x1b[5m\xff");
  EXPECT_EQ(printable(once), once);
}

TEST(Printable, JsonStaysJson) {
  EXPECT_EQ(printable_json("\"a\x7f"
                           "b\xc2\x9b"
                           "cü\""),
            "\"a\\u007fb\\u009bcü\"");
}

}  // namespace
}  // namespace kiln::sys
