// SPDX-License-Identifier: Apache-2.0
// What can one ask of a build, and what comes back?
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "build/run_step.h"
#include "project/arch.h"
#include "sys/env.h"
#include "sys/files.h"
#include "sys/process.h"

namespace kiln::build {

namespace fs = std::filesystem;

// The options of `kiln build`, as typed. Paths may be relative to `directory`.
struct Request {
  std::vector<std::string> targets;  // sources, or one project folder; none: the project in `directory`
  fs::path directory;                // the working directory of who asks
  bool program = false;              // an executable (the sources define main) instead of an op library
  std::string name;                  // the namespace of the ops
  std::string arch;                  // a list as project::parse_arch_list reads it, or "native"
  std::vector<std::string> defines;  // "K=V" or "K"
  std::vector<std::string> cuda_flags, cflags, ldflags, includes;
  bool fast_math = false;
  bool time_headers = false;    // of the slow steps, by compiling those once more
  bool full_lane = false;       // never device code alone
  bool release = false;         // for other machines: no line tables, no paths, every generation of GPUs
  bool findings_fail = false;   // what ptxas finds (spills, serialised wgmma) is an error
  std::string compat = "auto";  // for sources with torch's headers: auto, require, never
  std::string build_dir;
  std::string output;  // also copy the result there
};

// The outside world.
struct World {
  sys::Files& files;
  sys::Processes& processes;
  const sys::Environment& env;
  // A line for a person who waits: what is going on. May be empty.
  std::function<void(const std::string&)> on_progress;
  // A line that should stay: why it waits, a compiler's warnings. May be empty.
  std::function<void(const std::string&)> on_note;
  // Each command line that ran, as a person would type it. May be empty.
  std::function<void(const std::string&)> on_command;
};

// What a person who asks --explain is told.
struct Explanation {
  std::string trigger;  // what was not as it was: "inc/a.h changed"
  std::string lane;     // "full", "device", "slice", "none"
  std::string why_lane;
  std::string why_variant;  // what asks for an architecture's `a` variant; empty: nothing does, or it was named
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
