// SPDX-License-Identifier: Apache-2.0
#include "counters/require.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "counters/derived.h"

namespace kiln::counters {
namespace {

constexpr const char* kGrammar =
    "write METRIC[FILE:LINE] <= NUMBER, METRIC[KERNEL] < NUMBER or "
    "METRIC == NUMBER";

Error bad(const std::string& text, std::string why) {
  return Error{Fault::Usage, fmt::format("cannot read the requirement '{}'", text), std::move(why),
               kGrammar};
}

std::vector<std::string> known_metrics() {
  std::vector<std::string> names;
  for (const results::MetricFact& fact : metric_facts())
    if (fact.tag != "unavailable") names.push_back(fact.name);
  return names;
}

Error unknown_metric(const Requirement& wanted, const std::vector<std::string>& known) {
  const auto meant = text::closest(wanted.metric, known);
  return Error{Fault::Usage, fmt::format("unknown metric '{}' in --require", wanted.metric),
               meant ? fmt::format("did you mean {}?", *meant) : "no metric has a similar name",
               "kiln docs counters has a table of them; --json lists all under \"facts\""};
}

bool holds(double seen, const std::string& sign, double number) {
  if (sign == "<=") return seen <= number;
  if (sign == "<") return seen < number;
  if (sign == ">=") return seen >= number;
  if (sign == ">") return seen > number;
  return (seen == number) == (sign == "==");
}

double value(const results::NamedNumbers& numbers, const std::string& metric) {
  const double* found = results::find_number(numbers, metric);
  return found ? *found : 0;
}

}  // namespace

Result<Requirement> parse_requirement(const std::string& text) {
  Requirement out;
  out.text = text;
  const size_t bracket = text.find('['), closing = text.rfind(']');
  const size_t from = bracket == text.npos ? 0 : closing;
  if (bracket != text.npos && (closing == text.npos || closing < bracket))
    return bad(text, "a bracket is not closed");
  const size_t sign = text.find_first_of("<>=!", from == text.npos ? 0 : from);
  if (sign == text.npos) return bad(text, "it has no comparison: <=, <, >=, >, == or !=");
  const size_t after = text.find_first_not_of("<>=!", sign);
  out.sign = text.substr(sign, after - sign);
  for (const char* known : {"<=", "<", ">=", ">", "==", "!=", ""}) {
    if (!*known) return bad(text, fmt::format("'{}' is not a comparison", out.sign));
    if (out.sign == known) break;
  }
  out.metric = text::trim(text.substr(0, std::min(bracket, sign)));
  if (bracket != text.npos) {
    out.place = text::trim(text.substr(bracket + 1, closing - bracket - 1));
    if (out.place.empty()) return bad(text, "the brackets name no line and no kernel");
    if (!text::trim(text.substr(closing + 1, sign - closing - 1)).empty())
      return bad(text, "there is text between ']' and the comparison");
  }
  const std::string number(after == text.npos ? "" : text::trim(text.substr(after)));
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), out.number);
  if (error != std::errc() || end != number.data() + number.size())
    return bad(text, fmt::format("'{}' is not a number", number));
  // Every comparison with nan is false, and every one with inf is known.
  if (!std::isfinite(out.number))
    return bad(text, fmt::format("'{}' is not a finite number", number));
  const std::vector<std::string> known = known_metrics();
  if (std::ranges::find(known, out.metric) == known.end()) return unknown_metric(out, known);
  return out;
}

Result<std::vector<Miss>> check(const results::CounterReport& report, const Requirement& wanted) {
  std::vector<Miss> out;
  const auto look = [&](const std::string& where, const results::NamedNumbers& numbers) {
    const double seen = value(numbers, wanted.metric);
    if (!holds(seen, wanted.sign, wanted.number)) out.push_back({wanted.text, where, seen});
  };
  for (const results::CounterLine& line : report.lines) {
    if (wanted.place.empty() || line.at != wanted.place) continue;
    look(line.at, line.metrics);
    return out;
  }
  bool found = false;
  for (const results::LaunchReport& launch : report.launches) {
    if (launch.kernel.find(wanted.place) == std::string::npos) continue;
    found = true;
    look(fmt::format("launch {}, {}", launch.number, launch.kernel), launch.metrics);
  }
  if (found) return out;
  return Error{
      Fault::Work, fmt::format("cannot check '{}'", wanted.text),
      fmt::format("no instruction of '{}' ran, and no kernel has that in its name", wanted.place),
      "kiln counters without --require lists the lines that ran"};
}

}  // namespace kiln::counters
