// SPDX-License-Identifier: Apache-2.0
// What did the launches of a run do? Numbers by instruction, as the engine writes them: one line of
// JSON per program and per launch, so that a long run appends and a killed one leaves what it had.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::results {

enum class Metric : uint8_t {
#define METRIC(id, ncu, meaning) id,
#include "results/metrics.def"
};
struct MetricName {
  std::string_view id, ncu, meaning;
};
constexpr MetricName kMetrics[] = {
#define METRIC(id, ncu, meaning) {#id, ncu, meaning},
#include "results/metrics.def"
};
constexpr size_t kMetricCount = std::size(kMetrics);
std::optional<Metric> find_metric(std::string_view id);

struct Counts {
  std::array<uint64_t, kMetricCount> of{};
  uint64_t& operator[](Metric metric) { return of[static_cast<size_t>(metric)]; }
  uint64_t operator[](Metric metric) const { return of[static_cast<size_t>(metric)]; }
  void add(const Counts& other) {
    for (size_t i = 0; i < kMetricCount; ++i) of[i] += other.of[i];
  }
};

// The addresses of one warp at an access, for a picture. They count from a multiple of 128 bytes;
// -1: the lane took no part.
struct WarpSample {
  std::string space;  // "global", "shared"
  std::string kind;   // "load", "store", "atomic"
  uint32_t bytes = 0;
  uint64_t block = 0;
  uint32_t warp = 0;
  std::vector<int64_t> addresses;
};

// An instruction of a function's PTX.
struct CounterInstruction {
  std::string at;          // "add.cu:12"; "" without line information
  std::string inlined_at;  // the line that it was inlined into; "": it was not
  uint32_t ptx_line = 0;
  std::string ptx;   // its text
  std::string kind;  // "integer", "float", "memory", ...
};
struct CounterProgram {
  uint64_t id = 0;
  std::string name;  // demangled
  std::vector<CounterInstruction> instructions;
};

// What an access of shared memory would take if ptxas made a narrower or a wider one of it. 0: it
// cannot have that width.
struct OtherWidths {
  uint32_t bytes = 0;  // of this one
  uint64_t passes4 = 0, ideal4 = 0, passes8 = 0, ideal8 = 0, passes16 = 0, ideal16 = 0;
};

struct CounterSite {
  uint64_t program = 0;
  uint32_t instruction = 0;
  Counts counts;
  std::optional<OtherWidths> other;
  std::optional<WarpSample> sample;
  std::optional<uint32_t> sass_instructions;  // of its line of PTX; from the cubin, not in JSON
};

// By the model of caches that docs/guide/counters.md states.
struct ModelledTraffic {
  uint32_t multiprocessors = 0, resident_blocks = 0;  // what it was computed for
  uint64_t l2_bytes = 0;
  uint64_t l2_read_sectors = 0, l2_write_sectors = 0;
  uint64_t dram_read_bytes = 0, dram_write_bytes = 0;
  std::optional<uint64_t> dram_reread_bytes;   // of these, what blocks read again
  uint64_t read_bytes = 0, written_bytes = 0;  // distinct sectors of the launch
  uint64_t least_l2_read_sectors = 0;          // what no cache can avoid
  // Of the address that atomics of the launch update most.
  std::optional<uint64_t> busiest_atomic_updates;
};

struct CounterLaunch {
  uint64_t number = 0;
  std::string kernel, mangled;
  std::string file;  // the library or program that holds the kernel
  std::array<uint32_t, 3> grid{}, block{}, cluster{};
  uint64_t shared_bytes = 0, dynamic_shared_bytes = 0;
  int32_t code = 0;  // cudaError_t
  ModelledTraffic traffic;
  std::vector<CounterSite> sites;
};

struct CounterRun {
  std::string version;  // of kiln
  std::vector<CounterProgram> programs;
  std::vector<CounterLaunch> launches;
};

// A line each, with its newline.
std::string header_line(std::string_view version);
std::string to_line(const CounterProgram& program);
std::string to_line(const CounterLaunch& launch);
Result<CounterRun> read_counter_run(std::string_view text, std::string_view source);

}  // namespace kiln::results
