// SPDX-License-Identifier: Apache-2.0
// How fast could a GPU run a launch at best, and what would limit it?
//
// Each resource alone needs some time for its work at its highest rate, and all work at once: so
// the largest of these times is a bound that no run can beat. What PTX does not tell for sure (how
// many instructions ptxas makes) is left out, so the bound can only be too low.
#pragma once

#include "counters/gpus.h"
#include "results/counter_report.h"

namespace kiln::counters {

results::Bound bound_of(const results::CounterLaunch& launch, const results::Counts& counts,
                        bool eight_bit_tensor, const Gpu& gpu);

}  // namespace kiln::counters
