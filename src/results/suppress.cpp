// SPDX-License-Identifier: Apache-2.0
#include "results/suppress.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace kiln::results {
namespace {

std::string_view next_word(std::string_view* rest) {
  const size_t begin = std::min(rest->find_first_not_of(" \t"), rest->size());
  const size_t end = std::min(rest->find_first_of(" \t", begin), rest->size());
  const std::string_view word = rest->substr(begin, end - begin);
  *rest = rest->substr(end);
  return word;
}

bool is_check(std::string_view name) {
  return std::ranges::any_of(rules(),
                             [&](const RuleRow& row) { return name_of(row.check) == name; });
}

// "; did you mean shared-race?", where one is near.
std::string nearest_rule(std::string_view name) {
  std::vector<std::string> known;
  for (const RuleRow& row : rules()) known.emplace_back(row.name);
  const auto meant = text::closest(name, known);
  return meant ? fmt::format("; did you mean {}?", *meant) : "";
}

std::string any(std::string_view word) { return word == "*" ? "" : std::string(word); }

// "f.cu:41" or "f.cu". False: what is behind the colon is not a line.
bool read_place(std::string_view word, Suppression* out) {
  const size_t colon = word.rfind(':');
  out->file = any(word.substr(0, colon));
  if (colon == word.npos) return true;
  const std::string_view digits = word.substr(colon + 1);
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), out->line);
  return read.ec == std::errc() && read.ptr == digits.data() + digits.size() && out->line > 0;
}

// "src/f.cu" is the file "/a/src/f.cu", and "f.cu" is too, but "g.cu" and "ff.cu" are not.
bool names_file(std::string_view path, std::string_view named) {
  if (!path.ends_with(named)) return false;
  return path.size() == named.size() || path[path.size() - named.size() - 1] == '/';
}

bool at_place(const FindingPlace& place, const Suppression& one) {
  if (!one.kernel.empty() && place.kernel.find(one.kernel) == std::string::npos) return false;
  if (one.file.empty()) return true;
  return std::ranges::any_of(place.stack, [&](const FindingLine& line) {
    return names_file(line.file, one.file) && (one.line == 0 || one.line == line.line);
  });
}

bool fits(const Finding& finding, const Suppression& one) {
  if (!one.rule.empty() && one.rule != finding.rule && one.rule != finding.check) return false;
  if (one.kernel.empty() && one.file.empty()) return true;
  return std::ranges::any_of(finding.places,
                             [&](const FindingPlace& place) { return at_place(place, one); });
}

}  // namespace

Result<std::vector<Suppression>> parse_suppressions(std::string_view text,
                                                    std::string_view source) {
  std::vector<Suppression> out;
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view rest = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
    const std::string_view rule = next_word(&rest);
    if (rule.empty() || rule.starts_with('#')) continue;
    auto wrong = [&](std::string why) {
      return Error{Fault::Usage, fmt::format("cannot read {}:{}", source, number), std::move(why),
                   "write RULE KERNEL FILE:LINE REASON, with * for any"};
    };
    Suppression one;
    one.at = number;
    one.rule = any(rule);
    one.kernel = any(next_word(&rest));
    const std::string_view place = next_word(&rest);
    if (place.empty()) return wrong("it has fewer than four fields");
    if (rule != "*" && !rule_named(rule) && !is_check(rule))
      return wrong(fmt::format("unknown rule '{}'{}", rule, nearest_rule(rule)));
    if (!read_place(place, &one)) return wrong(fmt::format("'{}' is not FILE:LINE", place));
    const size_t begin = rest.find_first_not_of(" \t");
    if (begin == rest.npos) return wrong("the reason is missing");
    one.reason = std::string(rest.substr(begin));
    out.push_back(std::move(one));
  }
  return out;
}

void suppress(Findings& findings, std::vector<Suppression>& suppressions) {
  for (Finding& finding : findings.findings) {
    for (Suppression& one : suppressions) {
      if (!fits(finding, one)) continue;
      ++one.used;
      if (!finding.suppressed) finding.suppressed = one.reason;
    }
  }
}

}  // namespace kiln::results
