// SPDX-License-Identifier: Apache-2.0
// What does a launch count once its SASS is known? A GPU counts SASS: loads of shared memory that
// ptxas joined are one access there, one that it found to be redundant is none, and a branch that
// became predicates is none.
#pragma once

#include <optional>
#include <vector>

#include "counters/sass.h"
#include "results/counter_report.h"
#include "results/counters.h"

namespace kiln::counters {

// Changes the counts of a launch to what its SASS does, and says what is different there. Nothing
// happens where the PTX that ran is not the one that the cubin was made from.
std::optional<std::vector<results::SassChange>> follow_sass(const SassOfKernel& sass,
                                                            const results::CounterProgram& program,
                                                            results::CounterLaunch* launch);

}  // namespace kiln::counters
