// SPDX-License-Identifier: Apache-2.0
// What does `kiln counters` say about a run? Launches in order, each with a flat table of names and
// numbers, its lines, what bounds it and what follows from that.
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
#include "results/counters.h"

namespace kiln::results {

using NamedNumbers = std::vector<std::pair<std::string, double>>;

// What is known of a metric: "exact" is counted; "modelled" follows from a stated model;
// "unavailable" cannot be known without a GPU, and has a reason instead of a number.
struct MetricFact {
  std::string name, tag, meaning;
};

struct CounterLine {
  std::string at;                       // "add.cu:12"; "PTX line 30" without line information
  std::string function;                 // the kernel or device function
  std::vector<std::string> inlined_at;  // lines that its code was inlined into
  NamedNumbers metrics;
};

struct KernelResources {
  std::string arch;  // "sm_90"
  uint32_t registers = 0;
  uint64_t static_shared_bytes = 0, stack_bytes = 0;
  uint64_t spill_store_bytes = 0, spill_load_bytes = 0;
  uint32_t blocks = 0;  // that fit on a multiprocessor
  double occupancy = 0;
  std::string limiter;
};

// The least time that one resource allows.
struct Limit {
  std::string resource;  // "DRAM"
  double us = 0;
  std::string work;  // "50.3 MB at 4800 GB/s"
};
struct Bound {
  std::vector<Limit> limits;  // the largest first
  double flops = 0, dram_bytes = 0;
  double peak_gflops = 0, peak_gb_per_s = 0;  // of the roofline
  double predicted_us = 0;   // above the bound; by the model that docs/guide/counters.md states
  std::string predicted_by;  // what takes longest in it: "DRAM", "latency"
};

struct Advice {
  std::string at;  // the line; "": the whole kernel
  std::string text;
};

// What ptxas did to one kind of instruction of a kernel, by the line table of its cubin: why a GPU
// may count otherwise than PTX has it.
struct SassChange {
  std::string of;            // "global loads", "branches"
  uint32_t ptx = 0;          // instructions of PTX that were executed
  uint32_t absent = 0;       // of these: without an instruction of their own in SASS
  uint32_t other_width = 0;  // narrower or wider there
  uint32_t copies = 0;       // several times there: unrolled, or in several paths
  uint32_t moved = 0;        // behind a branch that they were before
  uint32_t added = 0;        // instructions of SASS that no such PTX asked for
};

struct LaunchReport {
  uint64_t number = 0;
  std::string kernel;
  std::array<uint32_t, 3> grid{}, block{};
  int32_t code = 0;
  NamedNumbers metrics;
  std::vector<CounterLine> lines;
  std::optional<KernelResources> resources;
  std::string no_resources;                     // why there are none
  std::optional<std::vector<SassChange>> sass;  // none: the cubin has no lines of this PTX
  Bound bound;
  std::vector<Advice> advice;
};

struct CounterReport {
  std::string version, gpu, gpu_source;
  std::vector<LaunchReport> launches;
  std::vector<CounterLine> lines;  // of all launches together
  std::vector<MetricFact> facts;
};

Json to_json(const CounterReport& report);
Result<CounterReport> read_counter_report(const Json& json, std::string_view source);

// Null: there is no such name.
const double* find_number(const NamedNumbers& numbers, std::string_view name);

}  // namespace kiln::results
