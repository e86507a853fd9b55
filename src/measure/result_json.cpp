// SPDX-License-Identifier: Apache-2.0
// How does a report become JSON?
#include <algorithm>
#include <cmath>

#include "measure/result.h"

namespace kiln::measure {
namespace {

// A tenth of a nanosecond is below what any clock here resolves.
double rounded(double ns) { return std::round(ns * 10) / 10; }

Json thinned(Samples samples, size_t most) {
  Json out = Json::array();
  const size_t step = std::max<size_t>(1, (samples.size() + most - 1) / most);
  for (size_t i = 0; i < samples.size(); i += step) out.push_back(rounded(samples[i]));
  return out;
}

Json summary_json(Samples samples) {
  if (samples.empty()) return nullptr;
  const Summary s = summarise(samples);
  return {{"median_ns", s.median},
          {"low_ns", s.interval.low},
          {"high_ns", s.interval.high},
          {"count", s.count},
          {"least_ns", s.least},
          {"greatest_ns", s.greatest},
          {"mean_ns", s.mean},
          {"trimmed_ns", s.trimmed},
          {"p05_ns", s.p05},
          {"p25_ns", s.p25},
          {"p75_ns", s.p75},
          {"p95_ns", s.p95},
          {"outliers", s.outliers.low + s.outliers.high},
          {"far_outliers", s.outliers.far}};
}

double threads_of(const KernelRecord& kernel) {
  double threads = 1;
  for (int i = 0; i < 3; ++i) threads *= static_cast<double>(kernel.grid[i]) * kernel.block[i];
  return threads;
}

Json kernel_json(const KernelRecord& kernel) {
  return {{"name", kernel.name},
          {"ns", kernel.end_ns - kernel.begin_ns},
          {"grid", {kernel.grid[0], kernel.grid[1], kernel.grid[2]}},
          {"block", {kernel.block[0], kernel.block[1], kernel.block[2]}},
          {"registers", kernel.registers},
          {"static_shared_bytes", kernel.static_shared_bytes},
          {"dynamic_shared_bytes", kernel.dynamic_shared_bytes},
          {"stream", kernel.stream}};
}

Json timing_json(const Timing& t, const Surroundings& around, bool is_gpu, size_t most_samples) {
  Json json{{"name", t.name}};
  json["cold"] = summary_json(t.cold.ns);
  json["cold"]["converged"] = t.cold.outcome == Progress::Converged;
  json["cold"]["throttled"] = std::count(t.cold.throttled.begin(), t.cold.throttled.end(), 1);
  json["cold"]["late"] = t.cold.late;
  json["cold"]["drift"] = drift(t.cold.ns);
  // The first tenth is the burst, the last one what the machine can keep up.
  const Samples all(t.cold.ns);
  const size_t tenth = std::max<size_t>(1, all.size() / 10);
  json["cold"]["burst_ns"] = median(all.first(std::min(tenth, all.size())));
  json["cold"]["sustained_ns"] = median(all.last(std::min(tenth, all.size())));
  json["cold"]["samples_ns"] = thinned(t.cold.ns, most_samples);
  json["hot"] = summary_json(t.hot);
  json["batched"] = summary_json(t.batched);
  json["batch_calls"] = t.batch_calls;
  json["graph"] = summary_json(t.graph);
  if (t.graph.empty()) json["graph_why"] = t.graph_why;
  json["launch"] = summary_json(t.launch);
  json["host_sync"] = summary_json(t.host_sync);
  json["plain_events"] = summary_json(t.plain_events);
  json["kernel"] = summary_json(t.kernel);
  if (t.kernel.empty()) json["kernel_why"] = t.kernel_why;
  if (t.cupti_clock > 0) json["cupti_clock"] = t.cupti_clock;
  json["kernel_busy_ns"] = t.kernel_busy.empty() ? Json() : Json(median(t.kernel_busy));
  Json kernels = Json::array();
  for (const KernelRecord& kernel : t.kernels) kernels.push_back(kernel_json(kernel));
  json["kernels"] = kernels;
  double threads = 0;
  for (const KernelRecord& kernel : t.kernels) threads += threads_of(kernel);
  if (!t.kernels.empty()) json["counts"] = {{"launches", t.kernels.size()}, {"threads", threads}};
  json["first_ns"] = t.first_ns;
  json["second_ns"] = t.second_ns;
  json["bytes"] = t.bytes;
  json["bytes_declared"] = t.bytes_declared;
  json["flops"] = t.flops;
  const double ns = median(t.cold.ns);
  if (!is_gpu) return json;  // rates of a CPU that interprets PTX would only mislead
  if (t.bytes > 0 && ns > 0) json["gb_per_s"] = t.bytes / ns;
  if (t.flops > 0 && ns > 0) json["tflop_per_s"] = t.flops / ns * 1e-3;
  if (around.copy_gbs > 0 && t.bytes > 0 && ns > 0)
    json["of_copy"] = t.bytes / ns / around.copy_gbs;
  if (around.gemm_tflops > 0 && t.flops > 0 && ns > 0)
    json["of_gemm"] = t.flops / ns * 1e-3 / around.gemm_tflops;
  return json;
}

Json ratio_json(const Ratio& ratio) {
  return {{"value", ratio.value}, {"low", ratio.interval.low}, {"high", ratio.interval.high}};
}

}  // namespace

Json to_json(const Report& report, size_t most_samples) {
  const Surroundings& around = report.surroundings;
  Json contenders = Json::array(), comparisons = Json::array(), findings = Json::array();
  for (const Timing& t : report.timings)
    contenders.push_back(timing_json(t, around, report.device.kind != "engine", most_samples));
  for (const Comparison& c : report.comparisons)
    comparisons.push_back({{"a", c.a},
                           {"b", c.b},
                           {"verdict", name_of(c.judgement.verdict)},
                           {"ratio", ratio_json(c.judgement.ratio)},
                           {"threshold", c.judgement.threshold},
                           {"a_against_a", ratio_json(c.judgement.same_with_self)}});
  for (const Finding& finding : report.findings)
    findings.push_back({{"trap", finding.trap},
                        {"weight", name_of(finding.weight)},
                        {"contender", finding.contender},
                        {"text", finding.text}});
  Json clocks = nullptr;
  if (!around.watch.sm_mhz.empty()) {
    const std::vector<double> mhz = sorted(around.watch.sm_mhz);
    clocks = {{"median_mhz", quantile(mhz, 0.5)}, {"least_mhz", mhz.front()},
              {"greatest_mhz", mhz.back()},       {"reasons", reason_names(around.watch.reasons)},
              {"watts", around.watch.most_watts}, {"celsius", around.watch.most_celsius}};
  }
  return {{"format", kResultFormat},
          {"time", report.device.kind == "engine" ? "engine time" : "GPU time"},
          {"device", to_json(report.device)},
          {"contenders", contenders},
          {"comparisons", comparisons},
          {"findings", findings},
          {"refused", is_refused(report)},
          {"clocks", clocks},
          {"roof",
           {{"copy_gb_per_s", around.copy_gbs},
            {"copy_same_size_gb_per_s", around.copy_same_gbs},
            {"gemm_tflop_per_s", around.gemm_tflops},
            {"gemm_why", around.gemm_why}}},
          {"empty_pair_ns", around.empty_pair_ns},
          {"harness_host_ns", around.own_host_ns},
          {"seconds", report.seconds}};
}

std::string time_kind(const Json& result) { return result.value("time", "GPU time"); }

}  // namespace kiln::measure
