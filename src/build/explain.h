// SPDX-License-Identifier: Apache-2.0
// Why did a build do what it did, and how long did each part take? As text, as JSON, as a trace and
// as a page.
#pragma once

#include <string>

#include "base/json.h"
#include "build/plan/request.h"
#include "build/run/outcome.h"

namespace kiln::build {

std::string explain(const Outcome& outcome);
Json explain_json(const Outcome& outcome);

// For chrome://tracing and Perfetto: an event for each step and each program in it.
Json chrome_trace(const Outcome& outcome);
// The same on one page that needs no network.
std::string timeline_page(const Outcome& outcome);

}  // namespace kiln::build
