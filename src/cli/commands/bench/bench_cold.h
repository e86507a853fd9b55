// SPDX-License-Identifier: Apache-2.0
// `kiln bench --cold`: what is the first call made of?
#pragma once

#include "build/plan/request.h"
#include "cli/command.h"

namespace kiln::cli {

struct ColdOptions {
  std::filesystem::path library;
  std::string op;
  std::vector<std::string> arguments;
  std::string device;
  int runs = 10;
  double limit_s = 120;  // for each process
  std::string html;
  std::filesystem::path
      target;  // what the library was built from; a library itself cannot be built another way
  build::Request request;
};
Result<int> bench_cold(const ColdOptions& options, Context& context);

// What one of its processes does.
Result<int> be_cold_process(const std::string& request_path, const std::string& answer_path);

}  // namespace kiln::cli
