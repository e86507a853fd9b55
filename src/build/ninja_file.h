// SPDX-License-Identifier: Apache-2.0
// How is a graph written for ninja, and what does ninja's log say about it afterwards?
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "build/graph.h"

namespace kiln::build {

// The environment variable through which commands learn the run's staging folder. In the text it would change every
// command on every run.
inline constexpr const char* kStagingVariable = "KILN_STAGING";

std::string ninja_file(const Graph& graph);

// The command of an edge as a person would type it, with `staging` for the folder.
std::string shown_command(const Edge& edge, std::string_view staging);

// Seconds of the last run of each output, from a .ninja_log of version 5 or later.
std::map<std::string, double> parse_ninja_log(std::string_view text);

}  // namespace kiln::build
