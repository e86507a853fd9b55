// SPDX-License-Identifier: Apache-2.0
#include "build/run/op_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/text.h"

namespace kiln::build {

namespace {

// Those of C++20 that may be taken for a name of an op.
constexpr std::array<std::string_view, 62> kKeywords = {
    "alignas",  "alignof",  "and",      "asm",       "auto",    "bitand",    "bitor",    "bool",
    "break",    "case",     "catch",    "char",      "class",   "compl",     "concept",  "const",
    "continue", "decltype", "default",  "delete",    "do",      "double",    "else",     "enum",
    "explicit", "export",   "extern",   "false",     "float",   "for",       "friend",   "goto",
    "if",       "inline",   "int",      "long",      "mutable", "namespace", "new",      "not",
    "operator", "or",       "private",  "protected", "public",  "register",  "requires", "return",
    "short",    "signed",   "sizeof",   "static",    "struct",  "switch",    "template", "this",
    "throw",    "union",    "unsigned", "void",      "while",   "xor",
};

// A call follows these, not the name of a function that is being declared.
constexpr std::array<std::string_view, 7> kBeforeCalls = {"return", "else",     "case", "throw",
                                                          "new",    "co_await", "do"};

template <class List>
bool is_in(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != list.end();
}

// The text without comments; lines stay lines.
std::string without_comments(std::span<const std::string> source) {
  std::string out;
  bool in_block = false;
  for (std::string_view line : source) {
    for (size_t at = 0; at < line.size(); ++at) {
      const std::string_view rest = line.substr(at);
      if (in_block ? rest.starts_with("*/") : rest.starts_with("/*")) {
        in_block = !in_block;
        ++at;
        continue;
      }
      if (!in_block && rest.starts_with("//")) break;
      if (!in_block) out += line[at];
    }
    out += '\n';
  }
  return out;
}

// Is what ends before `at` a type, as in "Tensor& add"?
bool follows_a_type(std::string_view text, size_t at) {
  const std::string_view before = text::trim(text.substr(0, at));
  if (before.empty()) return false;
  const char last = before.back();
  if (last == '>' && before.ends_with("->")) return false;
  if (last == '&' || last == '*' || last == '>') return true;
  if (!is_name_part(last)) return false;
  size_t first = before.size();
  while (first > 0 && is_name_part(before[first - 1])) --first;
  return !is_in(kBeforeCalls, before.substr(first));
}

// What comes after the parentheses that open at `open`; 0 where they do not close.
char after_parentheses(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t at = open; at < text.size(); ++at) {
    depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
    if (depth > 0) continue;
    const std::string_view rest = text::trim(text.substr(at + 1));
    return rest.empty() ? '\0' : rest.front();
  }
  return '\0';
}

std::string_view last_part(std::string_view name) {
  const size_t colon = name.rfind("::");
  return colon == name.npos ? name : name.substr(colon + 2);
}

}  // namespace

std::string registered_name(std::string_view line) {
  const size_t open = line.find("KILN_OP(");
  if (open == std::string_view::npos) return "";
  line = line.substr(open + 8);
  return std::string(text::trim(line.substr(0, line.find_first_of(",)"))));
}

int count_functions(std::span<const std::string> source, std::string_view name) {
  const std::string text = without_comments(source);
  name = last_part(name);
  int defined = 0, declared = 0;
  for (size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at > 0 && is_name_part(text[at - 1])) || !follows_a_type(text, at)) continue;
    const size_t open = text.find_first_not_of(" \t\n", end);
    if (open == text.npos || text[open] != '(') continue;
    const char next = after_parentheses(text, open);
    defined += next == '{';
    declared += next == ';';
  }
  return defined > 0 ? defined : declared;
}

OpMistake name_of_a_header(const std::string& function) {
  const std::string_view name = last_part(function);
  return {fmt::format("KILN_OP: a header also declares a function '{}'; every .cu includes CUDA's "
                      "and C's",
                      function),
          fmt::format("rename yours, for example to {0}_op, or put it in a namespace: "
                      "KILN_OP(my::{0}, ...)",
                      name)};
}

std::optional<ReservedName> reserved_name(std::span<const std::string> source) {
  for (size_t i = 0; i < source.size(); ++i) {
    const std::string name = registered_name(source[i]);
    const bool is_main = name == "main";
    if (text::trim(source[i]).starts_with("//") || (!is_main && !is_in(kKeywords, name))) continue;
    return ReservedName{
        static_cast<int>(i) + 1,
        {is_main ? "KILN_OP: 'main' is where a program starts; no op can have this name"
                 : fmt::format("KILN_OP: '{}' is a keyword of C++; no function can have this name",
                               name),
         fmt::format("rename the function, for example to {}_op", name)}};
  }
  return std::nullopt;
}

}  // namespace kiln::build
