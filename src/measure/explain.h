// SPDX-License-Identifier: Apache-2.0
// What would a naive timer have said, and why is it wrong? Rows from a result that has the pieces.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace kiln::measure {

struct NaiveTime {
  std::string how;  // "perf_counter around the call, no synchronisation"
  double ns = 0;
  std::string wrong;  // what it leaves out or adds
};

// Of the first contender; the last row is the true time. "start" of the result ({"import_s",
// "build_s", "load_s"}) adds the row of a timer that was started too early.
std::vector<NaiveTime> naive_times(const Json& result);
std::string explain_text(const Json& result);

}  // namespace kiln::measure
