// SPDX-License-Identifier: Apache-2.0
// How do counters read, on a terminal and on a page?
#pragma once

#include <map>
#include <string>
#include <vector>

#include "results/counter_report.h"
#include "results/counters.h"

namespace kiln::report {

std::string counters_text(const results::CounterReport& report);
// Launches as rows, with the metrics that any of them has.
std::string counters_csv(const results::CounterReport& report);
std::string counters_markdown(const results::CounterReport& report);

// What one warp did at an instruction: its lanes, sectors, banks. Plain characters.
std::string warp_picture_text(const results::WarpSample& sample);

// Source lines by file name, for the page.
using SourceTexts = std::map<std::string, std::vector<std::string>>;
std::string counters_page(const results::CounterReport& report, const results::CounterRun& run,
                          const SourceTexts& sources);

}  // namespace kiln::report
