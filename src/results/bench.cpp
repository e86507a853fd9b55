// SPDX-License-Identifier: Apache-2.0
#include "results/bench.h"

#include "results/fields.h"

namespace kiln::results {

template <class Fields>
static void describe(Fields& field, Summary& s) {
  field("median_ns", s.median_ns);
  field("low_ns", s.low_ns);
  field("high_ns", s.high_ns);
  field("count", s.count);
  field("least_ns", s.least_ns);
  field("greatest_ns", s.greatest_ns);
  field("mean_ns", s.mean_ns);
  field("trimmed_ns", s.trimmed_ns);
  field("p05_ns", s.p05_ns);
  field("p25_ns", s.p25_ns);
  field("p75_ns", s.p75_ns);
  field("p95_ns", s.p95_ns);
  field("outliers", s.outliers);
  field("far_outliers", s.far_outliers);
}

template <class Fields>
static void describe(Fields& field, ColdSamples& s) {
  describe(field, static_cast<Summary&>(s));
  field("converged", s.converged);
  field("throttled", s.throttled);
  field("late", s.late);
  field("drift", s.drift);
  field("burst_ns", s.burst_ns);
  field("sustained_ns", s.sustained_ns);
  field("samples_ns", s.samples_ns);
}

template <class Fields>
static void describe(Fields& field, KernelLaunch& kernel) {
  field("name", kernel.name);
  field("ns", kernel.ns);
  field("grid", kernel.grid);
  field("block", kernel.block);
  field("registers", kernel.registers);
  field("static_shared_bytes", kernel.static_shared_bytes);
  field("dynamic_shared_bytes", kernel.dynamic_shared_bytes);
  field("stream", kernel.stream);
}

template <class Fields>
static void describe(Fields& field, LaunchCounts& counts) {
  field("launches", counts.launches);
  field("threads", counts.threads);
}

template <class Fields>
static void describe(Fields& field, Contender& one) {
  field("name", one.name);
  field("cold", one.cold);
  field("hot", one.hot);
  field("batched", one.batched);
  field("batch_calls", one.batch_calls);
  field("graph", one.graph);
  field.maybe("graph_why", one.graph_why);
  field("launch", one.launch);
  field("host_sync", one.host_sync);
  field("plain_events", one.plain_events);
  field("kernel", one.kernel);
  field.maybe("kernel_why", one.kernel_why);
  field.maybe("cupti_clock", one.cupti_clock);
  field("kernel_busy_ns", one.kernel_busy_ns);
  field("kernels", one.kernels);
  field.maybe("counts", one.counts);
  field("first_ns", one.first_ns);
  field("second_ns", one.second_ns);
  field("bytes", one.bytes);
  field("bytes_declared", one.bytes_declared);
  field("flops", one.flops);
  field.maybe("gb_per_s", one.gb_per_s);
  field.maybe("tflop_per_s", one.tflop_per_s);
  field.maybe("of_copy", one.of_copy);
  field.maybe("of_gemm", one.of_gemm);
}

template <class Fields>
static void describe(Fields& field, RatioInterval& ratio) {
  field("value", ratio.value);
  field("low", ratio.low);
  field("high", ratio.high);
}

template <class Fields>
static void describe(Fields& field, Comparison& c) {
  field("a", c.a);
  field("b", c.b);
  field("verdict", c.verdict);
  field("ratio", c.ratio);
  field("threshold", c.threshold);
  field("a_against_a", c.a_against_a);
}

template <class Fields>
static void describe(Fields& field, BenchFinding& finding) {
  field("trap", finding.trap);
  field("weight", finding.weight);
  field("contender", finding.contender);
  field("text", finding.text);
}

template <class Fields>
static void describe(Fields& field, Clocks& clocks) {
  field("median_mhz", clocks.median_mhz);
  field("least_mhz", clocks.least_mhz);
  field("greatest_mhz", clocks.greatest_mhz);
  field("reasons", clocks.reasons);
  field("watts", clocks.watts);
  field("celsius", clocks.celsius);
}

template <class Fields>
static void describe(Fields& field, Roof& roof) {
  field("copy_gb_per_s", roof.copy_gb_per_s);
  field("copy_same_size_gb_per_s", roof.copy_same_size_gb_per_s);
  field("gemm_tflop_per_s", roof.gemm_tflop_per_s);
  field("gemm_why", roof.gemm_why);
}

template <class Fields>
static void describe(Fields& field, Device& device) {
  field("kind", device.kind);
  field("name", device.name);
  field("index", device.index);
  field("driver", device.driver);
  field("cuda", device.cuda);
  field("compute", device.compute);
  field("multiprocessors", device.multiprocessors);
  field("l2_bytes", device.l2_bytes);
  field("memory_bytes", device.memory_bytes);
  field("most_mhz", device.most_mhz);
  field("peak_gb_per_s", device.peak_gb_per_s);
  field("notes", device.notes);
}

template <class Fields>
static void describe(Fields& field, BenchBound& bound) {
  field("gpu", bound.gpu);
  field("us", bound.us);
  field("by", bound.by);
  field("work", bound.work);
}

template <class Fields>
static void describe(Fields& field, BenchResult& result) {
  field("format", result.format);
  field("time", result.time);
  field("device", result.device);
  field("contenders", result.contenders);
  field("comparisons", result.comparisons);
  field("findings", result.findings);
  field("refused", result.refused);
  field("clocks", result.clocks);
  field("roof", result.roof);
  field("empty_pair_ns", result.empty_pair_ns);
  field("harness_host_ns", result.harness_host_ns);
  field("seconds", result.seconds);
  field.maybe("bound", result.bound);
  field.maybe("title", result.title);
  field.maybe("correct", result.correct);
  field.maybe("explain", result.explain);
  field.maybe("date", result.date);
  field.maybe("kiln", result.kiln);
  field.maybe("machine", result.machine);
  field.maybe("versions", result.versions);
  field.maybe("source_hash", result.source_hash);
  field.maybe("defines", result.defines);
  field.maybe("axes", result.axes);
  field.maybe("start", result.start);
}

Json to_json(const BenchResult& result) { return write(result); }

Result<BenchResult> read_bench(const Json& json, std::string_view source) {
  TRY(BenchResult result, read<BenchResult>(json, source));
  if (result.format != kBenchFormat)
    return Error{Fault::Work, fmt::format("cannot read {}", source),
                 fmt::format("its format is {}; this kiln reads {}", result.format, kBenchFormat),
                 "run the benchmark again with this version of kiln"};
  if (result.contenders.empty())
    return Error{Fault::Work, fmt::format("cannot read {}", source), "it has no contender",
                 "run the benchmark again"};
  return result;
}

Result<std::vector<BenchResult>> read_benches(const Json& json, std::string_view source) {
  const Json& list = json.is_object() && json.contains("results") ? json["results"] : json;
  std::vector<BenchResult> out;
  if (!list.is_array()) {
    TRY(BenchResult one, read_bench(list, source));
    out.push_back(std::move(one));
    return out;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    TRY(BenchResult one, read_bench(list[i], fmt::format("{}, result {}", source, i + 1)));
    out.push_back(std::move(one));
  }
  return out;
}

std::string fact_of(const std::optional<Json>& facts, const char* key) {
  if (!facts || !facts->is_object()) return "";
  const auto found = facts->find(key);
  return found != facts->end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace kiln::results
