// SPDX-License-Identifier: Apache-2.0
// In which order would the variants of an op run on a GPU? Each is built and called once on the
// engine; nothing is timed.
#pragma once

#include "build/plan/request.h"
#include "cli/command.h"
#include "cli/commands/tune/tune_plan.h"
#include "results/tune_prediction.h"

namespace kiln::cli {

struct PredictRequest {
  build::Request request;  // of every variant
  std::string gpu;
  uint64_t seed = 0;
  double limit_s = 0;
};
Result<results::TunePrediction> predict_variants(const TunePlan& plan,
                                                 const PredictRequest& request, Context& context);

}  // namespace kiln::cli
