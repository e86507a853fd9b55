// SPDX-License-Identifier: Apache-2.0
#include "counters/bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "counters/derived.h"

namespace kiln::counters {
namespace {

using results::Counts;
using results::Limit;
using results::Metric;

constexpr double kSector = 32;

double number(uint64_t value) { return static_cast<double>(value); }

// Without what blocks read again: other orders of warps could find that in a cache.
Limit of_dram(const results::ModelledTraffic& traffic, const Gpu& gpu) {
  const double bytes = number(traffic.dram_read_bytes - traffic.dram_reread_bytes.value_or(0) +
                              traffic.dram_write_bytes);
  return {"DRAM", bytes / gpu.dram_gb_per_s / 1e3,
          fmt::format("{} at {:.0f} GB/s", bytes_text(bytes), gpu.dram_gb_per_s)};
}

// What L1 cannot keep, all stores, and one sector per atomic: ptxas may add up in the warp first.
Limit of_l2(const results::ModelledTraffic& traffic, const Counts& counts, const Gpu& gpu) {
  const uint64_t sectors = traffic.least_l2_read_sectors + traffic.l2_write_sectors +
                           counts[Metric::global_atom_requests] +
                           counts[Metric::global_red_requests];
  const double bytes = kSector * number(sectors);
  const double gb_per_s = gpu.l2_bytes_per_clock * gpu.clock_mhz / 1e3;
  return {"L2", gb_per_s > 0 ? bytes / gb_per_s / 1e3 : 0,
          fmt::format("{} at {:.0f} GB/s", bytes_text(bytes), gb_per_s)};
}

// One pass of 128 bytes per clock and multiprocessor, for shared memory and global data alike.
Limit of_l1(const Counts& counts, const Gpu& gpu) {
  const uint64_t shared =
      counts[Metric::shared_ld_wavefronts] + counts[Metric::shared_st_wavefronts];
  const double passes = number(shared) + number(counts[Metric::global_ld_sectors]) / 4;
  return {"L1 and shared memory", passes / gpu.multiprocessors / gpu.clock_mhz,
          fmt::format("{} passes, one per clock on {} multiprocessors",
                      grouped(static_cast<uint64_t>(std::round(passes))), gpu.multiprocessors)};
}

Limit of_arithmetic(const char* name, double flops, double tflops) {
  return {name, tflops > 0 ? flops / tflops / 1e6 : 0,
          fmt::format("{:.3g} GFLOP at {:g} TFLOP/s", flops / 1e9, tflops)};
}

Limit of_starts(const results::CounterLaunch& launch, const Gpu& gpu) {
  const double blocks = number(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  const double per_us = gpu.blocks_per_clock * gpu.clock_mhz;
  return {"block launch rate", per_us > 0 ? blocks / per_us : 0,
          fmt::format("{} block{}, {:g} per clock", grouped(static_cast<uint64_t>(blocks)),
                      blocks == 1 ? "" : "s", gpu.blocks_per_clock)};
}

}  // namespace

results::Bound bound_of(const results::CounterLaunch& launch, const Counts& counts,
                        bool eight_bit_tensor, const Gpu& gpu) {
  results::Bound out;
  out.limits = {of_dram(launch.traffic, gpu),
                of_l2(launch.traffic, counts, gpu),
                of_l1(counts, gpu),
                of_starts(launch, gpu),
                of_arithmetic("f32", number(counts[Metric::flops_fp32]), gpu.fp32_tflops),
                of_arithmetic("f64", number(counts[Metric::flops_fp64]), gpu.fp64_tflops),
                of_arithmetic("tensor cores", number(counts[Metric::flops_tensor]),
                              eight_bit_tensor ? gpu.tensor8_tflops : gpu.tensor_tflops)};
  std::erase_if(out.limits, [](const Limit& limit) { return limit.us <= 0; });
  std::stable_sort(out.limits.begin(), out.limits.end(),
                   [](const Limit& a, const Limit& b) { return a.us > b.us; });
  out.flops = number(counts[Metric::flops_fp16] + counts[Metric::flops_fp32] +
                     counts[Metric::flops_fp64] + counts[Metric::flops_tensor]);
  out.dram_bytes = number(launch.traffic.dram_read_bytes + launch.traffic.dram_write_bytes);
  const bool tensor = counts[Metric::flops_tensor] > counts[Metric::flops_fp32];
  const bool wide = counts[Metric::flops_fp64] > counts[Metric::flops_fp32];
  out.peak_gflops = 1e3 * (tensor ? gpu.tensor_tflops : wide ? gpu.fp64_tflops : gpu.fp32_tflops);
  out.peak_gb_per_s = gpu.dram_gb_per_s;
  return out;
}

}  // namespace kiln::counters
