// SPDX-License-Identifier: Apache-2.0
#include "counters/predict.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace kiln::counters {
namespace {

using results::Counts;
using results::Metric;

// Shares of the highest rate that kernels reach.
struct Reached {
  std::string_view resource;
  double share;
  bool by_multiprocessor;  // idle ones do not help: the last wave counts as a whole
};
constexpr Reached kReached[] = {
    {"DRAM", 0.90, false}, {"L2", 0.60, false}, {"L1 and shared memory", 0.90, true},
    {"f32", 0.85, true},   {"f64", 0.85, true}, {"tensor cores", 0.65, true},
};
constexpr double kIssuedPerClock = 4;       // warp instructions, by a multiprocessor
constexpr double kClocksOfLoad = 600;       // until data from beyond L1 arrives
constexpr double kClocksOfInstruction = 3;  // that depends on the one before, on average
constexpr double kClocksOfBarrier = 40;
constexpr double kStartUs = 1.5;  // of a launch
// Resources are used at once, but not perfectly so: the larger of two counts most.
constexpr double kOverlap = 4;

double real(uint64_t value) { return static_cast<double>(value); }

struct Term {
  std::string_view name;
  double us = 0;
};

// How much longer the multiprocessors take than if work could be split among them at will.
double unevenness(double blocks, double multiprocessors) {
  return blocks > 0 ? std::ceil(blocks / multiprocessors) * multiprocessors / blocks : 1;
}

// Loads of one stretch of code wait together: those between two branches or barriers run the same
// number of times, one after the other.
double load_waits(const results::CounterLaunch& launch) {
  double waits = 0;
  uint64_t before = 0;
  bool waiting = false;
  for (const results::CounterSite& site : launch.sites) {
    const uint64_t times = site.counts[Metric::inst_executed];
    const bool ends = site.counts[Metric::branches] || site.counts[Metric::barriers];
    if (ends || times != before) waiting = false;
    before = times;
    const uint64_t loads =
        site.counts[Metric::global_ld_requests] + site.counts[Metric::global_atom_requests];
    if (!loads || waiting) continue;
    waits += real(loads);
    waiting = true;
  }
  return waits;
}

}  // namespace

void predict_time(const results::CounterLaunch& launch, const Counts& counts, const Gpu& gpu,
                  results::LaunchReport* report) {
  const double blocks = real(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  const double threads = real(launch.block[0]) * launch.block[1] * launch.block[2];
  const double warps = std::max(1.0, blocks * std::ceil(threads / 32));
  const double resident = report->resources && report->resources->blocks
                              ? report->resources->blocks
                              : std::max<uint32_t>(1, launch.traffic.resident_blocks);
  const double uneven = unevenness(blocks, gpu.multiprocessors);
  std::vector<Term> terms;
  for (const results::Limit& limit : report->bound.limits) {
    for (const Reached& reached : kReached) {
      if (limit.resource == reached.resource)
        terms.push_back({reached.resource,
                         limit.us / reached.share * (reached.by_multiprocessor ? uneven : 1)});
    }
  }
  const double instructions = real(counts[Metric::inst_executed]);
  terms.push_back({"instructions",
                   uneven * instructions / kIssuedPerClock / gpu.multiprocessors / gpu.clock_mhz});
  const double chain = kClocksOfLoad * load_waits(launch) / warps +
                       kClocksOfInstruction * instructions / warps +
                       kClocksOfBarrier * real(counts[Metric::barriers]) / warps;
  const double waves = std::ceil(blocks / (resident * gpu.multiprocessors));
  terms.push_back({"latency", waves * chain / gpu.clock_mhz});
  double sum = 0;
  const Term* longest = &terms.front();
  for (const Term& term : terms) {
    sum += std::pow(term.us, kOverlap);
    if (term.us > longest->us) longest = &term;
  }
  results::Bound& out = report->bound;
  const double bound = out.limits.empty() ? 0 : out.limits.front().us;
  out.predicted_us = std::max(bound, kStartUs + std::pow(sum, 1 / kOverlap));
  out.predicted_by = longest->name;
}

}  // namespace kiln::counters
