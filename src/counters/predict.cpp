// SPDX-License-Identifier: Apache-2.0
#include "counters/predict.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "counters/chain.h"

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
    {"DRAM", 0.90, false}, {"L2", 0.60, false},          {"f32", 0.85, true},
    {"f64", 0.85, true},   {"tensor cores", 0.65, true},
};
constexpr double kReachedL1 = 0.95, kReachedIssue = 0.90;
constexpr double kIssuedPerClock = 4;  // warp instructions, by a multiprocessor

// Clocks that a dependent instruction waits: Luo et al., "Benchmarking and Dissecting the Nvidia
// Hopper GPU Architecture via Microbenchmarking" (2024), tables of latencies. DRAM is loaded, and
// its pages are cold: 800, where an idle one takes 480.
constexpr double kArithmetic = 4.5, kShared = 30, kL1 = 40, kL2 = 270, kDram = 800;
constexpr double kExchange = 25, kMatrix = 33, kBarrier = 30;

// Measured on an H200, in its clocks, and taken for other GPUs too (docs/results/counters.md).
constexpr double kBlocksPerClock = 0.84;        // that the whole GPU starts
constexpr double kClocksOfUpdate = 3.5;         // of one address by an atomic
constexpr double kPartialSectorsPerClock = 34;  // that stores fill only in part
constexpr double kClocksOfBlockTurnover = 440;  // from the end of a block to work of the next
constexpr double kStartUs = 1.5;                // of a launch

double real(uint64_t value) { return static_cast<double>(value); }

// How much longer the multiprocessors take than if work could be split among them at will.
double unevenness(double blocks, double multiprocessors) {
  return blocks > 0 ? std::ceil(blocks / multiprocessors) * multiprocessors / blocks : 1;
}

// L1 looks up one line of 128 bytes per clock, so a request to 32 lines takes 32 clocks. The
// costliest request of an instruction stands for all of them.
double lines_per_sector(const results::WarpSample& sample) {
  std::set<int64_t> sectors, lines;
  for (const int64_t at : sample.addresses) {
    if (at < 0) continue;
    for (int64_t sector = at / 32; sector <= (at + sample.bytes - 1) / 32; ++sector) {
      sectors.insert(sector);
      lines.insert(sector / 4);
    }
  }
  return sectors.empty() ? 0.25 : real(lines.size()) / real(sectors.size());
}

// `metric`: the sectors of loads or of stores.
double lines_looked_up(const results::CounterLaunch& launch, Metric metric) {
  double lines = 0;
  for (const results::CounterSite& site : launch.sites) {
    const uint64_t sectors = site.counts[metric];
    if (sectors) lines += real(sectors) * (site.sample ? lines_per_sector(*site.sample) : 0.25);
  }
  return lines;
}

double partial_sectors(const results::CounterLaunch& launch) {
  double sectors = 0;
  for (const results::CounterSite& site : launch.sites) {
    const uint64_t stored = site.counts[Metric::global_st_sectors];
    const uint64_t ideal = site.counts[Metric::global_st_ideal_sectors];
    if (stored > ideal + ideal / 4) sectors += real(stored);
  }
  return sectors;
}

// Of a load, by where the model of caches finds its sectors. A request waits for the farthest of
// its lines.
Latencies latencies_of(const results::ModelledTraffic& traffic, const Counts& counts,
                       double lines) {
  const double sectors = std::max(1.0, real(counts[Metric::global_ld_sectors]));
  const double requests = std::max(1.0, real(counts[Metric::global_ld_requests]));
  const auto share_of_requests = [&](double of_sectors) {
    return 1 - std::pow(1 - std::min(1.0, of_sectors / sectors), std::max(1.0, lines / requests));
  };
  const double beyond_l1 = share_of_requests(real(traffic.l2_read_sectors));
  const double from_dram =
      std::min(beyond_l1, share_of_requests(real(traffic.dram_read_bytes) / 32));
  Latencies out;
  out.arithmetic = kArithmetic;
  out.shared = kShared;
  out.global = from_dram * kDram + (beyond_l1 - from_dram) * kL2 + (1 - beyond_l1) * kL1;
  out.atomic = 2 * kL2;
  out.exchange = kExchange;
  out.matrix = kMatrix;
  out.barrier = kBarrier;
  return out;
}

