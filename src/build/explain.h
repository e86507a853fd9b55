// SPDX-License-Identifier: Apache-2.0
// Why did a build do what it did, and how long did each part take? Facts of its outcome, for
// `report` to show.
#pragma once

#include "build/run/outcome.h"
#include "results/build_report.h"

namespace kiln::build {

results::BuildReport report_of(const Outcome& outcome);

}  // namespace kiln::build
