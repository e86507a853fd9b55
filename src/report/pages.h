// SPDX-License-Identifier: Apache-2.0
// Which pages does kiln write of its measurements? Each is one file; the JSON is what src/measure
// and kiln.profile make.
#pragma once

#include <string>

#include "base/json.h"

namespace kiln::report {

// {"results": [...], "history": [...]}: distributions, a roofline, the tables, how the same
// benchmarks did before.
std::string bench_page(const Json& value);
// A profile: the tree, a flame graph of the host and of the kernels, a timeline.
std::string profile_page(const Json& profile);
// A cold start: a waterfall for each kind of process, the advice.
std::string cold_page(const Json& result);
// A result of kiln tune: a heat map over any two of its axes, all configurations as a table.
std::string tune_page(const Json& result);

}  // namespace kiln::report
