// SPDX-License-Identifier: Apache-2.0
// What comes back from a build?
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "build/run/run_step.h"
#include "project/arch.h"

namespace kiln::build {

namespace fs = std::filesystem;

// What a person who asks --explain sees.
struct Explanation {
  std::string trigger;  // what was not as it was: "inc/a.h changed"
  std::string lane;     // "full", "device", "slice", "none"
  std::string why_lane;
  std::string why_variant;  // what asks for an architecture's `a` variant; empty: nothing does, or
                            // it was named
  int jobs = 0, cores = 0;
  std::string why_jobs;
  uint64_t available_bytes = 0;
};

struct HeaderTime {
  std::string name;
  double seconds = 0;
};

struct Outcome {
  bool program = false;
  fs::path file;  // the library under a name of its own for its content, or the program
  fs::path link;  // lib<name>.so, which points to the newest library; empty for a program
  std::string name;
  bool rebuilt = false;
  std::vector<StepReport> steps;    // in the order in which they began
  std::vector<HeaderTime> headers;  // of slow steps, where a timeline was asked for
  Explanation explanation;
  double seconds = 0;
  project::ArchList arch;
  std::string torch_headers;   // "compat" or "torch" for sources that include torch's; else empty
  bool python_module = false;  // it has a PyInit_ function
  fs::path build_dir;
  fs::path project_dir;              // empty: a lone file
  std::vector<std::string> defines;  // kiln.toml's and the request's
};

std::string_view cache_word(const StepReport& step);
Json to_json(const Outcome& outcome);

}  // namespace kiln::build
