// SPDX-License-Identifier: Apache-2.0
// How is the report of a build shown? As text, as a page and as a trace.
#pragma once

#include <string>

#include "base/json.h"
#include "results/build_report.h"

namespace kiln::report {

// `kiln build --explain`
std::string build_text(const results::BuildReport& report);
// A timeline of steps and the programs in them, on one page that needs no network.
std::string build_page(const results::BuildReport& report);
// For chrome://tracing and Perfetto: an event for each step and each program in it.
Json build_trace(const results::BuildReport& report);

// Steps that overlap in time go to lanes of their own: a lane for each step.
std::vector<size_t> lanes_of(const std::vector<results::BuildStep>& steps);
// Of the build's time, what is in no step; 0 where that is not worth a word.
double seconds_outside_steps(const results::BuildReport& report);
int64_t first_ns(const std::vector<results::BuildStep>& steps);

}  // namespace kiln::report
