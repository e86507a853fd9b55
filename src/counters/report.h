// SPDX-License-Identifier: Apache-2.0
// What do the counts of a run say, for a chosen GPU?
#pragma once

#include <string>

#include "counters/gpus.h"
#include "results/counter_report.h"
#include "results/counters.h"

namespace kiln::counters {

// Changes the counts of `run` to what the SASS of its kernels does, where a cubin tells (sass.h).
// `kernel`: only launches whose kernel has this in its name; "": all. An error where none is left.
Result<results::CounterReport> make_report(results::CounterRun& run, const Gpu& gpu,
                                           const std::string& kernel);

}  // namespace kiln::counters
