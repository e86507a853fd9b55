// SPDX-License-Identifier: Apache-2.0
// What did a build do, why, and how long did each part take? The JSON of `kiln build --explain
// --json`; its text, page and trace are drawn from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace kiln::results {

struct ProgramRun {
  std::string program;  // "cicc"
  int64_t begin_ns = 0;
  double seconds = 0, cpu_seconds = 0;
  uint64_t peak_bytes = 0;
};

struct BuildStep {
  std::string what, kind;  // "link libadd.so", "link"
  std::string cache;       // "made", "hit" or "shared hit"
  std::string cache_why;   // "hit in the cache: key 12ab", "miss: inc/a.h changed"; may be empty
  std::string why;         // it could not be taken from the cache
  std::string cache_key;   // of the entry that was used or made
  int64_t begin_ns = 0;
  double seconds = 0;
  uint64_t peak_bytes = 0;
  std::vector<ProgramRun> commands;
  std::vector<std::string> findings;  // of ptxas
};

struct HeaderSeconds {
  std::string name;
  double seconds = 0;
};

struct BuildReport {
  std::string name;
  bool rebuilt = false;
  double seconds = 0;
  std::string architectures;  // "sm_80, sm_90 and PTX for 9.0"
  std::string trigger;        // what differed from the last build: "inc/a.h changed"
  std::string lane, why_lane, why_variant;
  int jobs = 0, cores = 0;
  std::string why_jobs;
  uint64_t available_bytes = 0;
  std::vector<BuildStep> steps;  // in the order in which they began
  std::vector<HeaderSeconds> headers;
};

Json to_json(const BuildReport& report);
Result<BuildReport> read_build_report(const Json& json, std::string_view source);

}  // namespace kiln::results
