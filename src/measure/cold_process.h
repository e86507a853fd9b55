// SPDX-License-Identifier: Apache-2.0
// How long does each stage take in this process, which has done nothing else yet?
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "measure/cold.h"

namespace kiln::measure {

struct ColdRequest {
  std::string kind;
  std::filesystem::path library;
  std::vector<std::string> dependents;  // names that the library needs, for dlopen
  std::string op;
  std::vector<std::string> arguments;
};
Json to_json(const ColdRequest& request);
Result<ColdRequest> cold_request(const Json& json);

// Meant to be called once, in a fresh process.
Result<ColdRun> run_cold_stages(const ColdRequest& request);

}  // namespace kiln::measure
