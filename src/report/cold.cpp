// SPDX-License-Identifier: Apache-2.0
#include "report/cold.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "report/charts/charts.h"
#include "report/page.h"

namespace kiln::report {
namespace {

constexpr int kTextBar = 40;  // characters of the whole

std::string stage_text(const results::ColdStage& stage, double at_ns, double total_ns) {
  const double ns = *stage.median_ns;
  std::string bar;
  if (!stage.is_after_first_call() && total_ns > 0) {
    const auto from = static_cast<size_t>(at_ns / total_ns * kTextBar);
    const auto width =
        std::max<size_t>(1, static_cast<size_t>(std::lround(ns / total_ns * kTextBar)));
    bar = std::string(from, ' ') + std::string(std::min(width, kTextBar + 1 - from), '#');
  }
  return fmt::format("  {:<26} {:>9}  {:>9} to {:<9} {}\n", stage.name, time_text(ns),
                     time_text(stage.low_ns.value_or(ns)), time_text(stage.high_ns.value_or(ns)),
                     bar);
}

std::string kind_card(const results::ColdKind& kind) {
  std::vector<Bar> bars;
  std::vector<std::vector<std::string>> rows = {{"stage", "median", "least", "greatest"}};
  double at_ns = 0;
  for (const results::ColdStage& stage : kind.stages) {
    if (!stage.median_ns) {
      rows.push_back({escape(stage.name), escape(stage.why.value_or("")), "", ""});
      continue;
    }
    const double ns = *stage.median_ns;
    if (!stage.is_after_first_call()) {
      bars.push_back({stage.name, at_ns, ns, time_text(ns)});
      at_ns += ns;
    }
    rows.push_back({escape(stage.name), time_text(ns), time_text(stage.low_ns.value_or(ns)),
                    time_text(stage.high_ns.value_or(ns))});
  }
  return fmt::format(
             "<section class=\"card\"><h2 style=\"margin-top:0\">{}: {} until the first "
             "result</h2>\n",
             escape(kind.kind), time_text(kind.total_ns)) +
         waterfall(bars, "time") + "<details><summary>figures</summary>" + table(rows) +
         "</details></section>\n";
}

}  // namespace

std::string cold_text(const results::ColdResult& result) {
  std::string out = fmt::format("{}: the first call, in fresh processes\n", result.title);
  for (const results::ColdKind& kind : result.kinds) {
    out += fmt::format("\n{} ({} processes), {} until the first result\n", kind.kind, kind.runs,
                       time_text(kind.total_ns));
    double at_ns = 0;
    for (const results::ColdStage& stage : kind.stages) {
      if (!stage.median_ns) {
        out += fmt::format("  {:<26} {:>9}  {}\n", stage.name, "-", stage.why.value_or(""));
        continue;
      }
      out += stage_text(stage, at_ns, kind.total_ns);
      if (!stage.is_after_first_call()) at_ns += *stage.median_ns;
    }
  }
  if (!result.advice.empty()) out += "\nwhat helps, largest first:\n";
  for (const std::string& line : result.advice) out += "  - " + line + "\n";
  return out;
}

std::string cold_page(const results::ColdResult& result) {
  std::string body = fmt::format(
      "<h1>The first call of {}</h1>\n<p class=\"soft\">Fresh processes; medians.</p>\n",
      escape(result.title));
  for (const results::ColdKind& kind : result.kinds) body += kind_card(kind);
  if (!result.advice.empty()) {
    body += "<h2>What helps, largest first</h2>\n<ul>\n";
    for (const std::string& line : result.advice) body += "<li>" + escape(line) + "</li>\n";
    body += "</ul>\n";
  }
  return page({.title = "kiln bench --cold", .body = body});
}

}  // namespace kiln::report
