// SPDX-License-Identifier: Apache-2.0
// What does the page of a benchmark show?
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/units.h"
#include "report/bench.h"
#include "report/charts/charts.h"
#include "report/look.h"
#include "report/page.h"

namespace kiln::report {
namespace {

using results::BenchResult;
using results::Contender;

std::string median_cell(const std::optional<results::Summary>& times) {
  return times ? time_text(times->median_ns) : "-";
}

std::optional<double> percent(const std::optional<double>& share) {
  return share ? std::optional(100 * *share) : std::nullopt;
}

std::string number_cell(const std::optional<double>& value, const char* format) {
  if (!value) return "";
  return std::isfinite(*value) ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string contenders_table(const BenchResult& result) {
  const bool gpu = !result.on_engine();
  const bool flops = std::ranges::any_of(
      result.contenders, [](const Contender& one) { return one.tflop_per_s.has_value(); });
  std::vector<std::vector<std::string>> rows;
  rows.push_back(
      gpu ? std::vector<std::string>{"", "time (cold L2)", "95 %", "samples", "hot L2", "in a row",
                                     "graph", "kernels", "launch", "GB/s", "of copy"}
          : std::vector<std::string>{"", "time", "95 %", "samples", "in a row", "first call"});
  if (gpu && flops) rows.back().push_back("TFLOP/s");
  for (const Contender& one : result.contenders) {
    const results::ColdSamples& cold = one.cold;
    std::vector<std::string> row = {
        escape(one.name), time_text(cold.median_ns),
        fmt::format("{} to {}", time_text(cold.low_ns), time_text(cold.high_ns)),
        grouped(static_cast<uint64_t>(cold.count))};
    if (gpu) {
      for (const auto* times : {&one.hot, &one.batched, &one.graph, &one.kernel, &one.launch})
        row.push_back(median_cell(*times));
      row.push_back(number_cell(one.gb_per_s, "{:.0f}"));
      row.push_back(number_cell(percent(one.of_copy), "{:.0f} %"));
      if (flops) row.push_back(number_cell(one.tflop_per_s, "{:.3g}"));
    } else {
      row.push_back(median_cell(one.batched));
      row.push_back(time_text(one.first_ns));
    }
    rows.push_back(std::move(row));
  }
  return table(rows);
}

std::string verdicts(const BenchResult& result) {
  std::string out;
  for (const results::Comparison& c : result.comparisons)
    out += fmt::format(
        "<p><span class=\"tag {0}\">{0}</span> {1} against {2}: {3:.3f}x its time ({4:.3f} to "
        "{5:.3f}); noise floor {6:.1f} %</p>\n",
        escape(c.verdict), escape(c.a), escape(c.b), c.ratio.value, c.ratio.low, c.ratio.high,
        100 * c.threshold);
  for (const results::BenchFinding& finding : result.findings)
    out += fmt::format("<p><span class=\"tag {0}\">{0}</span> <b>{1}</b>{2}: {3}</p>\n",
                       escape(finding.weight), escape(finding.trap),
                       finding.contender.empty() ? "" : " (" + escape(finding.contender) + ")",
                       escape(finding.text));
  return out;
}

std::string distributions(const BenchResult& result) {
  std::vector<Line> lines;
  for (const Contender& one : result.contenders) {
    Line line{one.name, {}};
    for (double ns : one.cold.samples_ns) line.points.push_back({ns / 1e3, 0, ""});
    lines.push_back(std::move(line));
  }
  return "<h3>Samples</h3>\n" + density_chart(lines, "us per call");
}

// Attained rate over intensity where flops are known, else rate over size.
std::string roofline(const std::vector<BenchResult>& results) {
  std::vector<Line> lines;
  double copy = 0, gemm = 0, least = 1e300, most = 0;
  bool has_flops = false;
  for (const BenchResult& result : results) {
    copy = std::max(copy, result.roof.copy_gb_per_s);
    gemm = std::max(gemm, result.roof.gemm_tflop_per_s);
    for (const Contender& one : result.contenders) has_flops |= one.flops > 0 && one.bytes > 0;
  }
  if (copy <= 0) return "";
  for (const BenchResult& result : results)
    for (const Contender& one : result.contenders) {
      const double bytes = one.bytes, flops = one.flops, ns = one.cold.median_ns;
      if (bytes <= 0 || ns <= 0 || (has_flops && flops <= 0)) continue;
      const double x = has_flops ? flops / bytes : bytes,
                   y = has_flops ? flops / ns * 1e-3 : bytes / ns;
      least = std::min(least, x);
      most = std::max(most, x);
      const std::string& name = one.name;
      auto found = std::find_if(lines.begin(), lines.end(),
                                [&](const Line& line) { return line.name == name; });
      if (found == lines.end()) found = lines.insert(lines.end(), {name, {}});
      found->points.push_back(
          {x, y, fmt::format("{} {}: {:.4g}", name, result.title.value_or(""), y)});
    }
  if (lines.empty()) return "";
  for (Line& line : lines)
    std::sort(line.points.begin(), line.points.end(),
              [](const Point& a, const Point& b) { return a.x < b.x; });
  Line roof{
      "roof: a copy" + std::string(gemm > 0 ? " and a matrix product" : "") + " in the same run",
      {}};
  for (int i = 0; i <= 40; ++i) {
    const double x = std::pow(
        10, std::log10(least / 2) + (std::log10(most * 2) - std::log10(least / 2)) * i / 40);
    const double y = !has_flops ? copy
                     : gemm > 0 ? std::min(x * copy * 1e-3, gemm)
                                : x * copy * 1e-3;
    roof.points.push_back({x, y, ""});
  }
  lines.push_back(std::move(roof));
  Axes axes{has_flops ? "operations per byte" : "bytes per call", has_flops ? "TFLOP/s" : "GB/s",
            true, has_flops, true};
  return "<h2>Roofline</h2>\n" + line_chart(lines, axes);
}

std::string history_charts(const std::vector<BenchResult>& results,
                           const std::vector<BenchResult>& past) {
  std::string out;
  for (const BenchResult& result : results) {
    const std::string title = result.title.value_or("");
    Line line{result.contenders.front().name, {}};
    for (const BenchResult& old : past) {
      if (old.title.value_or("") != title) continue;
      const double ns = old.contenders.front().cold.median_ns;
      line.points.push_back({static_cast<double>(line.points.size() + 1), ns / 1e3,
                             fmt::format("{}: {} {}", old.date.value_or(""), time_text(ns),
                                         old.source_hash.value_or("").substr(0, 8))});
    }
    if (line.points.size() < 2) continue;
    out += "<h3>" + escape(title) + "</h3>\n" +
           line_chart({line}, {.x = "run", .y = "us per call", .whole_x = true});
  }
  return out.empty() ? "" : "<h2>History</h2>\n" + out;
}

std::string machine_table(const BenchResult& result) {
  std::vector<std::vector<std::string>> rows = {{"machine", ""}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) rows.push_back({name, escape(value)});
  };
  add("device", result.device.name);
  add("driver", result.device.driver);
  add("CUDA of the driver", result.device.cuda);
  if (const auto& clocks = result.clocks)
    add("SM clock", fmt::format("{:.0f} MHz ({:.0f} to {:.0f})", clocks->median_mhz,
                                clocks->least_mhz, clocks->greatest_mhz));
  add("host", results::fact_of(result.machine, "host"));
  add("CPU", results::fact_of(result.machine, "cpu"));
  for (const char* name : {"torch", "python"}) add(name, results::fact_of(result.versions, name));
  add("kiln", result.kiln.value_or(""));
  add("date", result.date.value_or(""));
  return table(rows, "tt");
}

}  // namespace

std::string bench_page(const std::vector<BenchResult>& results,
                       const std::vector<BenchResult>& history) {
  const bool engine = !results.empty() && results.front().on_engine();
  std::string body = fmt::format(
      "<h1>Benchmarks</h1>\n<p class=\"soft\">{}</p>\n",
      engine ? "CPU engine time: how long the CPU takes to run the kernel's PTX. Not GPU time."
             : "GPU time between events, cold L2, medians with 95 % intervals.");
  body += axis_section(results);
  // A sweep has its chart and table; what each run looked like is there for those who ask.
  const bool many = results.size() > 3;
  for (size_t i = 0; i < results.size(); ++i) {
    const BenchResult& result = results[i];
    body +=
        fmt::format("<details class=\"card\" id=\"result{}\"{}><summary><h2>{}</h2></summary>\n", i,
                    many ? "" : " open", escape(result.title.value_or("")));
    if (!result.correct.value_or("").empty())
      body += "<p class=\"soft\">Correct: " + escape(*result.correct) + "</p>\n";
    body += contenders_table(result) + verdicts(result) + distributions(result) + "</details>\n";
  }
  body += roofline(results) + history_charts(results, history);
  if (results.empty())
    body += "<p>No result.</p>\n";
  else
    body += "<h2>Where</h2>\n" + machine_table(results.front());
  return page({.title = "kiln bench", .body = body, .style = kLook_bench_css});
}

}  // namespace kiln::report
