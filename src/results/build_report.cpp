// SPDX-License-Identifier: Apache-2.0
#include "results/build_report.h"

#include "results/fields.h"

namespace kiln::results {

template <class Fields>
static void describe(Fields& field, ProgramRun& run) {
  field("program", run.program);
  field("begin_ns", run.begin_ns);
  field("seconds", run.seconds);
  field("cpu_seconds", run.cpu_seconds);
  field("peak_bytes", run.peak_bytes);
}

template <class Fields>
static void describe(Fields& field, BuildStep& step) {
  field("what", step.what);
  field("kind", step.kind);
  field("cache", step.cache);
  field("cache_why", step.cache_why);
  field("why", step.why);
  field("cache_key", step.cache_key);
  field("begin_ns", step.begin_ns);
  field("seconds", step.seconds);
  field("peak_bytes", step.peak_bytes);
  field("commands", step.commands);
  field("findings", step.findings);
}

template <class Fields>
static void describe(Fields& field, HeaderSeconds& header) {
  field("name", header.name);
  field("seconds", header.seconds);
}

template <class Fields>
static void describe(Fields& field, BuildReport& report) {
  field("name", report.name);
  field("rebuilt", report.rebuilt);
  field("seconds", report.seconds);
  field("architectures", report.architectures);
  field("trigger", report.trigger);
  field("lane", report.lane);
  field("why_lane", report.why_lane);
  field("why_variant", report.why_variant);
  field("jobs", report.jobs);
  field("why_jobs", report.why_jobs);
  field("cores", report.cores);
  field("available_bytes", report.available_bytes);
  field("steps", report.steps);
  field("headers", report.headers);
}

Json to_json(const BuildReport& report) { return write(report); }

Result<BuildReport> read_build_report(const Json& json, std::string_view source) {
  return read<BuildReport>(json, source);
}

}  // namespace kiln::results
