// SPDX-License-Identifier: Apache-2.0
// How is a graph written for ninja?
#pragma once

#include <string>
#include <string_view>

#include "build/plan/graph.h"

namespace kiln::build {

// Each step is done by `kiln step FILE`; `kiln` is the command's path. A step that leaves its
// outputs as they were spares those after it.
std::string ninja_file(const Graph& graph, const fs::path& kiln);

}  // namespace kiln::build
