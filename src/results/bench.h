// SPDX-License-Identifier: Apache-2.0
// What does a benchmark leave behind? What was measured, where, with which samples, and what it is
// worth. All that is shown of it (text, Markdown, CSV, a page, history) is made from this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::results {

inline constexpr int kBenchFormat = 1;

struct Summary {
  double median_ns = 0, low_ns = 0, high_ns = 0;  // with its 95 % interval
  int64_t count = 0;
  double least_ns = 0, greatest_ns = 0, mean_ns = 0, trimmed_ns = 0;
  double p05_ns = 0, p25_ns = 0, p75_ns = 0, p95_ns = 0;
  int64_t outliers = 0, far_outliers = 0;
};

// The times that count: isolated calls, on a GPU with a cold L2.
struct ColdSamples : Summary {
  bool converged = false;
  int64_t throttled = 0, late = 0;  // samples
  double drift = 0;
  double burst_ns = 0, sustained_ns = 0;  // the first tenth of the samples, the last one
  std::vector<double> samples_ns;         // thinned, in the order in which they were taken
};

struct KernelLaunch {
  std::string name;
  double ns = 0;
  std::vector<int64_t> grid, block;
  int64_t registers = 0, static_shared_bytes = 0, dynamic_shared_bytes = 0, stream = 0;
};

struct LaunchCounts {
  int64_t launches = 0;
  double threads = 0;
};

struct Contender {
  std::string name;
  ColdSamples cold;
  std::optional<Summary> hot, batched, graph, launch, host_sync, plain_events, kernel;
  int64_t batch_calls = 0;
  std::optional<std::string> graph_why, kernel_why;  // there are no such times
  std::optional<double> cupti_clock, kernel_busy_ns;
  std::vector<KernelLaunch> kernels;
  std::optional<LaunchCounts> counts;
  double first_ns = 0, second_ns = 0;
  double bytes = 0, flops = 0;
  bool bytes_declared = false;
  std::optional<double> gb_per_s, tflop_per_s, of_copy, of_gemm;  // none for the engine
};

struct RatioInterval {
  double value = 1, low = 1, high = 1;
};

struct Comparison {
  std::string a, b, verdict;  // "SLOWER": of a against b
  RatioInterval ratio;
  double threshold = 0;
  RatioInterval a_against_a;
};

struct BenchFinding {
  std::string trap, weight, contender, text;
};

struct Clocks {
  double median_mhz = 0, least_mhz = 0, greatest_mhz = 0;
  std::string reasons;
  double watts = 0, celsius = 0;
};

struct Roof {
  double copy_gb_per_s = 0, copy_same_size_gb_per_s = 0, gemm_tflop_per_s = 0;
  std::string gemm_why;
};

struct Device {
  std::string kind, name;
  int index = 0;
  std::string driver, cuda, compute;
  int multiprocessors = 0;
  int64_t l2_bytes = 0, memory_bytes = 0;
  double most_mhz = 0, peak_gb_per_s = 0;
  std::string notes;
};

// The least time that one call can take, by what its kernels do (kiln counters).
struct BenchBound {
  std::string gpu;
  double us = 0;         // the sum over its launches
  std::string by, work;  // of the longest launch: "DRAM", "50.3 MB at 4800 GB/s"
};

struct BenchResult {
  int format = kBenchFormat;
  std::string time;  // "GPU time" or "engine time"
  Device device;
  std::vector<Contender> contenders;  // the first is what the benchmark is about
  std::vector<Comparison> comparisons;
  std::vector<BenchFinding> findings;
  bool refused = false;
  std::optional<Clocks> clocks;
  Roof roof;
  std::optional<BenchBound> bound;
  double empty_pair_ns = 0, harness_host_ns = 0, seconds = 0;
  // What the caller of the timing core adds.
  std::optional<std::string> title, correct, date, kiln, source_hash;
  std::optional<bool> explain;
  std::optional<Json> machine, versions, axes;
  std::optional<std::vector<std::string>> defines;
  std::optional<Json> start;  // seconds of what happens once: import_s, build_s, load_s

  bool on_engine() const { return time == "engine time"; }
};

Json to_json(const BenchResult& result);
Result<BenchResult> read_bench(const Json& json, std::string_view source);
// One result, an array of them, or {"results": [...]}.
Result<std::vector<BenchResult>> read_benches(const Json& json, std::string_view source);

// A text of an object of facts, such as `machine`; "" for what it does not have.
std::string fact_of(const std::optional<Json>& facts, const char* key);

}  // namespace kiln::results
