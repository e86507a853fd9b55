// SPDX-License-Identifier: Apache-2.0
// Which commands make which files from which?
#pragma once

#include <string>
#include <vector>

#include "build/plan.h"

namespace kiln::build {

// Paths are relative to the build folder, in which commands run, or absolute.
struct Edge {
  std::string what;                    // "compile add.cu"
  std::string key;                     // its outputs are obj/<key>.*
  std::string output;                  // "obj/add.cu.o"
  std::vector<std::string> inputs;     // on the command line
  std::vector<std::string> implicit;   // not on it, but they matter
  std::vector<std::string> arguments;  // of the command; kStaging + name stands for a file in the run's own folder
  bool writes_depfile = false;
  const Source* source = nullptr;  // of a compile edge
};

struct Graph {
  std::vector<Edge> edges;  // the last one makes the result
  const Edge& result() const { return edges.back(); }
};

// Every run has a staging folder of its own. A command writes there, and its results are moved to obj/ when it has
// succeeded: a killed command leaves nothing half, and one that outlives its ninja finds its folder gone.
inline constexpr std::string_view kStaging = "\x01staging/";

// Holds Plan::circumstances; edges depend on it.
inline constexpr std::string_view kCircumstancesFile = "circumstances.txt";

Graph make_graph(const Plan& plan);

}  // namespace kiln::build
