// SPDX-License-Identifier: Apache-2.0
// Which files did a compiler read?
#include "build/cache/depfile.h"

namespace kiln::build {

// "target : a.cu \<newline> b.h c\ d.h": a backslash protects a blank or '#', "$$" is one dollar.
std::vector<std::string> parse_depfile(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool past_target = false;
  auto finish = [&] {
    if (!word.empty() && past_target) words.push_back(word);
    word.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    char next = i + 1 < text.size() ? text[i + 1] : '\n';
    bool blank_follows = next == ' ' || next == '\t' || next == '\n' || next == '\r';
    if (c == '\\' && (next == ' ' || next == '#')) {
      word += next;
      ++i;
    } else if (c == '\\' && (next == '\n' || next == '\r')) {
      finish();
      ++i;
    } else if (c == '$' && next == '$') {
      word += '$';
      ++i;
    } else if (c == ':' && !past_target && blank_follows) {
      word.clear();
      past_target = true;
    } else if (c == '\n') {
      finish();
      past_target = false;  // -MP writes further rules without prerequisites
    } else if (c == ' ' || c == '\t' || c == '\r') {
      if (past_target) finish();
    } else {
      word += c;
    }
  }
  finish();
  return words;
}

}  // namespace kiln::build
