// SPDX-License-Identifier: Apache-2.0
#include "results/counter_report.h"

#include <cmath>

#include "results/dims.h"
#include "results/fields.h"

namespace kiln::results {
namespace {

// Counts are whole numbers, and read as such.
Json number_of(double value) {
  constexpr double kMostWhole = 9007199254740992.0;
  if (std::trunc(value) == value && std::abs(value) < kMostWhole)
    return static_cast<int64_t>(value);
  return value;
}

template <class Fields>
void describe_numbers(Fields& field, const char* name, NamedNumbers& numbers) {
  Named<Json> named;
  for (const auto& [key, value] : numbers) named.emplace_back(key, number_of(value));
  field(name, named);
  numbers.clear();
  for (const auto& [key, value] : named)
    numbers.emplace_back(key, value.is_number() ? static_cast<double>(value) : NAN);
}

}  // namespace

template <class Fields>
static void describe(Fields& field, MetricFact& fact) {
  field("name", fact.name);
  field("tag", fact.tag);
  field("meaning", fact.meaning);
}

template <class Fields>
static void describe(Fields& field, CounterLine& line) {
  field("at", line.at);
  field("function", line.function);
  field("inlined_at", line.inlined_at);
  describe_numbers(field, "metrics", line.metrics);
}

template <class Fields>
static void describe(Fields& field, KernelResources& resources) {
  field("arch", resources.arch);
  field("registers", resources.registers);
  field("static_shared_bytes", resources.static_shared_bytes);
  field("stack_bytes", resources.stack_bytes);
  field("spill_store_bytes", resources.spill_store_bytes);
  field("spill_load_bytes", resources.spill_load_bytes);
  field("blocks", resources.blocks);
  field("occupancy", resources.occupancy);
  field("limiter", resources.limiter);
}

template <class Fields>
static void describe(Fields& field, Limit& limit) {
  field("resource", limit.resource);
  field("us", limit.us);
  field("work", limit.work);
}

template <class Fields>
static void describe(Fields& field, Bound& bound) {
  field("limits", bound.limits);
  field("flops", bound.flops);
  field("dram_bytes", bound.dram_bytes);
  field("peak_gflops", bound.peak_gflops);
  field("peak_gb_per_s", bound.peak_gb_per_s);
  field("predicted_us", bound.predicted_us);
  field("predicted_by", bound.predicted_by);
}

template <class Fields>
static void describe(Fields& field, Advice& advice) {
  field("at", advice.at);
  field("text", advice.text);
}

template <class Fields>
static void describe(Fields& field, SassChange& change) {
  field("of", change.of);
  field("ptx", change.ptx);
  field("absent", change.absent);
  field("other_width", change.other_width);
  field("copies", change.copies);
  field("moved", change.moved);
  field("added", change.added);
}

template <class Fields>
static void describe(Fields& field, LaunchReport& launch) {
  field("number", launch.number);
  field("kernel", launch.kernel);
  describe_dims(field, "grid", launch.grid);
  describe_dims(field, "block", launch.block);
  field("code", launch.code);
  describe_numbers(field, "metrics", launch.metrics);
  field("lines", launch.lines);
  field("resources", launch.resources);
  field("no_resources", launch.no_resources);
  field.maybe("sass", launch.sass);
  field("bound", launch.bound);
  field("advice", launch.advice);
}

template <class Fields>
static void describe(Fields& field, CounterReport& report) {
  field("version", report.version);
  field("gpu", report.gpu);
  field("gpu_source", report.gpu_source);
  field("launches", report.launches);
  field("lines", report.lines);
  field("facts", report.facts);
}

Json to_json(const CounterReport& report) { return write(report); }

Result<CounterReport> read_counter_report(const Json& json, std::string_view source) {
  return read<CounterReport>(json, source);
}

const double* find_number(const NamedNumbers& numbers, std::string_view name) {
  for (const auto& [key, value] : numbers) {
    if (key == name) return &value;
  }
  return nullptr;
}

}  // namespace kiln::results
