// SPDX-License-Identifier: Apache-2.0
// Which process runs the code that a command watches, and what does it mean when that process
// fails? `kiln sanitize` and `kiln counters` take the same targets.
#pragma once

#include <string>
#include <vector>

#include "build/plan/request.h"
#include "cli/command.h"
#include "sys/process.h"

namespace kiln::cli {

// What a user named.
struct WatchTarget {
  std::string command;  // "sanitize"
  std::string verb;     // "count the kernels of"
  std::string name;     // as it was written
  std::vector<std::string> arguments;
  build::Request request;

  std::string cannot() const { return "cannot " + verb + " " + name; }
};

struct WatchedProcess {
  enum class Kind { Op, Program, Script };
  Kind kind = Kind::Op;
  sys::ProcessSpec spec;
};
// Builds the target where it has to be. An op is called by a `kiln call` of its own.
Result<WatchedProcess> watched_process(const WatchTarget& target, Context& context);

// Why the process failed. That of `kiln call` has said so in its own words, and those are enough.
Error failure_of(const WatchTarget& target, WatchedProcess::Kind kind,
                 const sys::ProcessResult& done, double limit_s);

// What a kiln process wrote about its failure, as the error that it was.
Error error_of_kiln(const std::string& output, int exit_code, Error otherwise);

bool has_failed(const sys::ProcessResult& done);

}  // namespace kiln::cli
