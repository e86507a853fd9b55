// SPDX-License-Identifier: Apache-2.0
// How is a graph written for ninja?
#pragma once

#include <set>
#include <string>

#include "build/plan/graph.h"

namespace kiln::build {

// Each step is done by `kiln step FILE`; `kiln` is the command's path. A step that leaves its
// outputs as they were spares those after it. `stale`: keys of steps that run whatever ninja
// thinks.
std::string ninja_file(const Graph& graph, const fs::path& kiln,
                       const std::set<std::string>& stale);

}  // namespace kiln::build
