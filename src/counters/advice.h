// SPDX-License-Identifier: Apache-2.0
// What should a person change? Only what the counters show.
#pragma once

#include <vector>

#include "results/counter_report.h"

namespace kiln::counters {

// The most costly first.
std::vector<results::Advice> advice_for(const results::LaunchReport& launch);

}  // namespace kiln::counters
