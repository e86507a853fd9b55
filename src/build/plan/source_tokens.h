// SPDX-License-Identifier: Apache-2.0
// What are the words of a CUDA source, and which of its text is comment?
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::build {

struct Token {
  std::string_view text;  // a word, a number or one character; "#..." a directive; "\"" a literal
  size_t begin = 0, end = 0;
};

// Comments are left out. Nothing for what has no end, and where a joined line could make something
// else of a comment.
std::optional<std::vector<Token>> tokens_of(std::string_view text);

// The text with blanks in the place of its comments: every word stays in its line and column. Two
// texts that are the same by this mean the same to every compiler, but for __TIMESTAMP__. Nothing
// as above.
std::optional<std::string> without_comments(std::string_view text);

bool is_word(char c);
// A blank or the end of a line.
inline bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// "include" of "#  include <x>".
std::string directive_name(std::string_view directive);

}  // namespace kiln::build
