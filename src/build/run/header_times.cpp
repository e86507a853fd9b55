// SPDX-License-Identifier: Apache-2.0
// Which headers make a device compile slow?
#include "build/run/header_times.h"

#include <algorithm>
#include <map>

namespace kiln::build {

namespace {

constexpr double kSlowSeconds = 1.0;
constexpr size_t kMostHeaders = 10;

}  // namespace

std::vector<HeaderTime> slow_headers(const Work& work, const std::vector<StepReport>& reports) {
  const Step* slowest = nullptr;
  double seconds = kSlowSeconds;
  for (const StepReport& report : reports) {
    if (report.kind != "device" || report.commands.empty() || report.seconds < seconds) continue;
    for (const Step& step : work.graph.steps)
      if (step.key == report.key) slowest = &step;
    seconds = report.seconds;
  }
  if (!slowest) return {};
  sys::ProcessSpec spec;
  bool extended_lambda = false;
  for (const Source& source : work.plan.sources)
    if (source.file == slowest->source) extended_lambda = source.facts.extended_lambda;
  for (const std::string& word : texts(nvcc_command(work.plan, extended_lambda, false)))
    if (!word.starts_with("-gencode") && word != "-c") spec.arguments.push_back(word);
  std::string trace = (work.staging / "headers").string();
  for (const std::string& word :
       {std::string("-ptx"), "-arch=compute_" + slowest->arch, "--fdevice-time-trace=" + trace,
        std::string("-o"), (work.staging / "headers.ptx").string(), slowest->source})
    spec.arguments.push_back(word);
  spec.env = tool_environment(work.world.env);
  auto result = work.world.processes.run(spec);
  if (!result || result->exit_code != 0) return {};
  auto text = work.world.files.read(trace + ".json");
  return text ? parse_header_trace(*text) : std::vector<HeaderTime>();
}

std::vector<HeaderTime> parse_header_trace(std::string_view json_text) {
  auto json = parse_json(json_text, "a time trace");
  if (!json) return {};
  const Json& events =
      json->is_object() && json->contains("traceEvents") ? (*json)["traceEvents"] : *json;
  if (!events.is_array()) return {};
  std::map<std::string, double> seconds;
  for (const Json& event : events) {
    if (!event.is_object() || !event.contains("name") || event["name"] != "Processing Header File")
      continue;
    if (!event.contains("dur") || !event["dur"].is_number() || !event.contains("args")) continue;
    const Json& args = event["args"];
    if (!args.is_object() || !args.contains("detail") || !args["detail"].is_string()) continue;
    std::string name = fs::path(args["detail"].get<std::string>()).lexically_normal().string();
    seconds[name] = std::max(seconds[name], event["dur"].get<double>() / 1e6);
  }
  std::vector<HeaderTime> out;
  for (const auto& [name, time] : seconds) out.push_back({name, time});
  std::sort(out.begin(), out.end(),
            [](const HeaderTime& a, const HeaderTime& b) { return a.seconds > b.seconds; });
  if (out.size() > kMostHeaders) out.resize(kMostHeaders);
  return out;
}

}  // namespace kiln::build
