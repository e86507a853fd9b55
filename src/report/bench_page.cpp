// SPDX-License-Identifier: Apache-2.0
// What does the page of a benchmark show?
#include <algorithm>
#include <cmath>

#include "report/charts.h"
#include "report/json_parts.h"
#include "report/page.h"
#include "report/pages.h"

namespace kiln::report {
namespace {

std::string median_cell(const Json& contender, const char* key) {
  const Json& summary = part(contender, key);
  return summary.is_object() ? time_text(number(summary, "median_ns")) : "-";
}

std::string contenders_table(const Json& result) {
  const bool gpu = words(result, "time") != "engine time";
  const Json& contenders = part(result, "contenders");
  const bool flops = std::any_of(contenders.begin(), contenders.end(),
                                 [](const Json& one) { return one.contains("tflop_per_s"); });
  std::vector<std::vector<std::string>> rows;
  rows.push_back(
      gpu ? std::vector<std::string>{"", "time (cold L2)", "95 %", "samples", "hot L2", "in a row",
                                     "graph", "kernels", "launch", "GB/s", "of copy"}
          : std::vector<std::string>{"", "time", "95 %", "samples", "in a row", "first call"});
  if (gpu && flops) rows.back().push_back("TFLOP/s");
  for (const Json& one : contenders) {
    const Json& cold = part(one, "cold");
    std::vector<std::string> row = {escape(words(one, "name")),
                                    time_text(number(cold, "median_ns")),
                                    fmt::format("{} to {}", time_text(number(cold, "low_ns")),
                                                time_text(number(cold, "high_ns"))),
                                    fmt::format("{:.0f}", number(cold, "count"))};
    if (gpu) {
      for (const char* key : {"hot", "batched", "graph", "kernel", "launch"})
        row.push_back(median_cell(one, key));
      row.push_back(one.contains("gb_per_s") ? fmt::format("{:.0f}", number(one, "gb_per_s")) : "");
      row.push_back(one.contains("of_copy") ? fmt::format("{:.0f} %", 100 * number(one, "of_copy"))
                                            : "");
      if (flops)
        row.push_back(
            one.contains("tflop_per_s") ? fmt::format("{:.3g}", number(one, "tflop_per_s")) : "");
    } else {
      row.push_back(median_cell(one, "batched"));
      row.push_back(time_text(number(one, "first_ns")));
    }
    rows.push_back(std::move(row));
  }
  return table(rows);
}

std::string verdicts(const Json& result) {
  std::string out;
  for (const Json& c : part(result, "comparisons")) {
    const Json& ratio = part(c, "ratio");
    out += fmt::format(
        "<p><span class=\"tag {0}\">{0}</span> {1} against {2}: {3:.3f}x its time ({4:.3f} to "
        "{5:.3f}); "
        "A against A {6:.3f}</p>\n",
        escape(words(c, "verdict")), escape(words(c, "a")), escape(words(c, "b")),
        number(ratio, "value"), number(ratio, "low"), number(ratio, "high"),
        number(part(c, "a_against_a"), "value"));
  }
  for (const Json& finding : part(result, "findings"))
    out += fmt::format(
        "<p><span class=\"tag {0}\">{0}</span> <b>{1}</b>{2}: {3}</p>\n",
        escape(words(finding, "weight")), escape(words(finding, "trap")),
        words(finding, "contender").empty() ? "" : " (" + escape(words(finding, "contender")) + ")",
        escape(words(finding, "text")));
  return out;
}

std::string distributions(const Json& result) {
  std::vector<Line> lines;
  for (const Json& one : part(result, "contenders")) {
    Line line{words(one, "name"), {}};
    for (const Json& sample : part(part(one, "cold"), "samples_ns"))
      if (sample.is_number()) line.points.push_back({sample.get<double>() / 1e3, 0, ""});
    lines.push_back(std::move(line));
  }
  return "<h3>Samples</h3>\n" + density_chart(lines, "us a call");
}

// Attained rate over intensity where flops are known, else rate over size.
std::string roofline(const Json& results) {
  std::vector<Line> lines;
  double copy = 0, gemm = 0, least = 1e300, most = 0;
  bool has_flops = false;
  for (const Json& result : results) {
    copy = std::max(copy, number(part(result, "roof"), "copy_gb_per_s"));
    gemm = std::max(gemm, number(part(result, "roof"), "gemm_tflop_per_s"));
    for (const Json& one : part(result, "contenders"))
      has_flops |= number(one, "flops") > 0 && number(one, "bytes") > 0;
  }
  if (copy <= 0) return "";
  for (const Json& result : results)
    for (const Json& one : part(result, "contenders")) {
      const double bytes = number(one, "bytes"), flops = number(one, "flops"),
                   ns = number(part(one, "cold"), "median_ns");
      if (bytes <= 0 || ns <= 0 || (has_flops && flops <= 0)) continue;
      const double x = has_flops ? flops / bytes : bytes,
                   y = has_flops ? flops / ns * 1e-3 : bytes / ns;
      least = std::min(least, x);
      most = std::max(most, x);
      const std::string name = words(one, "name");
      auto found = std::find_if(lines.begin(), lines.end(),
                                [&](const Line& line) { return line.name == name; });
      if (found == lines.end()) found = lines.insert(lines.end(), {name, {}});
      found->points.push_back(
          {x, y, fmt::format("{} {}: {:.4g}", name, words(result, "title"), y)});
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
  Axes axes{has_flops ? "operations a byte" : "bytes a call", has_flops ? "TFLOP/s" : "GB/s", true,
            has_flops, true};
  return "<h2>Roofline</h2>\n" + line_chart(lines, axes);
}

std::string history(const Json& results, const Json& past) {
  std::string out;
  for (const Json& result : results) {
    if (part(result, "contenders").empty()) continue;
    const std::string title = words(result, "title"),
                      name = words(part(result, "contenders").front(), "name");
    Line line{name, {}};
    for (const Json& old : past) {
      if (words(old, "title") != title || part(old, "contenders").empty()) continue;
      const Json& one = part(old, "contenders").front();
      const double us = number(part(one, "cold"), "median_ns") / 1e3;
      line.points.push_back({static_cast<double>(line.points.size() + 1), us,
                             fmt::format("{}: {} {}", words(old, "date"), time_text(us * 1e3),
                                         words(old, "source_hash").substr(0, 8))});
    }
    if (line.points.size() < 2) continue;
    out += "<h3>" + escape(title) + "</h3>\n" + line_chart({line}, {"run", "us a call"});
  }
  return out.empty() ? "" : "<h2>History</h2>\n" + out;
}

std::string machine(const Json& result) {
  const Json &device = part(result, "device"), &host = part(result, "machine"),
             &clocks = part(result, "clocks");
  std::vector<std::vector<std::string>> rows = {{"machine", ""}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) rows.push_back({name, escape(value)});
  };
  add("device", words(device, "name"));
  add("driver", words(device, "driver"));
  add("CUDA of the driver", words(device, "cuda"));
  if (clocks.is_object())
    add("SM clock", fmt::format("{:.0f} MHz ({:.0f} to {:.0f})", number(clocks, "median_mhz"),
                                number(clocks, "least_mhz"), number(clocks, "greatest_mhz")));
  add("host", words(host, "host"));
  add("CPU", words(host, "cpu"));
  for (const char* name : {"torch", "python"}) add(name, words(part(result, "versions"), name));
  add("kiln", words(result, "kiln"));
  add("date", words(result, "date"));
  return table(rows);
}

}  // namespace

std::string bench_page(const Json& value) {
  const Json results = value.is_object() && value.contains("results") ? value["results"]
                       : value.is_array()                             ? value
                                                                      : Json::array({value});
  const std::string kind = results.empty() ? "" : words(results.front(), "time");
  std::string body =
      fmt::format("<h1>Benchmarks</h1>\n<p class=\"soft\">{}</p>\n",
                  kind == "engine time"
                      ? "Engine time: how long the CPU takes to run the kernel's PTX. No GPU time."
                      : "GPU time between events, cold L2, medians with 95 % intervals.");
  for (const Json& result : results) {
    body += "<section class=\"card\">\n<h2 style=\"margin-top:0\">" +
            escape(words(result, "title")) + "</h2>\n";
    if (!words(result, "correct").empty())
      body += "<p class=\"soft\">Correct: " + escape(words(result, "correct")) + "</p>\n";
    body += contenders_table(result) + verdicts(result) + distributions(result) + "</section>\n";
  }
  body += roofline(results) + history(results, part(value, "history"));
  if (!results.empty()) body += "<h2>Where</h2>\n" + machine(results.front());
  return page({.title = "kiln bench", .body = body});
}

std::string cold_page(const Json& result) {
  std::string body = fmt::format(
      "<h1>The first call of {}</h1>\n<p class=\"soft\">Fresh processes; medians.</p>\n",
      escape(words(result, "title")));
  for (const Json& kind : part(result, "kinds")) {
    std::vector<Bar> bars;
    std::vector<std::vector<std::string>> rows = {{"stage", "median", "least", "greatest"}};
    double at = 0;
    for (const Json& stage : part(kind, "stages")) {
      const std::string name = words(stage, "name");
      if (!part(stage, "median_ns").is_number()) {
        rows.push_back({escape(name), escape(words(stage, "why")), "", ""});
        continue;
      }
      const double ns = number(stage, "median_ns");
      const bool after =
          name == "second call" || name == "steady call" || name == "second allocation";
      bars.push_back({name, after ? 0 : at, ns, time_text(ns)});
      if (after)
        bars.pop_back();
      else
        at += ns;
      rows.push_back({escape(name), time_text(ns), time_text(number(stage, "low_ns")),
                      time_text(number(stage, "high_ns"))});
    }
    body += fmt::format(
        "<section class=\"card\"><h2 style=\"margin-top:0\">{}: {} until the first result</h2>\n",
        escape(words(kind, "kind")), time_text(number(kind, "total_ns")));
    body += waterfall(bars, "time") + "<details><summary>figures</summary>" + table(rows) +
            "</details></section>\n";
  }
  const Json& advice = part(result, "advice");
  if (!advice.empty()) {
    body += "<h2>What helps, largest first</h2>\n<ul>\n";
    for (const Json& line : advice)
      if (line.is_string()) body += "<li>" + escape(line.get<std::string>()) + "</li>\n";
    body += "</ul>\n";
  }
  return page({.title = "kiln bench --cold", .body = body});
}

}  // namespace kiln::report
