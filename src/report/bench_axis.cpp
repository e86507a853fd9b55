// SPDX-License-Identifier: Apache-2.0
// How does a benchmark over an axis look? A chart of the times over its values, and a table with a
// row for each.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/units.h"
#include "report/bench.h"
#include "report/charts/charts.h"
#include "report/page.h"

namespace kiln::report {
namespace {

using results::BenchResult;
using results::Contender;

using AxisValues = std::map<std::string, std::string>;

AxisValues axes_of(const BenchResult& result) {
  AxisValues out;
  if (!result.axes || !result.axes->is_object()) return out;
  for (const auto& [name, value] : result.axes->items()) out[name] = plain_text(value);
  return out;
}

// "4096", "2^20", "1.5": what a chart can place.
std::optional<double> axis_number(std::string_view text) {
  const auto number = [](std::string_view part) -> std::optional<double> {
    double value = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || part.empty())
      return std::nullopt;
    return value;
  };
  const size_t hat = text.find('^');
  if (hat == text.npos) return number(text);
  const auto base = number(text.substr(0, hat)), power = number(text.substr(hat + 1));
  return base && power ? std::optional(std::pow(*base, *power)) : std::nullopt;
}

// Results of one op over the same axes, and the axes that vary among them.
struct Sweep {
  std::vector<size_t> members;  // indices of results
  std::vector<std::string> varying;
};

std::vector<Sweep> sweeps_of(const std::vector<BenchResult>& results) {
  std::map<std::pair<std::string, std::set<std::string>>, Sweep> found;
  for (size_t i = 0; i < results.size(); ++i) {
    std::set<std::string> names;
    for (const auto& [name, value] : axes_of(results[i])) names.insert(name);
    if (names.empty() || results[i].contenders.empty()) continue;
    found[{results[i].contenders.front().name, names}].members.push_back(i);
  }
  std::vector<Sweep> out;
  for (auto& [key, sweep] : found) {
    for (const std::string& name : key.second) {
      std::set<std::string> values;
      for (const size_t i : sweep.members) values.insert(axes_of(results[i])[name]);
      if (values.size() > 1) sweep.varying.push_back(name);
    }
    if (!sweep.varying.empty()) out.push_back(std::move(sweep));
  }
  return out;
}

// The axis with most values that are numbers runs along the chart; the others make lines.
std::string axis_along(const std::vector<BenchResult>& results, const Sweep& sweep) {
  std::string best;
  size_t most = 1;
  for (const std::string& name : sweep.varying) {
    std::set<double> values;
    bool numbers = true;
    for (const size_t i : sweep.members) {
      const auto value = axis_number(axes_of(results[i])[name]);
      numbers &= value.has_value();
      if (value) values.insert(*value);
    }
    if (numbers && values.size() > most) most = values.size(), best = name;
  }
  return best;
}

bool spreads(double low, double high) { return low > 0 && high / low >= 16; }

std::string sweep_chart(const std::vector<BenchResult>& results, const Sweep& sweep) {
  const std::string along = axis_along(results, sweep);
  if (along.empty()) return "";
  std::vector<Line> lines;
  double least_x = 1e300, most_x = 0, least_y = 1e300, most_y = 0;
  for (const size_t i : sweep.members) {
    AxisValues axes = axes_of(results[i]);
    const double x = axis_number(axes[along]).value_or(0);
    std::string others;
    for (const std::string& name : sweep.varying)
      if (name != along) others += fmt::format(", {}={}", name, axes[name]);
    for (const Contender& one : results[i].contenders) {
      const double us = one.cold.median_ns / 1e3;
      const std::string name = one.name + others;
      auto line = std::ranges::find(lines, name, &Line::name);
      if (line == lines.end()) line = lines.insert(lines.end(), {name, {}});
      line->points.push_back(
          {x, us, fmt::format("{}, {}={}: {}", name, along, axes[along], time_text(us * 1e3))});
      least_x = std::min(least_x, x), most_x = std::max(most_x, x);
      least_y = std::min(least_y, us), most_y = std::max(most_y, us);
    }
  }
  for (Line& line : lines) std::ranges::sort(line.points, {}, &Point::x);
  return line_chart(lines, {.x = along,
                            .y = "us per call",
                            .log_x = spreads(least_x, most_x),
                            .log_y = spreads(least_y, most_y)});
}

std::string sortable_time(double ns) {
  return fmt::format("<span data-value=\"{:.3f}\">{}</span>", ns, time_text(ns));
}

std::string sweep_table(const std::vector<BenchResult>& results, const Sweep& sweep) {
  std::vector<std::string> names;
  for (const size_t i : sweep.members)
    for (const Contender& one : results[i].contenders)
      if (!std::ranges::count(names, one.name)) names.push_back(one.name);
  std::vector<std::vector<std::string>> rows(1);
  for (const std::string& axis : sweep.varying) rows[0].push_back(escape(axis));
  for (const std::string& name : names) rows[0].push_back(escape(name));
  const bool compared = names.size() > 1;
  if (compared) rows[0].insert(rows[0].end(), {"ratio", "verdict"});
  rows[0].emplace_back("details");
  for (const size_t i : sweep.members) {
    const BenchResult& result = results[i];
    AxisValues axes = axes_of(result);
    std::vector<std::string>& row = rows.emplace_back();
    for (const std::string& axis : sweep.varying) {
      const auto number = axis_number(axes[axis]);
      row.push_back(
          number ? fmt::format("<span data-value=\"{}\">{}</span>", *number, escape(axes[axis]))
                 : escape(axes[axis]));
    }
    for (const std::string& name : names) {
      const auto found = std::ranges::find(result.contenders, name, &Contender::name);
      row.push_back(found == result.contenders.end() ? "" : sortable_time(found->cold.median_ns));
    }
    if (compared && !result.comparisons.empty()) {
      const results::Comparison& first = result.comparisons.front();
      row.push_back(fmt::format("{:.3f}x", first.ratio.value));
      row.push_back(fmt::format("<span class=\"tag {0}\">{0}</span>", escape(first.verdict)));
    } else if (compared) {
      row.insert(row.end(), {"", ""});
    }
    row.push_back(fmt::format("<a href=\"#result{}\">distribution</a>", i));
  }
  return table(rows, std::string(sweep.varying.size() + names.size() + 1, 'n') + "ttt", "sortable");
}

}  // namespace

std::string axis_section(const std::vector<BenchResult>& results) {
  std::string out;
  for (const Sweep& sweep : sweeps_of(results)) {
    const BenchResult& first = results[sweep.members.front()];
    std::string over;
    for (const std::string& axis : sweep.varying)
      over += fmt::format("{}{}", over.empty() ? "" : ", ", escape(axis));
    out += fmt::format("<h2>{} over {}</h2>\n", escape(first.contenders.front().name), over) +
           sweep_chart(results, sweep) + sweep_table(results, sweep);
  }
  return out;
}

}  // namespace kiln::report
