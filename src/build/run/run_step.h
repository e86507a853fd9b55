// SPDX-License-Identifier: Apache-2.0
// How is one step done? From the cache if everything that could change its result is as it was,
// else by its commands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "build/cache/cache.h"
#include "build/plan/step.h"
#include "sys/env.h"
#include "sys/files.h"
#include "sys/process.h"

namespace kiln::build {

struct CommandRun {
  std::string program;  // "cicc"
  int64_t begin_ns = 0;
  double seconds = 0, cpu_seconds = 0;
  uint64_t peak_bytes = 0;
};

enum class Answer {
  Ran,      // no entry fitted
  Direct,   // an entry whose files are all as they are now
  Content,  // an entry with the same preprocessed text
  Off,      // there is no cache
  Never,    // its flags let it depend on what no key can hold
};

struct StepReport {
  std::string key, what, kind;
  Answer answer = Answer::Ran;
  Origin origin = Origin::None;
  std::string cache_key;  // of the entry that was used or made
  std::string why;        // it could not be taken from the cache: "inc/a.h changed"
  int64_t begin_ns = 0;
  double seconds = 0;
  uint64_t stored_bytes = 0;
  int damaged = 0;
  std::vector<CommandRun> commands;
  std::vector<std::string> notes;     // about the cache
  std::vector<std::string> findings;  // of ptxas
  std::vector<std::string> changed;   // outputs that are not as they were

  uint64_t peak_bytes() const;
};

Json to_json(const StepReport& report);
std::optional<StepReport> read_report(std::string_view text);

// In the log of a command that took longer than it may.
inline constexpr std::string_view kPastLimitSign = "stopped: it did not finish in ";

struct StepWorld {
  sys::Files& files;
  sys::Processes& processes;
  const sys::Environment& env;
  sys::fs::path build_dir;
  sys::fs::path staging;
};

// Leaves outputs, log, report and the record of what was read in obj/, or the log in the staging
// folder when a command failed: the exit code of that command, 0 when all is well.
Result<int> run_step(const Step& step, const StepWorld& world, StepReport& report);

}  // namespace kiln::build
