// SPDX-License-Identifier: Apache-2.0
#include "measure/result.h"

#include <algorithm>
#include <cmath>

namespace kiln::measure {
namespace {

// A tenth of a nanosecond is below what any clock here resolves.
double rounded(double ns) { return std::round(ns * 10) / 10; }

std::vector<double> thinned(Samples samples, size_t most) {
  std::vector<double> out;
  const size_t step = std::max<size_t>(1, (samples.size() + most - 1) / most);
  for (size_t i = 0; i < samples.size(); i += step) out.push_back(rounded(samples[i]));
  return out;
}

std::optional<results::Summary> summary_of(Samples samples) {
  if (samples.empty()) return std::nullopt;
  const Summary s = summarise(samples);
  results::Summary out;
  out.median_ns = s.median;
  out.low_ns = s.interval.low;
  out.high_ns = s.interval.high;
  out.count = static_cast<int64_t>(s.count);
  out.least_ns = s.least;
  out.greatest_ns = s.greatest;
  out.mean_ns = s.mean;
  out.trimmed_ns = s.trimmed;
  out.p05_ns = s.p05;
  out.p25_ns = s.p25;
  out.p75_ns = s.p75;
  out.p95_ns = s.p95;
  out.outliers = static_cast<int64_t>(s.outliers.low + s.outliers.high);
  out.far_outliers = static_cast<int64_t>(s.outliers.far);
  return out;
}

results::ColdSamples cold_of(const Series& cold, size_t most_samples) {
  results::ColdSamples out;
  static_cast<results::Summary&>(out) = summary_of(cold.ns).value_or(results::Summary());
  out.converged = cold.outcome == Progress::Converged;
  out.throttled = std::count(cold.throttled.begin(), cold.throttled.end(), 1);
  out.late = static_cast<int64_t>(cold.late);
  out.drift = drift(cold.ns);
  // The first tenth is the burst, the last one what the machine can keep up.
  const Samples all(cold.ns);
  const size_t tenth = std::max<size_t>(1, all.size() / 10);
  out.burst_ns = median(all.first(std::min(tenth, all.size())));
  out.sustained_ns = median(all.last(std::min(tenth, all.size())));
  out.samples_ns = thinned(cold.ns, most_samples);
  return out;
}

double threads_of(const KernelRecord& kernel) {
  double threads = 1;
  for (int i = 0; i < 3; ++i) threads *= static_cast<double>(kernel.grid[i]) * kernel.block[i];
  return threads;
}

results::KernelLaunch launch_of(const KernelRecord& kernel) {
  results::KernelLaunch out;
  out.name = kernel.name;
  out.ns = kernel.end_ns - kernel.begin_ns;
  out.grid.assign(std::begin(kernel.grid), std::end(kernel.grid));
  out.block.assign(std::begin(kernel.block), std::end(kernel.block));
  out.registers = kernel.registers;
  out.static_shared_bytes = kernel.static_shared_bytes;
  out.dynamic_shared_bytes = kernel.dynamic_shared_bytes;
  out.stream = static_cast<int64_t>(kernel.stream);
  return out;
}

// Rates of a CPU that interprets PTX would only mislead: the engine gets none.
void add_rates(const Timing& t, const Surroundings& around, results::Contender& out) {
  const double ns = median(t.cold.ns);
  if (!(ns > 0)) return;
  if (t.bytes > 0) out.gb_per_s = t.bytes / ns;
  if (t.flops > 0) out.tflop_per_s = t.flops / ns * 1e-3;
  if (around.copy_gbs > 0 && t.bytes > 0) out.of_copy = t.bytes / ns / around.copy_gbs;
  if (around.gemm_tflops > 0 && t.flops > 0) out.of_gemm = t.flops / ns * 1e-3 / around.gemm_tflops;
}

results::Contender contender_of(const Timing& t, size_t most_samples) {
  results::Contender out;
  out.name = t.name;
  out.cold = cold_of(t.cold, most_samples);
  out.hot = summary_of(t.hot);
  out.batched = summary_of(t.batched);
  out.batch_calls = t.batch_calls;
  out.graph = summary_of(t.graph);
  if (t.graph.empty()) out.graph_why = t.graph_why;
  out.launch = summary_of(t.launch);
  out.host_sync = summary_of(t.host_sync);
  out.plain_events = summary_of(t.plain_events);
  out.kernel = summary_of(t.kernel);
  if (t.kernel.empty()) out.kernel_why = t.kernel_why;
  if (t.cupti_clock > 0) out.cupti_clock = t.cupti_clock;
  if (!t.kernel_busy.empty()) out.kernel_busy_ns = median(t.kernel_busy);
  double threads = 0;
  for (const KernelRecord& kernel : t.kernels) {
    out.kernels.push_back(launch_of(kernel));
    threads += threads_of(kernel);
  }
  if (!t.kernels.empty())
    out.counts = results::LaunchCounts{static_cast<int64_t>(t.kernels.size()), threads};
  out.first_ns = t.first_ns;
  out.second_ns = t.second_ns;
  out.bytes = t.bytes;
  out.bytes_declared = t.bytes_declared;
  out.flops = t.flops;
  return out;
}

results::RatioInterval ratio_of(const Ratio& ratio) {
  return {ratio.value, ratio.interval.low, ratio.interval.high};
}

results::Clocks clocks_of(const Watch& watch) {
  const std::vector<double> mhz = sorted(watch.sm_mhz);
  results::Clocks out;
  out.median_mhz = quantile(mhz, 0.5);
  out.least_mhz = mhz.front();
  out.greatest_mhz = mhz.back();
  out.reasons = reason_names(watch.reasons);
  out.watts = watch.most_watts;
  out.celsius = watch.most_celsius;
  return out;
}

results::Device device_of(const DeviceFacts& facts) {
  return {facts.kind,         facts.name,     facts.index,           facts.driver,
          facts.cuda,         facts.compute,  facts.multiprocessors, facts.l2_bytes,
          facts.memory_bytes, facts.most_mhz, facts.peak_gbs,        facts.notes};
}

}  // namespace

results::BenchResult result_of(const Report& report, size_t most_samples) {
  const Surroundings& around = report.surroundings;
  const bool engine = report.device.kind == "engine";
  results::BenchResult out;
  out.time = engine ? "engine time" : "GPU time";
  out.device = device_of(report.device);
  for (const Timing& t : report.timings) {
    out.contenders.push_back(contender_of(t, most_samples));
    if (!engine) add_rates(t, around, out.contenders.back());
  }
  for (const Comparison& c : report.comparisons)
    out.comparisons.push_back({c.a, c.b, std::string(name_of(c.judgement.verdict)),
                               ratio_of(c.judgement.ratio), c.judgement.threshold,
                               ratio_of(c.judgement.same_with_self)});
  for (const Finding& finding : report.findings)
    out.findings.push_back(
        {finding.trap, std::string(name_of(finding.weight)), finding.contender, finding.text});
  out.refused = is_refused(report);
  if (!around.watch.sm_mhz.empty()) out.clocks = clocks_of(around.watch);
  out.roof = {around.copy_gbs, around.copy_same_gbs, around.gemm_tflops, around.gemm_why};
  out.empty_pair_ns = around.empty_pair_ns;
  out.harness_host_ns = around.own_host_ns;
  out.seconds = report.seconds;
  return out;
}

}  // namespace kiln::measure
