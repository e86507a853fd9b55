// SPDX-License-Identifier: Apache-2.0
// Which numbers follow from counts? The same for an instruction, a line and a launch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "results/counter_report.h"
#include "results/counters.h"

namespace kiln::counters {

// Every count that is not zero and every ratio that has a meaning for it, by its short name; then
// those of Nsight Compute by theirs, where `with_ncu` is set.
results::NamedNumbers numbers_of(const results::Counts& counts, bool with_ncu);

// Requests and sectors of global memory of all kinds.
struct GlobalTraffic {
  uint64_t requests = 0, sectors = 0, bytes = 0;  // bytes: asked for by lanes
};
GlobalTraffic global_traffic(const results::Counts& counts);

// Names, tags and meanings of all that a report can have, and what it cannot have.
std::vector<results::MetricFact> metric_facts();
// Short names that a user may ask for, in the order of the report.
std::vector<std::string> metric_names();

}  // namespace kiln::counters
