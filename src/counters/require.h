// SPDX-License-Identifier: Apache-2.0
// Does a run keep what a test asks of it? "sectors_per_request[add.cu:12] <= 4".
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "results/counter_report.h"

namespace kiln::counters {

struct Requirement {
  std::string text;
  std::string metric;
  std::string place;  // a line, or a part of a kernel's name; "": every launch
  std::string sign;   // "<=", "<", ">=", ">", "==", "!="
  double number = 0;
};
// Wrong words are an error before anything runs.
Result<Requirement> parse_requirement(const std::string& text);

struct Miss {
  std::string text;  // the requirement
  std::string where;
  double seen = 0;
};
// What does not hold. A line at which nothing ran, or a kernel that was not launched, is an error.
Result<std::vector<Miss>> check(const results::CounterReport& report, const Requirement& wanted);

}  // namespace kiln::counters
