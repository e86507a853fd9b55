// SPDX-License-Identifier: Apache-2.0
// How do the results of benchmarks become rows of Markdown and CSV?
#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/bench.h"

namespace kiln::report {
namespace {

using results::BenchResult;
using results::Contender;

std::string time_or_dash(const std::optional<results::Summary>& times) {
  return times ? time_text(times->median_ns) : "-";
}

std::string scaled_cell(const std::optional<double>& value, double factor, int digits) {
  return value ? fmt::format("{:.{}f}", factor * *value, digits) : "";
}

std::string markdown_row(const BenchResult& result, const Contender& one) {
  std::string against, verdict;
  for (const results::Comparison& c : result.comparisons)
    if (c.b == one.name) {
      against = fmt::format("{:.3f}x", 1 / c.ratio.value);
      verdict = c.verdict;
    }
  const double half_width =
      one.cold.median_ns > 0 ? 50 * (one.cold.high_ns - one.cold.low_ns) / one.cold.median_ns : 0;
  return fmt::format("| {} | {} | {} | {:.1f} % | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                     result.title.value_or(""), one.name, time_text(one.cold.median_ns), half_width,
                     time_or_dash(one.hot), time_or_dash(one.batched), time_or_dash(one.graph),
                     scaled_cell(one.gb_per_s, 1, 0), scaled_cell(one.of_copy, 100, 0),
                     scaled_cell(one.tflop_per_s, 1, 1), against, verdict);
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  return "\"" + text::replace_all(text, "\"", "\"\"") + "\"";
}

std::string csv_ns(const std::optional<results::Summary>& times) {
  return times ? fmt::format("{:.1f}", times->median_ns) : "";
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{:.6g}", *value) : "";
}

std::string csv_row(const BenchResult& result, const Contender& one) {
  return fmt::format(
      "{},{},{},{},{},{:.1f},{:.1f},{:.1f},{},{},{},{},{},{},{:.1f},{},{},{},{},{},{}\n",
      result.date.value_or(""), csv_cell(result.title.value_or("")), csv_cell(one.name),
      result.time, csv_cell(result.device.name), one.cold.median_ns, one.cold.low_ns,
      one.cold.high_ns, one.cold.count, csv_ns(one.hot), csv_ns(one.batched), csv_ns(one.graph),
      csv_ns(one.kernel), csv_ns(one.launch), one.first_ns, csv_number(one.bytes),
      csv_number(one.flops), csv_number(one.gb_per_s), csv_number(one.tflop_per_s),
      one.cold.converged, result.refused);
}

}  // namespace

std::string bench_markdown(const std::vector<BenchResult>& results) {
  std::string out =
      "| benchmark | contender | time | +- | hot L2 | in a row | graph | GB/s | of copy | TFLOP/s "
      "| against | verdict "
      "|\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const BenchResult& result : results)
    for (const Contender& one : result.contenders) out += markdown_row(result, one);
  if (results.empty()) return out;
  const BenchResult& first = results.front();
  return out + fmt::format("\n{} on {}; driver {}; {}; kiln {}\n", first.time, first.device.name,
                           first.device.driver.empty() ? "none" : first.device.driver,
                           first.date.value_or(""), first.kiln.value_or(""));
}

std::string bench_csv(const std::vector<BenchResult>& results) {
  std::string out =
      "date,benchmark,contender,time_kind,device,median_ns,low_ns,high_ns,samples,hot_ns,"
      "batched_ns,graph_ns,kernel_ns,launch_ns,first_ns,bytes,flops,gb_per_s,tflop_per_s,"
      "converged,refused\n";
  for (const BenchResult& result : results)
    for (const Contender& one : result.contenders) out += csv_row(result, one);
  return out;
}

}  // namespace kiln::report
