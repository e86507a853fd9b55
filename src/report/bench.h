// SPDX-License-Identifier: Apache-2.0
// How are the results of benchmarks shown? As text, Markdown, CSV and a page.
#pragma once

#include <string>
#include <vector>

#include "results/bench.h"

namespace kiln::report {

// For people; `color` for a terminal.
std::string bench_text(const results::BenchResult& result, bool color = false);

// One row a contender of each result.
std::string bench_markdown(const std::vector<results::BenchResult>& results);
std::string bench_csv(const std::vector<results::BenchResult>& results);

// Distributions, a roofline, the tables; how the same benchmarks did before.
std::string bench_page(const std::vector<results::BenchResult>& results,
                       const std::vector<results::BenchResult>& history);

// Results of one op over the values of an axis: a chart and a table. "" where there are none.
std::string axis_section(const std::vector<results::BenchResult>& results);

// What a timer would say that is started and stopped without care.
struct NaiveTime {
  std::string how;
  double ns = 0;
  std::string wrong;  // what is in it that is not the kernel
};
std::vector<NaiveTime> naive_times(const results::BenchResult& result);
std::string naive_times_text(const results::BenchResult& result);

}  // namespace kiln::report
