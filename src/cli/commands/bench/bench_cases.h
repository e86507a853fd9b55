// SPDX-License-Identifier: Apache-2.0
// Which benchmarks does a command line, or a kiln.toml, ask for?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "measure/formula.h"

namespace kiln::cli {

// As it is written; {axis} stands for a value.
struct BenchPlan {
  std::string name;  // "" on a command line
  std::string op;
  std::vector<std::string> arguments, against, expect;
  std::vector<std::string> defines;  // of every case
  std::string bytes, flops;
  std::vector<measure::Axis> axes;
};

// One combination of the axes.
struct BenchCase {
  std::string op;
  std::vector<std::string> arguments, against, defines;
  std::string expect;
  std::optional<double> bytes, flops;
  measure::Values values;
};

Result<std::vector<BenchCase>> cases_of(const BenchPlan& plan);

// The table [bench] of kiln.toml: one plan a sub-table. `source` is for messages; `notes` gets one
// for each key of the release before.
//   [bench.add]
//   op = "my_add"
//   args = ["randn:{t}:{n}", "randn:{t}:{n}"]
//   axes = { n = ["2^20", "2^24"], t = ["f32", "bf16"] }
//   vary = { BLOCK = [128, 256] }
//   defines = ["UNROLL=4"]
//   bytes = "3 * n * size(t)"
//   flops = "n"
//   against = ["torch.add"]
Result<std::vector<BenchPlan>> plans_of(const Json& bench, const std::string& source,
                                        std::vector<std::string>& notes);

}  // namespace kiln::cli
