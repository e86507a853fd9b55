// SPDX-License-Identifier: Apache-2.0
// How does a person read the result of a benchmark on a terminal?
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/units.h"
#include "report/bench.h"

namespace kiln::report {
namespace {

using results::BenchResult;
using results::Contender;
using Times = std::optional<results::Summary> Contender::*;

double half_width_percent(const results::Summary& summary) {
  return summary.median_ns > 0 ? 50 * (summary.high_ns - summary.low_ns) / summary.median_ns : 0;
}

// A label may be a whole expression; one that is cut shows it.
std::string label(const std::string& name, size_t width) {
  return name.size() <= width ? name : name.substr(0, width - 3) + "...";
}
constexpr size_t kLabelWidth = 24, kColumnWidth = 14;

std::string contender_line(const Contender& one, bool engine) {
  std::string line = fmt::format("  {:<24} {:>9}  +-{:.1f} %", label(one.name, kLabelWidth),
                                 time_text(one.cold.median_ns), half_width_percent(one.cold));
  if (!one.cold.converged) line += " (not converged)";
  line += fmt::format(", {} samples", one.cold.count);
  if (engine) return line + "\n";
  if (one.kernel) line += fmt::format(", its kernels {}", time_text(one.kernel->median_ns));
  if (one.gb_per_s) line += ", " + rate_text(*one.gb_per_s);
  if (one.of_copy) line += fmt::format(" = {:.0f} % of a copy", 100 * *one.of_copy);
  if (one.tflop_per_s) line += fmt::format(", {:.3g} TFLOP/s", *one.tflop_per_s);
  if (one.of_gemm) line += fmt::format(" = {:.0f} % of a matrix product", 100 * *one.of_gemm);
  return line + "\n";
}

struct TimesRow {
  const char* name;
  Times times;
};
constexpr TimesRow kEngineRows[] = {{"in a row", &Contender::batched},
                                    {"its kernels (engine)", &Contender::kernel}};
constexpr TimesRow kGpuRows[] = {
    {"isolated, hot L2", &Contender::hot},  {"in a row", &Contender::batched},
    {"in a CUDA graph", &Contender::graph}, {"its kernels (CUPTI)", &Contender::kernel},
    {"launch (host)", &Contender::launch},  {"call and wait (host)", &Contender::host_sync}};

std::string times_table(const BenchResult& result) {
  const bool engine = result.on_engine();
  std::string out = fmt::format("  {:<24}", "");
  const auto cell_of = [&](const Contender& one, const std::string& text) {
    const size_t width = std::clamp(one.name.size(), kColumnWidth, kLabelWidth);
    return fmt::format(" {:>{}}", text, width);
  };
  for (const Contender& one : result.contenders) out += cell_of(one, label(one.name, kLabelWidth));
  const auto row = [&](std::string_view name, auto&& cell) {
    out += fmt::format("\n  {:<24}", name);
    for (const Contender& one : result.contenders) out += cell_of(one, cell(one));
  };
  row(engine ? "a call" : "isolated, cold L2",
      [](const Contender& one) { return time_text(one.cold.median_ns); });
  for (const TimesRow& each :
       engine ? std::span<const TimesRow>(kEngineRows) : std::span<const TimesRow>(kGpuRows)) {
    if (std::ranges::none_of(result.contenders,
                             [&](const Contender& one) { return (one.*each.times).has_value(); }))
      continue;
    row(each.name, [&](const Contender& one) {
      const std::optional<results::Summary>& times = one.*each.times;
      return times ? time_text(times->median_ns) : "-";
    });
  }
  row("first call (host)", [](const Contender& one) { return time_text(one.first_ns); });
  return out + "\n";
}

std::string size_text(const std::vector<int64_t>& sizes) {
  std::string text;
  for (int64_t size : sizes) text += fmt::format("{}{}", text.empty() ? "" : "x", size);
  while (text.ends_with("x1")) text.resize(text.size() - 2);
  return text;
}

// What the engine ran for one call: the same on every machine, as its time is not.
std::string engine_counts(const Contender& one) {
  if (!one.counts) return "";
  std::string out = fmt::format(
      "  {} on the engine, per call: {} launch{} of {:.0f} threads in total\n", one.name,
      one.counts->launches, one.counts->launches == 1 ? "" : "es", one.counts->threads);
  for (const results::KernelLaunch& kernel : one.kernels)
    out += fmt::format("    {}: {} block{} of {}, {}\n", kernel.name, size_text(kernel.grid),
                       size_text(kernel.grid) == "1" ? "" : "s", size_text(kernel.block),
                       time_text(kernel.ns));
  return out;
}

std::string comparison_line(const results::Comparison& c, bool color) {
  std::string verdict = c.verdict;
  if (color && verdict == "SLOWER") verdict = "\x1b[31m" + verdict + "\x1b[0m";
  if (color && verdict == "FASTER") verdict = "\x1b[32m" + verdict + "\x1b[0m";
  return fmt::format(
      "  {} against {}: {}, {:.3f}x its time ({:.3f} to {:.3f}; noise floor {:.1f} %)\n", c.a, c.b,
      verdict, c.ratio.value, c.ratio.low, c.ratio.high, 100 * c.threshold);
}

std::string machine_lines(const BenchResult& result) {
  std::string out;
  if (const auto& clocks = result.clocks) {
    out += fmt::format("  clock {:.0f} MHz ({:.0f} to {:.0f})", clocks->median_mhz,
                       clocks->least_mhz, clocks->greatest_mhz);
    if (clocks->watts > 0)
      out += fmt::format(", {:.0f} W, {:.0f} C", clocks->watts, clocks->celsius);
    out += "\n";
  }
  if (result.on_engine()) return out;
  const results::Roof& roof = result.roof;
  if (roof.copy_gb_per_s > 0) {
    out += "  roof of this run: a copy " + rate_text(roof.copy_gb_per_s);
    if (roof.copy_same_size_gb_per_s > 0)
      out += fmt::format(" ({} at this size)", rate_text(roof.copy_same_size_gb_per_s));
    if (roof.gemm_tflop_per_s > 0)
      out += fmt::format(", a bf16 matrix product {:.0f} TFLOP/s", roof.gemm_tflop_per_s);
    out += "\n";
  }
  return out +
         fmt::format("  two events with nothing in between: {} (included in every time above)\n",
                     time_text(result.empty_pair_ns));
}

// Beside the first contender's time, where that is a GPU's.
std::string bound_line(const BenchResult& result) {
  if (!result.bound) return "";
  const results::BenchBound& bound = *result.bound;
  std::string out = fmt::format("  lower bound on {}: {}, limited by {} ({})", bound.gpu,
                                time_text(1e3 * bound.us), bound.by, bound.work);
  if (bound.by.empty()) out = fmt::format("  lower bound on {}: none", bound.gpu);
  if (!result.on_engine() && bound.us > 0)
    out += fmt::format("; the time is {:.2f}x of it",
                       result.contenders.front().cold.median_ns / 1e3 / bound.us);
  return out + "\n";
}

std::string finding_line(const results::BenchFinding& finding, bool color) {
  std::string weight = finding.weight;
  if (color && weight != "note") weight = "\x1b[33m" + weight + "\x1b[0m";
  return fmt::format("  {} ({}{}): {}\n", weight, finding.trap,
                     finding.contender.empty() ? "" : ", " + finding.contender, finding.text);
}

}  // namespace

std::string bench_text(const BenchResult& result, bool color) {
  const bool engine = result.on_engine();
  std::string out =
      fmt::format("{}: {} on {}\n", result.title.value_or("benchmark"),
                  engine ? "CPU engine time (not GPU time)" : "GPU time", result.device.name);
  if (!result.correct.value_or("").empty()) out += "  correct: " + *result.correct + "\n";
  for (const Contender& one : result.contenders) out += contender_line(one, engine);
  out += times_table(result);
  out += bound_line(result);
  if (engine)
    for (const Contender& one : result.contenders) out += engine_counts(one);
  for (const results::Comparison& c : result.comparisons) out += comparison_line(c, color);
  out += machine_lines(result);
  for (const results::BenchFinding& finding : result.findings) out += finding_line(finding, color);
  return out;
}

}  // namespace kiln::report
