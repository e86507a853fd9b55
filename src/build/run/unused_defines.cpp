// SPDX-License-Identifier: Apache-2.0
#include "build/run/unused_defines.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/ascii.h"
#include "base/text.h"

namespace kiln::build {

namespace {

bool has_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || !is_name_part(text[at - 1])) &&
        (end == text.size() || !is_name_part(text[end])))
      return true;
  }
  return false;
}

// What the text asks the preprocessor for: #ifdef NAME, #ifndef NAME, defined(NAME).
void add_asked(std::string_view text, std::set<std::string>& names) {
  for (std::string_view sign : {"#ifndef", "#ifdef", "defined"})
    for (size_t at = text.find(sign); at != std::string_view::npos; at = text.find(sign, at + 1)) {
      size_t begin = at + sign.size();
      while (begin < text.size() && (text[begin] == ' ' || text[begin] == '(')) ++begin;
      size_t end = begin;
      while (end < text.size() && is_name_part(text[end])) ++end;
      if (end > begin) names.emplace(text.substr(begin, end - begin));
    }
}

}  // namespace

std::vector<std::string> unused_defines(const std::vector<std::string>& defines,
                                        const std::vector<sys::fs::path>& paths,
                                        const sys::Files& files) {
  constexpr size_t kFilesForHints = 8;  // the sources come first; system headers ask for thousands
  std::vector<std::string> left = defines;
  std::set<std::string> asked;
  for (size_t i = 0; i < paths.size() && !left.empty(); ++i) {
    const auto text = files.read(paths[i]);
    if (!text) continue;
    if (i < kFilesForHints) add_asked(*text, asked);
    std::erase_if(left, [&](const std::string& define) {
      return has_word(*text, std::string_view(define).substr(0, define.find('=')));
    });
  }
  const std::vector<std::string> candidates(asked.begin(), asked.end());
  std::vector<std::string> out;
  for (const std::string& define : left) {
    const std::string name = define.substr(0, define.find('='));
    const auto near = text::closest(name, candidates);
    out.push_back(fmt::format("no file that is compiled mentions {} (-D {}){}", name, define,
                              near ? fmt::format("; did you mean {}?", *near) : ""));
  }
  return out;
}

}  // namespace kiln::build
