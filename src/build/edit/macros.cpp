// SPDX-License-Identifier: Apache-2.0
// Which macros may the body of a device function use, so that nothing behind it depends on them?
#include "build/edit/macros.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "build/plan/source_tokens.h"

namespace kiln::build {

namespace {

// In the body of a kernel these reach beyond it.
const std::set<std::string_view> kReachOut = {"__COUNTER__", "static",       "__device__",
                                              "__host__",    "__constant__", "__managed__",
                                              "extern",      "__pragma",     "friend"};

bool is_name(std::string_view word) {
  return is_word(word[0]) && !(word[0] >= '0' && word[0] <= '9');
}

bool has_no_small_letters(std::string_view word) {
  return word.size() > 1 &&
         std::none_of(word.begin(), word.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

// Limits and constants of the C library, which are values in every implementation.
bool is_known_value(std::string_view word) {
  static const std::set<std::string_view> kValues = {"NULL", "NAN", "INFINITY", "HUGE_VAL",
                                                     "HUGE_VALF"};
  if (kValues.contains(word)) return true;
  for (std::string_view family : {"FLT_", "DBL_", "M_"})
    if (word.starts_with(family)) return true;
  constexpr std::string_view kTypes[] = {
      "INT",   "UINT", "LONG",  "ULONG", "LLONG", "ULLONG", "SHRT",   "CHAR",   "USHRT",  "SCHAR",
      "UCHAR", "INT8", "INT16", "INT32", "INT64", "UINT8",  "UINT16", "UINT32", "UINT64", "SIZE"};
  return std::any_of(std::begin(kTypes), std::end(kTypes), [&](std::string_view type) {
    return word.starts_with(type) &&
           (word.substr(type.size()) == "_MAX" || word.substr(type.size()) == "_MIN");
  });
}

// `#pragma unroll 4` and _Pragma("unroll") are about the loop behind them. Others may stay on:
// pack, push_macro, GCC optimize.
bool is_about_a_loop(std::string_view pragma) {
  pragma = text::trim(pragma);
  for (std::string_view word : {"unroll", "nounroll"})
    if (pragma.starts_with(word) && (pragma.size() == word.size() || !is_word(pragma[word.size()])))
      return true;
  return false;
}

std::string why_pragma_matters(const std::vector<Token>& tokens, size_t i) {
  std::string_view text = tokens[i].text;
  if (text[0] == '#') {
    if (directive_name(text) != "pragma") return "a preprocessor directive";
    if (!is_about_a_loop(text.substr(text.find("pragma") + 6))) return "a #pragma besides unroll";
  } else if (text == "_Pragma") {
    const bool plain = i + 3 < tokens.size() && tokens[i + 1].text == "(" &&
                       tokens[i + 2].text.starts_with('"') && tokens[i + 3].text == ")";
    if (!plain || !is_about_a_loop(tokens[i + 2].text.substr(1, tokens[i + 2].text.size() - 2)))
      return "a _Pragma besides unroll";
  }
  return "";
}

std::string why_tokens_reach_out(const std::vector<Token>& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string_view text = tokens[i].text;
    if (std::string why = why_pragma_matters(tokens, i); !why.empty()) return why;
    auto next = [&](size_t n) {
      return i + n < tokens.size() ? tokens[i + n].text : std::string_view();
    };
    if (kReachOut.contains(text) && !(text == "extern" && next(1) == "__shared__"))
      return fmt::format("'{}'", text);
    if (text == "<" && next(1) == "<" && next(2) == "<") return "the launch of a kernel";
  }
  return "";
}

// Of a replacement: half of a pair of brackets may end a body before its text does; joined words
// may be any.
std::string why_replacement_reaches_out(std::string_view text) {
  if (text.find("##") != text.npos) return "'##'";
  // A macro's parameter in quotes ("#x") is no directive.
  const std::string plain = text::replace_all(text, "#", " ");
  auto tokens = tokens_of(plain);
  if (!tokens) return "text that cannot be parsed";
  std::string open;
  for (const Token& token : *tokens) {
    const size_t at = std::string_view("([{)]}").find(token.text[0]);
    if (at == std::string_view::npos) continue;
    if (at < 3) open.push_back(token.text[0]);
    if (at >= 3 && (open.empty() || open.back() != "([{"[at - 3]))
      return "half of a pair of brackets";
    if (at >= 3) open.pop_back();
  }
  if (!open.empty()) return "half of a pair of brackets";
  return why_tokens_reach_out(*tokens);
}

std::vector<std::string> names_in(std::string_view replacement) {
  std::vector<std::string> names;
  const std::string plain = text::replace_all(replacement, "#", " ");
  if (auto tokens = tokens_of(plain))
    for (const Token& token : *tokens)
      if (is_name(token.text)) names.emplace_back(token.text);
  return names;
}

}  // namespace

std::string why_reaches_out(std::string_view text) {
  auto tokens = tokens_of(text);
  return tokens ? why_tokens_reach_out(*tokens) : "text that cannot be parsed";
}

void Macros::define(std::string_view name, std::string_view replacement) {
  replacements_[std::string(name)].emplace_back(replacement);
}

void Macros::add(std::string_view whole) {
  const auto plain = without_comments(whole);
  auto tokens = plain ? tokens_of(*plain) : std::nullopt;
  if (!tokens) return;
  for (size_t i = 0; i < tokens->size(); ++i) {
    std::string_view word = (*tokens)[i].text;
    if (word[0] == '#') {
      if (directive_name(word) != "define") continue;
      std::string joined = text::replace_all(word, "\\\r\n", " ");
      joined = text::replace_all(joined, "\\\n", " ");
      std::string_view rest =
          text::trim(std::string_view(joined).substr(joined.find("define") + 6));
      const size_t end =
          static_cast<size_t>(std::find_if_not(rest.begin(), rest.end(), is_word) - rest.begin());
      std::string_view replacement = rest.substr(end);
      if (replacement.starts_with('(')) replacement.remove_prefix(replacement.find(')') + 1);
      define(rest.substr(0, end), replacement);
      continue;
    }
    // `int BLOCK = 4;`, `template <int BLOCK>`: a type before it and no word behind it.
    static const std::set<std::string_view> kNoTypes = {
        "return", "throw", "else", "case", "goto", "do", "new", "delete", "sizeof"};
    if (!has_no_small_letters(word) || !is_name(word) || i == 0 || i + 1 >= tokens->size())
      continue;
    std::string_view before = (*tokens)[i - 1].text, behind = (*tokens)[i + 1].text;
    if (is_name(before) && !kNoTypes.contains(before) &&
        std::string_view("=;,>)[{").find(behind[0]) != std::string_view::npos)
      declared_.emplace(word);
  }
}

bool Macros::contains(std::string_view name) const { return replacements_.contains(name); }

std::string Macros::reach_of(std::string_view name) const {
  std::set<std::string> seen;
  return reach_of(name, seen);
}

std::string Macros::reach_of(std::string_view name, std::set<std::string>& seen) const {
  auto found = replacements_.find(name);
  if (found == replacements_.end() || !seen.emplace(name).second) return "";
  for (const std::string& replacement : found->second) {
    if (std::string why = why_replacement_reaches_out(replacement); !why.empty()) return why;
    for (const std::string& word : names_in(replacement))
      if (std::string why = reach_of(word, seen); !why.empty()) return why;
  }
  return "";
}

bool Macros::is_unclear(std::string_view word) const {
  std::set<std::string> seen;
  return is_unclear(word, seen);
}

bool Macros::is_unclear(std::string_view word, std::set<std::string>& seen) const {
  if (!is_name(word) || !seen.emplace(word).second) return false;
  auto found = replacements_.find(word);
  if (found == replacements_.end())
    return has_no_small_letters(word) && !is_known_value(word) && !declared_.contains(word) &&
           !(word.starts_with("__") && word.ends_with("__"));
  for (const std::string& replacement : found->second)
    for (const std::string& one : names_in(replacement))
      if (is_unclear(one, seen)) return true;
  return false;
}

std::set<std::string> Macros::words_behind(std::string_view name) const {
  std::set<std::string> words = {std::string(name)};
  std::vector<std::string> waiting = {std::string(name)};
  while (!waiting.empty()) {
    auto found = replacements_.find(waiting.back());
    waiting.pop_back();
    if (found == replacements_.end()) continue;
    for (const std::string& replacement : found->second)
      for (std::string& word : names_in(replacement))
        if (words.insert(word).second) waiting.push_back(std::move(word));
  }
  return words;
}

}  // namespace kiln::build
