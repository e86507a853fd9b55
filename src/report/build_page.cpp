// SPDX-License-Identifier: Apache-2.0
// What does the page of a build show? Steps over time, the programs that each ran, and both as a
// table.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "report/build.h"
#include "report/look.h"
#include "report/page.h"

namespace kiln::report {
namespace {

constexpr int kChartWidth = 1200, kChartLeft = 10, kChartTop = 20, kLane = 34;
constexpr double kLetter = 6.5;  // pixels, of a label in a bar

// The wide bars are steps, the narrow ones below them the programs that each ran.
struct BarColor {
  std::string_view of, color;
};
constexpr std::array<BarColor, 8> kBarColors = {{{"from the cache", "#8bc48b"},
                                                 {"device code", "#e8923a"},
                                                 {"pack and link", "#a78bd4"},
                                                 {"host code", "#5b9bd5"},
                                                 {"cicc, nvrtc", "#b8601a"},
                                                 {"ptxas", "#d94f4f"},
                                                 {"cudafe++", "#2f6da8"},
                                                 {"other programs", "#7f8c99"}}};

std::string_view color_of_step(const results::BuildStep& step) {
  if (step.cache != "made") return kBarColors[0].color;
  if (step.kind == "device" || step.kind == "slice") return kBarColors[1].color;
  if (step.kind == "link" || step.kind == "fat") return kBarColors[2].color;
  return kBarColors[3].color;
}

std::string_view color_of_program(std::string_view program) {
  if (program == "cicc" || program == "nvrtc") return kBarColors[4].color;
  if (program == "ptxas") return kBarColors[5].color;
  if (program == "cudafe++") return kBarColors[6].color;
  return kBarColors[7].color;
}

std::string colors_key() {
  std::string out = "<div class=\"key\">";
  for (const BarColor& one : kBarColors)
    out += fmt::format("<span><i style=\"background:{}\"></i>{}</span>", one.color, one.of);
  return out + "</div>\n";
}

std::string seconds_cell(double seconds) { return time_text(seconds * 1e9); }

std::string step_bar(double x, double y, double width, double height, std::string_view color,
                     std::string_view tip) {
  return fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "fill=\"{}\"><title>{}</title></rect>",
      x, y, std::max(width, 1.0), height, color, escape(tip));
}

std::string time_axis(double span_s, int height) {
  std::string out;
  for (int tick = 0; tick <= 10; ++tick)
    out += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"16\" y2=\"{1}\"/>"
        "<text x=\"{0:.1f}\" y=\"11\" text-anchor=\"{2}\">{3:.2f} s</text>",
        kChartLeft + (kChartWidth - 2 * kChartLeft) * tick / 10.0, height,
        tick == 0    ? "start"
        : tick == 10 ? "end"
                     : "middle",
        span_s * tick / 10);
  return out;
}

std::string steps_chart(const std::vector<results::BuildStep>& steps) {
  const int64_t zero = first_ns(steps);
  const auto since = [&](int64_t ns) { return static_cast<double>(ns - zero) / 1e9; };
  double span_s = 1e-3;
  for (const results::BuildStep& step : steps)
    span_s = std::max(span_s, since(step.begin_ns) + step.seconds);
  const double scale = (kChartWidth - 2 * kChartLeft) / span_s;
  const std::vector<size_t> lanes = lanes_of(steps);
  const size_t count = lanes.empty() ? 0 : *std::max_element(lanes.begin(), lanes.end()) + 1;
  const int height = static_cast<int>(count) * kLane + kChartTop + 10;
  std::string out = time_axis(span_s, height);
  for (size_t i = 0; i < steps.size(); ++i) {
    const results::BuildStep& step = steps[i];
    const double x = kChartLeft + since(step.begin_ns) * scale,
                 y = kChartTop + static_cast<double>(lanes[i]) * kLane;
    out += step_bar(x, y, step.seconds * scale, 16, color_of_step(step),
                    fmt::format("{}: {} ({})", step.what, seconds_cell(step.seconds), step.cache));
    for (const results::ProgramRun& run : step.commands)
      out += step_bar(kChartLeft + since(run.begin_ns) * scale, y + 17, run.seconds * scale, 8,
                      color_of_program(run.program),
                      fmt::format("{}: {}, {} of CPU, {}", run.program, seconds_cell(run.seconds),
                                  seconds_cell(run.cpu_seconds),
                                  bytes_text(static_cast<double>(run.peak_bytes))));
    const auto room = static_cast<size_t>(std::max(0.0, step.seconds * scale / kLetter));
    if (room > 4)
      out += fmt::format("<text class=\"in\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x + 4, y + 12,
                         escape(shortened(step.what, room)));
  }
  return fmt::format(
      "<div class=\"wide\"><svg class=\"steps\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"steps over time\">{}</svg></div>\n",
      kChartWidth, height, out);
}

std::string steps_table(const std::vector<results::BuildStep>& steps) {
  std::vector<std::vector<std::string>> rows = {{"step", "time", "cache", "memory", "programs"}};
  for (const results::BuildStep& step : steps) {
    std::string programs;
    for (const results::ProgramRun& run : step.commands)
      programs += fmt::format("{}{} {}", programs.empty() ? "" : ", ", run.program,
                              seconds_cell(run.seconds));
    rows.push_back({escape(step.what), seconds_cell(step.seconds), escape(step.cache),
                    step.peak_bytes ? bytes_text(static_cast<double>(step.peak_bytes)) : "",
                    escape(programs)});
  }
  return table(rows, "tntnt");
}

std::string headers_table(const std::vector<results::HeaderSeconds>& headers) {
  if (headers.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"header", "time"}};
  for (const results::HeaderSeconds& header : headers)
    rows.push_back({escape(header.name), seconds_cell(header.seconds)});
  return "<h2>Slow headers</h2>\n<p class=\"soft\">Headers of device code, timed by compiling it "
         "once more.</p>\n" +
         table(rows);
}

}  // namespace

std::string build_page(const results::BuildReport& report) {
  std::string body = fmt::format("<h1>kiln build {}</h1>\n<p class=\"soft\">{} in {}, {}",
                                 escape(report.name), report.rebuilt ? "built" : "nothing changed",
                                 seconds_cell(report.seconds), escape(report.architectures));
  if (report.jobs > 0) body += fmt::format("; {} jobs ({})", report.jobs, escape(report.why_jobs));
  body += fmt::format("</p>\n<p class=\"soft\">{} lane: {}</p>\n", escape(report.lane),
                      escape(report.why_lane));
  if (report.steps.empty())
    body += "<p>No step had to run.</p>\n";
  else
    body +=
        steps_chart(report.steps) + colors_key() + "<h2>Steps</h2>\n" + steps_table(report.steps);
  body += headers_table(report.headers);
  return page({.title = "kiln build " + report.name, .body = body, .style = kLook_build_css});
}

}  // namespace kiln::report
