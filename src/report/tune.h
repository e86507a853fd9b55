// SPDX-License-Identifier: Apache-2.0
// How is a result of kiln tune shown? As text, as Markdown, and as a page with a heat map.
#pragma once

#include <string>
#include <vector>

#include "results/tune.h"
#include "results/tune_prediction.h"

namespace kiln::report {

// The finalists, what became of the others, how long it took.
std::string tune_text(const results::TuneResult& result);
// The same with all configurations.
std::string tune_markdown(const results::TuneResult& result);
// A heat map over any two of its axes, all configurations as a table.
std::string tune_page(const results::TuneResult& result);

// The order of `kiln tune --predict`, one line per variant.
std::string prediction_text(const results::TunePrediction& prediction);

// Finalists are within a percent of each other, and their intervals within a tenth of one: four or
// five digits.
std::string fine_time(double us);
// "33 timed, 3 pruned"
std::string fates_text(const results::TuneResult& result);

// Texts that differ in numbers alone as one, with the ranges of those: "3-5 of 9 samples". In the
// order of the first.
std::vector<std::string> said_once(const std::vector<std::string>& texts);

}  // namespace kiln::report
