// SPDX-License-Identifier: Apache-2.0
// How is a pair of CPUs chosen, and measured by another program?
#include "engine/bench/cores.h"

#include <fmt/format.h>
#include <sched.h>

#include <cstdio>

namespace kiln::engine {

std::vector<CpuPair> pairs_to_try() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {};
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  if (cpus.size() < 2) return {};
  std::vector<CpuPair> pairs;
  for (size_t distance : {cpus.size() / 2, size_t{2}, size_t{1}}) {
    if (distance >= cpus.size()) continue;
    const CpuPair pair{cpus[0], cpus[distance]};
    if (pairs.empty() || pairs.back().second != pair.second) pairs.push_back(pair);
  }
  return pairs;
}

bool stay_on(CpuPair pair) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(pair.first), &set);
  CPU_SET(static_cast<size_t>(pair.second), &set);
  return sched_setaffinity(0, sizeof set, &set) == 0;
}

std::vector<TwoCores> measure_pairs(const std::string& program, const std::string& folder) {
  std::vector<TwoCores> found;
  for (CpuPair pair : pairs_to_try()) {
    const std::string command =
        fmt::format("'{}' --cpus={},{} '{}'", program, pair.first, pair.second, folder);
    FILE* output = popen(command.c_str(), "r");
    if (!output) continue;
    TwoCores one{pair};
    const bool read = std::fscanf(output, "%lf %lf %lf", &one.alone, &one.both, &one.both_cpu) == 3;
    if (pclose(output) == 0 && read) found.push_back(one);
  }
  return found;
}

}  // namespace kiln::engine