struct Term {
  std::string_view name;
  double us = 0;
};
// The longest of terms that are parts of one pipeline.
Term longest(std::initializer_list<Term> terms) {
  return *std::max_element(terms.begin(), terms.end(),
                           [](const Term& a, const Term& b) { return a.us < b.us; });
}

// Terms of different warps overlap, those of one warp follow each other: with one warp per
// scheduler they add up, with twelve the longest one hides the rest.
double together(const std::vector<Term>& terms, double warps_of_scheduler) {
  const double power = std::min(4.0, 1 + warps_of_scheduler / 4);
  double sum = 0;
  for (const Term& term : terms) sum += std::pow(term.us, power);
  return std::pow(sum, 1 / power);
}

}  // namespace

void predict_time(const results::CounterLaunch& launch, const Programs& programs,
                  const Counts& counts, const Gpu& gpu, results::LaunchReport* report) {
  const double blocks = std::max(1.0, real(launch.grid[0]) * launch.grid[1] * launch.grid[2]);
  const double threads = real(launch.block[0]) * launch.block[1] * launch.block[2];
  const double warps_of_block = std::ceil(threads / 32);
  const double resident = report->resources && report->resources->blocks
                              ? report->resources->blocks
                              : std::max<uint32_t>(1, launch.traffic.resident_blocks);
  const double multiprocessors = gpu.multiprocessors, clocks_of_us = gpu.clock_mhz;
  const double uneven = unevenness(blocks, multiprocessors);
  const auto limit = [&](std::string_view resource) {
    Term out{resource, 0};
    for (const Reached& reached : kReached) {
      for (const results::Limit& each : report->bound.limits) {
        if (each.resource == resource && reached.resource == resource)
          out.us = each.us / reached.share * (reached.by_multiprocessor ? uneven : 1);
      }
    }
    return out;
  };
  const auto per_multiprocessor = [&](double clocks) {
    return uneven * clocks / multiprocessors / clocks_of_us;
  };
  const double load_lines = lines_looked_up(launch, Metric::global_ld_sectors);
  const Chain chain = chain_of(launch, programs, latencies_of(launch.traffic, counts, load_lines));
  const double passes = real(counts[Metric::shared_ld_wavefronts]) +
                        real(counts[Metric::shared_st_wavefronts]) + load_lines +
                        lines_looked_up(launch, Metric::global_st_sectors);
  const double clocks_of_warp = chain.clocks / (blocks * warps_of_block) + kClocksOfBlockTurnover;
  // A few waves end together; of many the last one is filled by blocks that start early.
  double waves = blocks / (resident * multiprocessors);
  if (waves < 4) waves = std::ceil(waves);
  const std::vector<Term> terms = {
      longest({{"instructions",
                per_multiprocessor(chain.instructions / kIssuedPerClock) / kReachedIssue},
               limit("f32"),
               limit("f64"),
               limit("tensor cores")}),
      longest({limit("DRAM"),
               limit("L2"),
               {"partial stores", partial_sectors(launch) / kPartialSectorsPerClock / clocks_of_us},
               {"atomics on one address", real(launch.traffic.busiest_atomic_updates.value_or(0)) *
                                              kClocksOfUpdate / clocks_of_us}}),
      {"L1 and shared memory", per_multiprocessor(passes) / kReachedL1},
      {"latency", waves * clocks_of_warp / clocks_of_us},
      {"block launch rate", blocks / kBlocksPerClock / clocks_of_us}};
  const double at_once = std::min(resident, std::ceil(blocks / multiprocessors));
  results::Bound& out = report->bound;
  const double bound = out.limits.empty() ? 0 : out.limits.front().us;
  out.predicted_us =
      std::max(bound, kStartUs + together(terms, at_once * warps_of_block / kIssuedPerClock));
  out.predicted_by = std::max_element(terms.begin(), terms.end(), [](const Term& a, const Term& b) {
                       return a.us < b.us;
                     })->name;
}

}  // namespace kiln::counters
