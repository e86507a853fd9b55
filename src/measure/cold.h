// SPDX-License-Identifier: Apache-2.0
// What is the first call made of? Stages of fresh processes, several of each kind, and advice.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "results/cold.h"

namespace kiln::measure {

// One thing that happens once. `why` instead of a time: it did not happen here.
struct Stage {
  std::string name;  // "cuInit"
  double ns = -1;
  std::string why;
};

// The stages of one process, in order. `kind` says how it was started: "native", "native, eager
// modules", "native, PTX compiled", "python".
struct ColdRun {
  std::string kind;
  std::vector<Stage> stages;
};
Json to_json(const ColdRun& run);
Result<ColdRun> cold_run(const Json& json);

results::ColdResult cold_result(const std::string& title, const std::vector<ColdRun>& runs);

// What a person can do about it, largest gain first; pure.
std::vector<std::string> cold_advice(const results::ColdResult& result);

}  // namespace kiln::measure
