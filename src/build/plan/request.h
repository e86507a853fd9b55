// SPDX-License-Identifier: Apache-2.0
// What can one ask of a build, and which outside world does it see?
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sys/env.h"
#include "sys/files.h"
#include "sys/process.h"

namespace kiln::build {

namespace fs = std::filesystem;

// The options of `kiln build`, as typed. Paths may be relative to `directory`.
struct Request {
  std::vector<std::string>
      targets;           // sources, or one project folder; none: the project in `directory`
  fs::path directory;    // the working directory of who asks
  bool program = false;  // an executable (the sources define main) instead of an op library
  std::string name;      // the namespace of the ops
  std::string arch;      // a list as project::parse_arch_list reads it, or "native"
  std::vector<std::string> defines;  // "K=V" or "K"
  std::vector<std::string> cuda_flags, cflags, ldflags, includes;
  bool fast_math = false;
  bool time_headers = false;  // of the slow steps, by compiling those once more
  bool fresh = false;         // nothing that an earlier build left, and no cache
  bool explain = false;       // for whoever asks: the outcome always says why
  bool release = false;  // for other machines: no line tables, no paths, every generation of GPUs
  // What ptxas finds (spills, serialised wgmma) is an error; without a value the project says.
  std::optional<bool> findings_fail;
  double limit_s = 0;           // of each command that a step runs; 0: none
  uint64_t memory_bytes = 0;    // the same, of its memory; 0: all that the machine has
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

}  // namespace kiln::build
