// SPDX-License-Identifier: Apache-2.0
// How are the ops of a library, and the results of a call, shown to a person and to a program?
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "host/compare.h"
#include "host/library.h"
#include "host/op_call.h"

namespace kiln::cli {

struct CallTimes {
  double first_seconds = 0;           // call and synchronisation
  std::vector<double> later_seconds;  // of --repeat, each
};

struct Expectation {
  std::string source;  // the file, or the tensor as written
  std::string output;  // which one was compared
  host::Tolerance tolerance;
  host::Comparison comparison;
};

std::string ops_text(const host::OpLibrary& library);
Json ops_json(const host::OpLibrary& library);

// "my_add(a: f32 4x5, b: f32 4x5) on engine (CPU): 1.3 ms"
std::string call_text(const host::OpCall& call, const CallTimes& times);
// `edge` elements at each end of a dimension.
std::string output_text(const host::Output& output, int64_t edge);
Json output_json(const host::Output& output);

// "engine (CPU)", "NVIDIA H200 (cuda:0)".
std::string device_label(host::Device device);
double median(std::vector<double> values);

// Why a comparison failed, in one line.
std::string mismatch_text(const Expectation& expectation);
Json expectation_json(const Expectation& expectation);

}  // namespace kiln::cli
