// SPDX-License-Identifier: Apache-2.0
// Which two CPUs are two cores? Two of a machine may share a core, a cache or a node of memory, and
// a thread stays where it once began: so several pairs are measured, each by a program of its own
// that may use these two alone.
#pragma once

#include <string>
#include <vector>

namespace kiln::engine {

struct CpuPair {
  int first = 0, second = 0;
};

// Of the CPUs that this process may use: far apart first. Empty where there is but one.
std::vector<CpuPair> pairs_to_try();
bool stay_on(CpuPair pair);

// Seconds on the wall with one thread and with two, and CPU time of the two together.
struct TwoCores {
  CpuPair pair;
  double alone = 0, both = 0, both_cpu = 0;
  double gain() const { return alone / both; }
};

// Runs `program --cpus=A,B folder` for each pair; what it prints is three numbers.
std::vector<TwoCores> measure_pairs(const std::string& program, const std::string& folder);

}  // namespace kiln::engine
