// SPDX-License-Identifier: Apache-2.0
// In which order would variants of an op run on a GPU that is not there? What `kiln tune --predict`
// says.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"

namespace kiln::results {

struct PredictedVariant {
  std::vector<std::string> defines;
  double us = 0, bound_us = 0;  // of one call: all its launches
  std::string limited_by;       // the resource that takes longest: "DRAM"
  std::string why;              // there is no prediction; else ""
};

struct TunePrediction {
  std::string op, gpu;
  std::vector<std::string> arguments;
  std::vector<PredictedVariant> variants;  // the fastest first, then those without a prediction
};

Json to_json(const TunePrediction& prediction);

}  // namespace kiln::results
