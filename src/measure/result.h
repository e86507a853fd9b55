// SPDX-License-Identifier: Apache-2.0
// What does a benchmark leave behind? One JSON value: what was measured, where, with which samples,
// and what it is worth. Everything that is shown (text, Markdown, CSV, HTML, history) is made from
// it.
#pragma once

#include <string>

#include "base/json.h"
#include "measure/run.h"

namespace kiln::measure {

inline constexpr int kResultFormat = 1;

// Samples are thinned to `most_samples` in the order in which they were taken.
Json to_json(const Report& report, size_t most_samples = 400);

// "GPU time" or "engine time": what the figures of a result are.
std::string time_kind(const Json& result);

// For people; `color` for a terminal.
std::string result_text(const Json& result, bool color = false);

// One row of Markdown or CSV a contender of each result.
std::string results_markdown(const Json& results);
std::string results_csv(const Json& results);

}  // namespace kiln::measure
