// SPDX-License-Identifier: Apache-2.0
// How long does one warp take if nothing else runs? The longest chain of instructions that wait for
// each other, by the PTX that ran.
//
// Throughput alone cannot tell variants apart that do the same work with more or fewer warps: what
// a warp waits for is hidden by others, if there are any.
#pragma once

#include <unordered_map>

#include "results/counters.h"

namespace kiln::counters {

using Programs = std::unordered_map<uint64_t, const results::CounterProgram*>;  // by id

// Clocks until a result can be used.
struct Latencies {
  double arithmetic = 0, shared = 0, global = 0, atomic = 0, exchange = 0, matrix = 0, barrier = 0;
};

// Sums over all warps of a launch.
struct Chain {
  double clocks = 0;
  double instructions = 0;  // that the GPU issues, where the cubin tells; else those of PTX
};
Chain chain_of(const results::CounterLaunch& launch, const Programs& programs,
               const Latencies& latencies);

}  // namespace kiln::counters
