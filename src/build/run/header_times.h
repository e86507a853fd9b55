// SPDX-License-Identifier: Apache-2.0
// Which headers make a device compile slow? nvcc tells with --fdevice-time-trace; the slowest
// source is compiled once more for it.
#pragma once

#include <string_view>
#include <vector>

#include "build/run/outcome.h"
#include "build/run/work.h"

namespace kiln::build {

// Of the slowest device step of this build that took longer than a second; none where there was
// none.
std::vector<HeaderTime> slow_headers(const Work& work, const std::vector<StepReport>& reports);

// The ten longest "Processing Header File" events of a trace, with what each includes.
std::vector<HeaderTime> parse_header_trace(std::string_view json);

}  // namespace kiln::build
