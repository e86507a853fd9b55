// SPDX-License-Identifier: Apache-2.0
// What is the first call made of? Stages of fresh processes, medians over several of each kind.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::results {

struct ColdStage {
  std::string name;                 // "cuInit"
  std::optional<double> median_ns;  // none: it did not happen
  std::optional<double> low_ns, high_ns;
  std::optional<std::string> why;  // it did not happen

  // What comes after the first call is a state, not a stage that one waits for.
  bool is_after_first_call() const {
    return name == "second call" || name == "steady call" || name == "second allocation";
  }
};

struct ColdKind {
  std::string kind;  // how the processes were started: "native", "python"
  int runs = 0;
  std::vector<ColdStage> stages;
  double total_ns = 0;
};

struct ColdResult {
  int format = 1;
  std::string title;
  std::vector<ColdKind> kinds;
  std::vector<std::string> advice;  // largest gain first
};

Json to_json(const ColdResult& result);
Result<ColdResult> read_cold(const Json& json, std::string_view source);

}  // namespace kiln::results
