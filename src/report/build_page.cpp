// SPDX-License-Identifier: Apache-2.0
// What does the page of a build show? Steps over time, the programs that each ran, and both as a
// table.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/units.h"
#include "report/build.h"
#include "report/charts/timeline.h"
#include "report/look.h"
#include "report/page.h"

namespace kiln::report {
namespace {

constexpr double kBuildLane = 34;

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

std::string steps_chart(const std::vector<results::BuildStep>& steps) {
  const int64_t zero = first_ns(steps);
  const auto since_us = [&](int64_t ns) { return static_cast<double>(ns - zero) / 1e3; };
  const std::vector<size_t> lanes = lanes_of(steps);
  std::vector<TimeSpan> spans;
  for (size_t i = 0; i < steps.size(); ++i) {
    const results::BuildStep& step = steps[i];
    const double top = static_cast<double>(lanes[i]) * kBuildLane;
    spans.push_back({since_us(step.begin_ns), step.seconds * 1e6, top, 16,
                     std::string(color_of_step(step)), step.what,
                     fmt::format("{} ({})", seconds_cell(step.seconds), step.cache)});
    for (const results::ProgramRun& run : step.commands)
      spans.push_back({since_us(run.begin_ns), run.seconds * 1e6, top + 17, 8,
                       std::string(color_of_program(run.program)), run.program,
                       fmt::format("{}, {} of CPU, {}", seconds_cell(run.seconds),
                                   seconds_cell(run.cpu_seconds),
                                   bytes_text(static_cast<double>(run.peak_bytes))),
                       false});
  }
  return timeline_picture(spans, {}, "steps of the build over time");
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
  body += fmt::format("</p>\n<p class=\"soft\">{} ({})</p>\n",
                      report.lane == "full" ? "full build" : escape(report.lane) + " lane",
                      escape(report.why_lane));
  const double outside = seconds_outside_steps(report);
  if (outside > 0)
    body += fmt::format(
        "<p class=\"soft\">{} of it outside the steps: reading what changed, starting "
        "ninja{}</p>\n",
        seconds_cell(outside), report.headers.empty() ? "." : ", timing the headers.");
  if (report.steps.empty())
    body += "<p>No step had to run.</p>\n";
  else
    body +=
        steps_chart(report.steps) + colors_key() + "<h2>Steps</h2>\n" + steps_table(report.steps);
  body += headers_table(report.headers);
  return page({.title = "kiln build " + report.name,
               .body = body,
               .style = kLook_timeline_css,
               .script = kLook_timeline_js});
}

}  // namespace kiln::report
