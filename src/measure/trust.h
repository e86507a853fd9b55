// SPDX-License-Identifier: Apache-2.0
// Can these times be believed? Each trap that a report can show has a row in the docs
// (docs/guide/bench.md) and a test in which it is sprung.
#pragma once

#include "measure/run.h"

namespace kiln::measure {

// How often a call is looked at for a wait inside.
inline constexpr int kProbes = 2;

// The device works on when the event after the call is done.
bool leaves_work_behind(const Timing& timing);

// All but the one below; warnings with numbers, or a refusal.
void add_findings(Report& report);

// Memory that is less at each point of the run. Returns the refusal, if one was added.
const Finding* add_memory_findings(Report& report);

// Times over a sweep: a call that moves more bytes and does not take longer was not timed, only its
// launch was. `bytes` and `ns` belong together. "" when all is well.
std::string growth_finding(std::span<const double> bytes, std::span<const double> ns);

}  // namespace kiln::measure
