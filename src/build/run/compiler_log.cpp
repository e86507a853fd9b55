// SPDX-License-Identifier: Apache-2.0
#include "build/run/compiler_log.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/ascii.h"
#include "base/text.h"

namespace kiln::build {

namespace {

constexpr std::string_view kOwnHeaders = "/include/kiln/";

bool is_kind(std::string_view word) {
  return word == "error" || word == "fatal error" || word == "catastrophic error" ||
         word.starts_with("warning") || word.starts_with("error #") || word.starts_with("note");
}

// The number at the end of `text`, which is cut off with the mark before it.
std::optional<int> take_number(std::string_view& text, char mark) {
  size_t at = text.size();
  while (at > 0 && is_digit(text[at - 1])) --at;
  if (at == text.size() || at == 0 || text[at - 1] != mark) return std::nullopt;
  const auto number = text::to_int(text.substr(at));
  if (!number || *number > 1'000'000'000) return std::nullopt;
  text = text.substr(0, at - 1);
  return static_cast<int>(*number);
}

// "add.cu(4)", "add.cu:4:7" or "add.cu:4"
std::optional<Place> place_in(std::string_view text) {
  if (text.ends_with(')')) {
    text.remove_suffix(1);
    const auto line = take_number(text, '(');
    return line ? std::optional(Place(text, *line)) : std::nullopt;
  }
  auto line = take_number(text, ':');
  if (!line) return std::nullopt;
  if (const auto first = take_number(text, ':')) line = first;  // the other one was a column
  return Place(text, *line);
}

std::optional<Diagnostic> diagnostic_in(std::string_view line) {
  size_t colon = line.find(": ");
  while (colon != std::string_view::npos) {
    const size_t end = line.find(": ", colon + 2);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view kind = line.substr(colon + 2, end - colon - 2);
    const std::string_view where = line.substr(0, colon);
    colon = end;
    if (!is_kind(kind)) continue;
    const auto place = place_in(where);
    if (!place && where != "At end of source") continue;
    Diagnostic found;
    if (place) std::tie(found.file, found.line) = *place;
    found.by_gcc = !where.ends_with(')') && place;
    found.kind = kind;
    found.message = text::trim(line.substr(end + 2));
    found.head = line;
    return found;
  }
  return std::nullopt;
}

bool has_any(std::string_view line, std::initializer_list<std::string_view> signs) {
  return std::ranges::any_of(
      signs, [&](std::string_view sign) { return line.find(sign) != std::string_view::npos; });
}

// gcc says how it came to a place before it says what is wrong there.
bool is_context(std::string_view line) {
  if (line.starts_with("In file included from") || line.starts_with("                 from "))
    return true;
  if (line.starts_with(' ')) return false;
  return has_any(line, {": In ", ": At global scope", "required from", "required by",
                        "’ expansion of", "' expansion of"});
}

bool is_summary(std::string_view line) {
  return line.find(" detected in the compilation of ") != std::string_view::npos ||
         line.starts_with("Remark: The warnings can be suppressed");
}

}  // namespace

bool Diagnostic::is_in_own_header() const { return file.find(kOwnHeaders) != std::string::npos; }

bool Diagnostic::is_in_own_macro() const {
  return std::ranges::any_of(after, [](std::string_view line) {
    return has_any(line,
                   {"::kiln::detail::", "expansion of macro ‘KILN_", "expansion of macro 'KILN_"});
  });
}

std::vector<Diagnostic> diagnostics_in(std::string_view log) {
  std::vector<Diagnostic> all;
  std::vector<std::string_view> context;
  for (std::string_view line : text::lines(log)) {
    if (is_summary(line)) continue;
    auto found = diagnostic_in(line);
    if (!found && is_context(line)) {
      context.push_back(line);
      continue;
    }
    if (found && !found->kind.starts_with("note")) {
      found->before = std::exchange(context, {});
      all.push_back(std::move(*found));
      continue;
    }
    // What follows a message belongs to it, gcc's notes too.
    if (all.empty()) all.emplace_back();
    Diagnostic& last = all.back();
    last.after.insert(last.after.end(), context.begin(), context.end());
    context.clear();
    last.after.push_back(line);
  }
  if (!context.empty()) all.emplace_back().after = std::move(context);
  return all;
}

// nvcc: "... at line 19 of /w/add.cu", gcc: "/w/add.cu:19:1:   required from here".
std::optional<Place> user_place(const Diagnostic& one) {
  for (std::string_view line : one.after) {
    const size_t at = line.find("at line ");
    if (at == std::string_view::npos || line.find(kOwnHeaders, at) != std::string_view::npos)
      continue;
    const std::string_view rest = line.substr(at + 8);
    const size_t of = rest.find(" of ");
    const auto number = text::to_int(rest.substr(0, of));
    if (of != std::string_view::npos && number)
      return Place(rest.substr(of + 4), static_cast<int>(*number));
  }
  for (std::string_view line : one.before) {
    if (line.starts_with("In file included") || line.starts_with(' ')) continue;
    auto place = place_in(line.substr(0, line.find(": ")));
    if (place && place->first.find(kOwnHeaders) == std::string::npos) return place;
  }
  return std::nullopt;
}

}  // namespace kiln::build
