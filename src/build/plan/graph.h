// SPDX-License-Identifier: Apache-2.0
// Which steps make the result, from what?
#pragma once

#include <string>
#include <vector>

#include "build/plan/facts.h"
#include "build/plan/plan.h"
#include "build/plan/step.h"

namespace kiln::build {

struct Graph {
  std::vector<Step> steps;  // each after those it needs; the last one makes the result
  // Files of the build folder that steps read and that follow from the plan alone.
  std::vector<std::pair<std::string, std::string>> files;

  const Step& result() const { return steps.back(); }
};

// For each .cu: nvcc's own programs apart where the facts hold a recipe, else nvcc in one step.
Graph make_graph(const Plan& plan, const Facts& facts);

// nvcc's words for a source, without the files. Threads are for an nvcc that does it all by itself.
Command nvcc_command(const Plan& plan, bool extended_lambda, bool with_threads);
// Everything that a person chose, one line per step: differs when the result may.
std::string shown_intent(const Plan& plan);

}  // namespace kiln::build
