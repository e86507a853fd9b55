// SPDX-License-Identifier: Apache-2.0
// How does a person, or a viewer of traces, read the report of a build?
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/build.h"

namespace kiln::report {

// Greedy: the first lane that is free. A step starts when another ends, so that there are as many
// lanes as jobs ran at once.
std::vector<size_t> lanes_of(const std::vector<results::BuildStep>& steps) {
  std::vector<size_t> lanes;
  std::vector<double> busy_until;
  for (const results::BuildStep& step : steps) {
    const double begin = static_cast<double>(step.begin_ns) / 1e9;
    size_t lane = 0;
    while (lane < busy_until.size() && busy_until[lane] > begin + 1e-4) ++lane;
    if (lane == busy_until.size()) busy_until.push_back(0);
    busy_until[lane] = begin + step.seconds;
    lanes.push_back(lane);
  }
  return lanes;
}

int64_t first_ns(const std::vector<results::BuildStep>& steps) {
  int64_t first = steps.empty() ? 0 : steps[0].begin_ns;
  for (const results::BuildStep& step : steps) first = std::min(first, step.begin_ns);
  return first;
}

double seconds_outside_steps(const results::BuildReport& report) {
  if (report.steps.empty()) return 0;
  const int64_t begin = first_ns(report.steps);
  double end_s = 0;
  for (const results::BuildStep& step : report.steps)
    end_s = std::max(end_s, static_cast<double>(step.begin_ns - begin) / 1e9 + step.seconds);
  constexpr double kWorthSaying_s = 0.05;
  const double outside = report.seconds - end_s;
  return outside < kWorthSaying_s ? 0 : outside;
}

std::string build_text(const results::BuildReport& report) {
  const auto seconds_text = [](double seconds) { return time_text(seconds * 1e9); };
  const auto bytes = [](uint64_t count) { return bytes_text(static_cast<double>(count)); };
  std::string out = report.trigger == "nothing"
                        ? fmt::format("{:<14}{}\n", "up to date", "no input changed")
                        : fmt::format("{:<14}{}\n", "because", report.trigger);
  out += fmt::format("{:<14}{}: {}\n", "lane", report.lane, report.why_lane);
  out += fmt::format("{:<14}{}{}\n", "architectures", report.architectures,
                     report.why_variant.empty() ? "" : ": " + report.why_variant);
  if (report.jobs > 0)
    out += fmt::format("{:<14}{} ({}); {} cores, {} of memory available\n", "jobs", report.jobs,
                       report.why_jobs, report.cores, bytes(report.available_bytes));
  for (const results::BuildStep& step : report.steps) {
    out += fmt::format("{:<14}{} {}{}\n", "step", step.what, seconds_text(step.seconds),
                       step.peak_bytes ? ", " + bytes(step.peak_bytes) : "");
    if (!step.cache_why.empty()) out += fmt::format("{:<14}  {}\n", "", step.cache_why);
    for (const results::ProgramRun& run : step.commands)
      out += fmt::format("{:<14}  {} {}\n", "", run.program, seconds_text(run.seconds));
  }
  if (const double outside = seconds_outside_steps(report); outside > 0)
    out += fmt::format("{:<14}{}{}\n", "outside steps", seconds_text(outside),
                       report.headers.empty() ? "" : ", timing the headers included");
  for (const results::HeaderSeconds& header : report.headers)
    out += fmt::format("{:<14}{} {}\n", "header", header.name, seconds_text(header.seconds));
  return out;
}

Json build_trace(const results::BuildReport& report) {
  Json events = Json::array();
  const int64_t zero = first_ns(report.steps);
  const std::vector<size_t> lanes = lanes_of(report.steps);
  const auto event = [&](const std::string& name, const std::string& kind, int64_t begin_ns,
                         double seconds, size_t lane, Json more) {
    events.push_back({{"name", name},
                      {"cat", kind},
                      {"ph", "X"},
                      {"ts", static_cast<double>(begin_ns - zero) / 1e3},
                      {"dur", seconds * 1e6},
                      {"pid", 1},
                      {"tid", lane + 1},
                      {"args", std::move(more)}});
  };
  for (size_t i = 0; i < report.steps.size(); ++i) {
    const results::BuildStep& step = report.steps[i];
    event(step.what, step.kind, step.begin_ns, step.seconds, lanes[i],
          {{"cache", step.cache}, {"why", step.why}, {"peak_bytes", step.peak_bytes}});
    for (const results::ProgramRun& run : step.commands)
      event(run.program, "program", run.begin_ns, run.seconds, lanes[i],
            {{"cpu_seconds", run.cpu_seconds}, {"peak_bytes", run.peak_bytes}});
  }
  return {{"traceEvents", events}, {"displayTimeUnit", "ms"}};
}

}  // namespace kiln::report
