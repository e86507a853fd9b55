// SPDX-License-Identifier: Apache-2.0
// Which small operations on text does kiln need that std lacks?
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/units.h"

namespace kiln::text {

namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Words that name an op library would break: it becomes a C++ name, torch.ops.<name> and a Python
// attribute.
constexpr std::array kKeywords = {
    "alignas",  "alignof",  "and",     "as",       "asm",      "assert",   "async",    "auto",
    "await",    "bool",     "break",   "case",     "catch",    "char",     "class",    "const",
    "continue", "def",      "default", "del",      "delete",   "do",       "double",   "elif",
    "else",     "enum",     "except",  "explicit", "export",   "extern",   "false",    "finally",
    "float",    "for",      "friend",  "from",     "global",   "goto",     "if",       "import",
    "in",       "inline",   "int",     "is",       "lambda",   "long",     "mutable",  "namespace",
    "new",      "nonlocal", "not",     "operator", "or",       "pass",     "private",  "protected",
    "public",   "raise",    "return",  "short",    "signed",   "sizeof",   "static",   "struct",
    "switch",   "template", "this",    "throw",    "true",     "try",      "typedef",  "typename",
    "union",    "unsigned", "using",   "virtual",  "void",     "volatile", "while",    "with",
    "yield",    "None",     "True",    "False",    "requires", "concept",  "register", "xor"};

// Letters added, left out, replaced, or swapped with the next: "biuld" is one away from "build".
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1), above(b.size() + 1), two_above;
  std::iota(above.begin(), above.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = above[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
    two_above = std::exchange(above, row);
  }
  return above.back();
}

}  // namespace

std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> split_any(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  for (;;) {
    size_t begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    size_t end = std::min(text.find_first_of(separators), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::vector<std::string_view> lines(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.empty()) return {};
  return split(text, '\n');
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  if (from.empty()) return std::string(text);
  std::string out;
  for (;;) {
    size_t at = text.find(from);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += to;
    text.remove_prefix(at + from.size());
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::optional<int64_t> to_int(std::string_view text) {
  int64_t value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_identifier(std::string_view text) {
  if (text.empty() || is_digit(text[0])) return false;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c); }))
    return false;
  return std::find(kKeywords.begin(), kKeywords.end(), text) == kKeywords.end();
}

std::string to_identifier(std::string_view text) {
  std::string out;
  for (char c : text) out += is_letter(c) || is_digit(c) ? c : '_';
  if (!is_identifier(out)) out.insert(0, "_");
  return out;
}

std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates) {
  const std::string* best = nullptr;
  size_t best_distance = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = &candidate;
    }
  }
  if (!best) return std::nullopt;
  return *best;
}

std::string shell_quote(std::string_view word) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(kSafe) == std::string_view::npos)
    return std::string(word);
  return "'" + replace_all(word, "'", "'\\''") + "'";
}

std::vector<std::string> shell_split(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    bool protects_next = c == '\\' && quote != '\'' && i + 1 < text.size();
    if (protects_next) {
      word += text[++i];
      in_word = true;
    } else if (quote) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      in_word = true;
    } else if (kBlanks.find(c) != std::string_view::npos) {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (in_word) words.push_back(std::move(word));
  return words;
}

std::string duration(double seconds) {
  if (seconds < 59.95) return time_text(seconds * 1e9);
  auto whole = static_cast<int64_t>(std::lround(seconds));
  return fmt::format("{} min {} s", whole / 60, whole % 60);
}

}  // namespace kiln::text
