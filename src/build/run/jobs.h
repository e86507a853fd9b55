// SPDX-License-Identifier: Apache-2.0
// How many compilers may run side by side without running out of memory?
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "build/plan/step.h"
#include "sys/files.h"

namespace kiln::build {

// What a step takes of which no one remembers a peak: cicc and nvcc on cub or CUTLASS headers take
// between 1 and 1.5 GB.
uint64_t assumed_peak_bytes(StepKind kind);

struct JobLimit {
  int jobs = 1;
  std::string why;  // "2 cores", "MAX_JOBS", "3.1 GB of memory for steps of up to 1.5 GB each"
};

// MAX_JOBS as it is set, else one for each core that memory allows; at least one. `peaks_bytes` are
// those of the steps that may run: as many as the largest of them fit side by side.
Result<JobLimit> job_limit(const std::optional<std::string>& max_jobs, int cores,
                           uint64_t available_bytes, std::vector<uint64_t> peaks_bytes);

// The most memory that each step took when it last ran, kept for the next build, also of another
// folder.
class Peaks {
 public:
  Peaks(sys::Files& files, sys::fs::path file);
  uint64_t expected_bytes(const Step& step) const;
  void saw(const Step& step, uint64_t bytes);
  void keep();

 private:
  sys::Files& files_;
  sys::fs::path file_;
  Json known_ = Json::object();
  bool changed_ = false;
};

}  // namespace kiln::build
