// SPDX-License-Identifier: Apache-2.0
#include "counters/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace kiln::counters {
namespace {

using results::Advice;
using results::CounterLine;
using results::find_number;
using results::LaunchReport;

constexpr size_t kMostAdvice = 8;

double number(const results::NamedNumbers& numbers, const char* name) {
  const double* found = find_number(numbers, name);
  return found ? *found : 0;
}

struct Weighted {
  double weight = 0;  // share of the launch's work that is wasted
  Advice advice;
};

void look_at_sectors(const CounterLine& line, double all_bytes, std::vector<Weighted>& out) {
  const double asked = number(line.metrics, "bytes_asked");
  const double moved = number(line.metrics, "bytes_moved");
  // Lanes that read the same bytes ask for more than is moved, and that is fine.
  if (moved < 1.5 * asked || all_bytes <= 0) return;
  const double share = (moved - asked) / all_bytes;
  if (share < 0.02) return;
  out.push_back({share,
                 {line.at, fmt::format("moves {:.1f}x the bytes it uses ({:.1f} sectors per "
                                       "request): let neighbouring lanes access neighbouring "
                                       "addresses, or go through shared memory",
                                       moved / std::max(asked, 1.0),
                                       number(line.metrics, "sectors_per_request"))}});
}

void look_at_banks(const CounterLine& line, double all_passes, std::vector<Weighted>& out) {
  const double conflicts = number(line.metrics, "bank_conflicts");
  const double passes =
      number(line.metrics, "shared_ld_wavefronts") + number(line.metrics, "shared_st_wavefronts");
  if (conflicts <= 0 || conflicts < 0.1 * passes || conflicts < 0.02 * all_passes) return;
  out.push_back({conflicts / std::max(all_passes, 1.0),
                 {line.at, fmt::format("{:.1f}x the passes through the banks that it needs: pad "
                                       "the rows of the shared array by one element, or swizzle "
                                       "the index",
                                       passes / (passes - conflicts))}});
}

void look_at_atomics(const CounterLine& line, std::vector<Weighted>& out) {
  const double contention = number(line.metrics, "atomic_contention");
  if (contention < 4) return;
  out.push_back({0.05 * contention / 32,
                 {line.at, fmt::format("{:.0f} lanes of a warp update one address: reduce in the "
                                       "warp first (__reduce_add_sync, shuffles)",
                                       contention)}});
}

void look_at_branches(const CounterLine& line, double all, std::vector<Weighted>& out) {
  const double divergent = number(line.metrics, "branches_divergent");
  const double lanes = number(line.metrics, "active_lanes");
  const double share = number(line.metrics, "inst_executed") / std::max(all, 1.0);
  if (divergent <= 0 || share < 0.02 || lanes > 24) return;
  out.push_back({share * (1 - lanes / 32),
                 {line.at, fmt::format("runs with {:.0f} of 32 lanes: {:.0f} % of its branches "
                                       "diverge; sort the work so that the lanes of a warp go "
                                       "the same way",
                                       lanes, number(line.metrics, "divergent_branches_pct"))}});
}

void look_at_resources(const LaunchReport& launch, std::vector<Weighted>& out) {
  if (!launch.resources) return;
  const results::KernelResources& used = *launch.resources;
  if (used.spill_store_bytes + used.spill_load_bytes > 0)
    out.push_back({0.2,
                   {"", fmt::format("spills {} bytes of registers to local memory: fewer live "
                                    "values, or __launch_bounds__ with fewer blocks",
                                    used.spill_store_bytes + used.spill_load_bytes)}});
  if (used.occupancy > 0 && used.occupancy < 0.25)
    out.push_back({0.1,
                   {"", fmt::format("occupancy is {:.0f} %, limited by {}", 100 * used.occupancy,
                                    used.limiter)}});
  const double waves = number(launch.metrics, "launch__waves_per_multiprocessor");
  if (waves > 0 && waves < 0.5)
    out.push_back(
        {0.3,
         {"", fmt::format("the grid fills {} % of the GPU: more blocks, or less work "
                          "per block",
                          waves < 0.01 ? "less than 1" : fmt::format("{:.0f}", 100 * waves))}});
}

}  // namespace

std::vector<Advice> advice_for(const LaunchReport& launch) {
  std::vector<Weighted> found;
  const double bytes = number(launch.metrics, "bytes_moved");
  const double passes = number(launch.metrics, "shared_ld_wavefronts") +
                        number(launch.metrics, "shared_st_wavefronts");
  const double instructions = number(launch.metrics, "inst_executed");
  for (const CounterLine& line : launch.lines) {
    look_at_sectors(line, bytes, found);
    look_at_banks(line, passes, found);
    look_at_atomics(line, found);
    look_at_branches(line, instructions, found);
  }
  look_at_resources(launch, found);
  std::stable_sort(found.begin(), found.end(),
                   [](const Weighted& a, const Weighted& b) { return a.weight > b.weight; });
  std::vector<Advice> out;
  for (Weighted& each : found) {
    if (out.size() == kMostAdvice) break;
    out.push_back(std::move(each.advice));
  }
  return out;
}

}  // namespace kiln::counters
