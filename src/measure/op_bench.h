// SPDX-License-Identifier: Apache-2.0
// How is an op of a library timed in this process, without Python and without torch?
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "measure/run.h"
#include "results/bench.h"

namespace kiln::measure {

// What a benchmark process is asked for; crosses to it as JSON.
struct OpRequest {
  std::filesystem::path library;
  std::string op;
  std::vector<std::string> arguments;
  std::vector<std::string> against;  // names of Python callables; for the process with torch
  std::string expect;                // a tensor spec that the first result must equal; may be empty
  std::string device;                // "cuda", "engine" or "": as the library says
  uint64_t seed = 0;
  std::optional<double> bytes, flops;
  Json options = Json::object();  // of the timing core
};
Json to_json(const OpRequest& request);
Result<OpRequest> op_request(const Json& json);

// Calls it, checks what can be checked without a reference, times it. The result has "title" and
// "correct".
Result<results::BenchResult> bench_op(const OpRequest& request);

}  // namespace kiln::measure
