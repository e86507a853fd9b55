// SPDX-License-Identifier: Apache-2.0
// What is a whole benchmark? First calls, checks for tricks, warm-up, cold samples in turns, the
// other ways to time a call, the roof of the machine, and what all this says about the result's
// worth.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/sample/sampler.h"
#include "measure/sample/verdict.h"

namespace kiln::measure {

struct RunOptions {
  Patience patience;
  Limits limits;
  uint64_t seed = 0;
  double check_share = 1.0 / 16;  // of the timed calls whose results are checked
  double side_s = 0.08;           // for each of hot, batched, graph, launch
  bool side = true;               // take those at all
  bool kernels = true;            // ask CUPTI
  bool roof = true;
};

// One contender's times. What could not be had is empty, and a text says why.
struct Timing {
  std::string name;
  double bytes = 0, flops = 0;
  bool bytes_declared = false;
  Series cold;
  std::vector<double> hot, batched, graph, launch, left_behind, host_sync, plain_events, kernel,
      kernel_busy;
  std::vector<double> fresh, again;  // calls with new contents, and with the same ones again
  std::vector<KernelRecord> kernels;
  double first_ns = 0, second_ns = 0;
  int batch_calls = 0;
  int64_t forced_open = 0;
  double cupti_clock = 0;  // units of CUPTI's clock a nanosecond of the events; 0: not traced
  std::string graph_why, kernel_why;
  std::vector<int64_t> free_bytes;  // of the device, at points of the run
  int64_t calls = 0;                // between the first and the last of them
};

struct Surroundings {
  double empty_pair_ns = 0, own_host_ns = 0;
  Watch watch;
  std::vector<double> spin_ns;  // of a kernel that always takes as many cycles
  std::vector<Neighbour> neighbours;
  double copy_gbs = 0;       // of a copy far larger than L2
  double copy_same_gbs = 0;  // of as many bytes as the first contender moves, cold
  double gemm_tflops = 0;
  int64_t pinned_l2_bytes = 0;  // set aside for lines that survive a flush
  std::string gemm_why;
};

struct Comparison {
  std::string a, b;
  Judgement judgement;
};

struct Finding;

struct Report {
  DeviceFacts device;
  std::vector<Timing>
      timings;  // the first is what the benchmark is about; the others are its peers
  Surroundings surroundings;
  std::vector<Comparison> comparisons;
  std::vector<Finding> findings;
  double seconds = 0;  // the whole took
};

// How much a finding takes away from the result.
enum class Weight { Note, Warning, Refusal };
std::string_view name_of(Weight weight);  // "note", "warning", "refusal"

struct Finding {
  std::string trap;  // "other stream"
  Weight weight = Weight::Warning;
  std::string contender;  // "" for the whole run
  std::string text;       // with the numbers
};

// A failed call of a contender ends it with that error; a doubtful result comes back with findings.
Result<Report> run(Device& device, const std::vector<Contender>& contenders,
                   const RunOptions& options);

bool is_refused(const Report& report);

}  // namespace kiln::measure
