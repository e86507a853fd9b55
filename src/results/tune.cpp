// SPDX-License-Identifier: Apache-2.0
#include "results/tune.h"

#include "results/fields.h"

namespace kiln::results {

template <class Fields>
static void describe(Fields& field, TuneSpace& space) {
  field("params", space.params);
  field("where", space.where);
  field("size", space.size);
  field("allowed", space.allowed);
}

template <class Fields>
static void describe(Fields& field, TuneOutcome& outcome) {
  field("defines", outcome.defines);
  field("fate", outcome.fate);
  field.maybe("us", outcome.us);
  field.maybe("low_us", outcome.low_us);
  field.maybe("high_us", outcome.high_us);
  field.maybe("reason", outcome.reason);
  field.maybe("facts", outcome.facts);
}

template <class Fields>
static void describe(Fields& field, TuneFinalist& finalist) {
  field("defines", finalist.defines);
  field("us", finalist.us);
  field("low_us", finalist.low_us);
  field("high_us", finalist.high_us);
  field("ratio", finalist.ratio);
}

template <class Fields>
static void describe(Fields& field, TuneSeconds& seconds) {
  field("total", seconds.total);
  field("build", seconds.build);
  field("measure", seconds.measure);
  field("total_over_longer_lane", seconds.total_over_longer_lane);
}

template <class Fields>
static void describe(Fields& field, TuneResult& result) {
  field("name", result.name);
  field("op", result.op);
  field("arguments", result.arguments);
  field("check", result.check);
  field("device", result.device);
  field("date", result.date);
  field("kiln", result.kiln);
  field("kiln_tune_result", result.format);
  field("space", result.space);
  field("mode", result.mode);
  field("timed", result.timed);
  field.maybe("time_is_over", result.time_is_over);
  field("counts", result.counts);
  field("best", result.best);
  field("finalists", result.finalists);
  field("seconds", result.seconds);
  field.maybe("findings", result.findings);
  field("outcomes", result.outcomes);
}

Json to_json(const TuneResult& result) { return write(result); }

Result<TuneResult> read_tune(const Json& json, std::string_view source) {
  TRY(TuneResult result, read<TuneResult>(json, source));
  if (result.format != kTuneFormat)
    return Error{Fault::Work, fmt::format("cannot read {}", source),
                 fmt::format("its format is {}; this kiln reads {}", result.format, kTuneFormat),
                 "tune again with this version of kiln"};
  return result;
}

std::string device_fact(const TuneResult& result, const char* key) {
  if (!result.device.is_object()) return "";
  const auto found = result.device.find(key);
  return found != result.device.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace kiln::results
