// SPDX-License-Identifier: Apache-2.0
#include "build/explain.h"

#include <fmt/format.h>

namespace kiln::build {
namespace {

// What a person learns about the cache at this step.
std::string cache_why(const StepReport& step) {
  switch (step.answer) {
    case Answer::Off:
      return "no cache";
    case Answer::Never:
      return "not cached: " + step.why;
    case Answer::Direct:
    case Answer::Content:
      return fmt::format("hit in the {}{}: key {}",
                         step.origin == Origin::Remote ? "shared cache" : "cache",
                         step.answer == Answer::Content ? ", by the same preprocessed text" : "",
                         step.cache_key.substr(0, 12));
    case Answer::Ran:
      break;
  }
  return step.why.empty() ? "" : "miss: " + step.why;
}

results::BuildStep step_of(const StepReport& step) {
  results::BuildStep out;
  out.what = step.what;
  out.kind = step.kind;
  out.cache = cache_word(step);
  out.cache_why = cache_why(step);
  out.why = step.why;
  out.cache_key = step.cache_key;
  out.begin_ns = step.begin_ns;
  out.seconds = step.seconds;
  out.peak_bytes = step.peak_bytes();
  for (const CommandRun& run : step.commands)
    out.commands.push_back(
        {run.program, run.begin_ns, run.seconds, run.cpu_seconds, run.peak_bytes});
  out.findings = step.findings;
  return out;
}

}  // namespace

results::BuildReport report_of(const Outcome& outcome) {
  const Explanation& e = outcome.explanation;
  results::BuildReport out;
  out.name = outcome.name;
  out.rebuilt = outcome.rebuilt;
  out.seconds = outcome.seconds;
  out.architectures = project::describe(outcome.arch);
  out.trigger = e.trigger;
  out.lane = e.lane;
  out.why_lane = e.why_lane;
  out.why_variant = e.why_variant;
  out.jobs = e.jobs;
  out.cores = e.cores;
  out.why_jobs = e.why_jobs;
  out.available_bytes = e.available_bytes;
  for (const StepReport& step : outcome.steps) out.steps.push_back(step_of(step));
  for (const HeaderTime& header : outcome.headers)
    out.headers.push_back({header.name, header.seconds});
  return out;
}

}  // namespace kiln::build
