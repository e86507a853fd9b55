// SPDX-License-Identifier: Apache-2.0
// Does a text have a lambda marked __device__ or __host__?
//
//   [..] __device__ (..) {}    [..](..) __device__ {}    [..]<class T> __device__ (T) {}    [..]
//   GPU_LAMBDA (..) {}
#include "build/plan/lambda_scan.h"

#include <algorithm>
#include <array>
#include <string>

#include "build/plan/source_tokens.h"

namespace kiln::build {

namespace {

constexpr size_t kNowhere = std::string_view::npos;

// What may be between a lambda's brackets and the mark.
constexpr std::array<std::string_view, 9> kMarks = {"mutable",    "constexpr", "consteval",
                                                    "noexcept",   "static",    "__host__",
                                                    "__device__", "inline",    "__forceinline__"};

struct Parts {
  std::string code;    // strings empty, directives each a ';'
  std::string macros;  // what the names of #define stand for
};

// Behind the end of the literal that begins here, at most that of its line.
size_t behind_literal(std::string_view text, size_t at) {
  char quote = text[at++];
  while (at < text.size() && text[at] != quote && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

// Behind the end of the line here, with those that a backslash joins to it.
size_t behind_line(std::string_view text, size_t at) {
  while (at < text.size() && text[at] != '\n') at += text[at] == '\\' ? 2 : 1;
  return std::min(at, text.size());
}

std::string_view define_in(std::string_view directive) {
  size_t at = directive.find_first_not_of(" \t", 1);
  return at != kNowhere && directive.substr(at).starts_with("define") ? directive.substr(at + 6)
                                                                      : std::string_view();
}

Parts parts_of(std::string_view text) {
  Parts parts;
  bool line_begins = true;
  for (size_t at = 0; at < text.size();) {
    char c = text[at];
    if (c == '#' && line_begins) {
      size_t end = behind_line(text, at);
      if (std::string_view macro = define_in(text.substr(at, end - at)); !macro.empty()) {
        parts.macros.append(macro).append("\n;");
      }
      parts.code += ';';
      at = end;
    } else if (c == '"' || (c == '\'' && (at == 0 || !is_word(text[at - 1])))) {
      parts.code += "\"\"";
      at = behind_literal(text, at);
      line_begins = false;
    } else {
      line_begins = c == '\n' || (line_begins && is_space(c));
      parts.code += c;
      ++at;
    }
  }
  std::replace(parts.macros.begin(), parts.macros.end(), '\\', ' ');
  return parts;
}

// Where the bracket is that the one at `close` closes.
size_t opening(std::string_view code, size_t close) {
  const char shut = code[close], open = shut == ')' ? '(' : shut == ']' ? '[' : '<';
  int depth = 0;
  for (size_t at = close + 1; at-- > 0;) {
    if (code[at] == shut) ++depth;
    if (code[at] == open && --depth == 0) return at;
  }
  return kNowhere;
}

// The end of what stands before `at`, without blanks and marks.
size_t before_marks(std::string_view code, size_t at) {
  for (;;) {
    while (at > 0 && is_space(code[at - 1])) --at;
    size_t end = at;
    while (at > 0 && is_word(code[at - 1])) --at;
    if (std::find(kMarks.begin(), kMarks.end(), code.substr(at, end - at)) == kMarks.end())
      return end;
  }
}

// `[[nodiscard]]`, from the outer bracket: a lambda's brackets cannot start this way.
bool is_attribute(std::string_view code, size_t open) {
  size_t inner = open + 1;
  while (inner < code.size() && is_space(code[inner])) ++inner;
  return inner < code.size() && code[inner] == '[';
}

// Do the words that end at `at` belong to a lambda?
bool belongs_to_lambda(std::string_view code, size_t at) {
  for (;;) {
    at = before_marks(code, at);
    if (at == 0) return false;
    char last = code[at - 1];
    if (last != ')' && last != ']' && last != '>') return false;
    if (last == '>' && at > 1 && (code[at - 2] == '-' || code[at - 2] == '=')) return false;
    size_t open = opening(code, at - 1);
    if (open == kNowhere) return last != '>';  // cannot be followed
    if (last == ']' && !is_attribute(code, open)) return true;
    at = open;
  }
}

bool has_marked(std::string_view code) {
  for (std::string_view mark : {"__device__", "__host__"})
    for (size_t at = code.find(mark); at != kNowhere; at = code.find(mark, at + mark.size()))
      if (belongs_to_lambda(code, at)) return true;
  return false;
}

// `[..] NAME (..) {`: the name is a macro's, and what a lambda can be marked with is not much.
bool has_marked_by_macro(std::string_view code) {
  auto skip_blanks = [&](size_t at) {
    while (at < code.size() && is_space(code[at])) ++at;
    return at;
  };
  for (size_t at = code.find(']'); at != kNowhere; at = code.find(']', at + 1)) {
    size_t begin = skip_blanks(at + 1), end = begin;
    while (end < code.size() && is_word(code[end])) ++end;
    std::string_view word = code.substr(begin, end - begin);
    bool capitals = word.size() > 1 && std::none_of(word.begin(), word.end(),
                                                    [](char c) { return c >= 'a' && c <= 'z'; });
    size_t open = skip_blanks(end);
    if (!capitals || open >= code.size() || code[open] != '(') continue;
    int depth = 0;
    size_t close = open;
    for (; close < code.size(); ++close) {
      if (code[close] == '(') ++depth;
      if (code[close] == ')' && --depth == 0) break;
    }
    size_t next = skip_blanks(close + 1);
    if (next >= code.size() || code[next] == '{' || code[next] == '-' ||
        code.substr(next, 7) == "mutable")
      return true;
  }
  return false;
}

}  // namespace

Lambdas extended_lambdas(std::string_view text) {
  // Most of a library's headers have neither: they need not be taken apart.
  const bool any = text.find("__device__") != kNowhere || text.find("__host__") != kNowhere;
  if (!any && !has_marked_by_macro(text)) return {};
  Parts parts = parts_of(text);
  return {has_marked(parts.code) || has_marked_by_macro(parts.code),
          has_marked(parts.macros) || has_marked_by_macro(parts.macros)};
}

}  // namespace kiln::build
