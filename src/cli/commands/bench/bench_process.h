// SPDX-License-Identifier: Apache-2.0
// Where does a benchmark run? In a process of its own: an op that hangs, crashes or takes all
// memory ends that one.
#pragma once

#include "cli/command.h"
#include "measure/op_bench.h"

namespace kiln::cli {

// Runs the request in a process: this command's own, or python3 with torch when a peer is a Python
// function. Killed after `limit_s`.
Result<results::BenchResult> run_bench_process(const measure::OpRequest& request, double limit_s,
                                               Context& context);

// What that process does, when it is this command.
Result<int> be_bench_process(const std::string& request_path, const std::string& answer_path);

// python3 on PATH that has torch, and an environment in which it finds the package next to this
// command.
struct Python {
  std::string program;
  sys::Environment env;
};
Result<Python> python_with_torch(Context& context, const std::string& what_for);
// The same, be torch there or not.
Result<Python> find_python(Context& context, const std::string& what_for);

// Starts `python -m module REQUEST ANSWER`, which writes one JSON value; an {"error"} becomes an
// Error. What the child prints goes to stderr when `show` is set.
Result<Json> ask_python(const Python& python, const std::string& module, const Json& request,
                        double limit_s, const std::string& what, bool show, Context& context);

}  // namespace kiln::cli
