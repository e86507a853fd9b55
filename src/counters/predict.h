// SPDX-License-Identifier: Apache-2.0
// How long would a launch take? Not a bound: an estimate to order variants by.
//
// No resource reaches its highest rate, blocks do not fill a GPU evenly, a warp waits for what it
// loads (chain.h), and some work has a rate of its own: starting blocks, updates of one address,
// stores of parts of sectors. docs/guide/counters.md has the model, docs/results/counters.md how
// well the order of variants agrees with times of an H200.
#pragma once

#include "counters/chain.h"
#include "counters/gpus.h"
#include "results/counter_report.h"

namespace kiln::counters {

// Sets predicted_us and predicted_by of the report's bound.
void predict_time(const results::CounterLaunch& launch, const Programs& programs,
                  const results::Counts& counts, const Gpu& gpu, results::LaunchReport* report);

}  // namespace kiln::counters
