// SPDX-License-Identifier: Apache-2.0
// What does a benchmark leave behind? The run's report as the result that is kept and shown.
#pragma once

#include "measure/run.h"
#include "results/bench.h"

namespace kiln::measure {

// Samples are thinned to `most_samples` in the order in which they were taken.
results::BenchResult result_of(const Report& report, size_t most_samples = 400);

}  // namespace kiln::measure
