// SPDX-License-Identifier: Apache-2.0
// How does kiln start another program, and what becomes of it when kiln is interrupted or killed?
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/env.h"
#include "sys/files.h"

namespace kiln::sys {

struct ProcessSpec {
  std::vector<std::string> arguments;  // the first is the program's path
  fs::path directory;                  // empty: this process's
  std::optional<Environment> env;      // empty: this process's
  bool capture = true;                 // else the child writes to this process's stdout and stderr
  std::function<void()> on_wait;       // called about ten times a second while the child runs
  uint64_t memory_bytes = 0;  // that the child and what it starts may allocate, each; 0: no limit
  double limit_s = 0;         // then the child and all that it started is killed; 0: no limit
};

struct ProcessResult {
  int exit_code = 0;  // 128 + signal for a child that a signal ended
  int signal = 0;
  bool timed_out = false;   // it was killed at its limit
  std::string out;          // stdout and stderr as they came, if captured
  uint64_t peak_bytes = 0;  // of memory: the largest of the child and of those it waited for
  double cpu_seconds = 0;   // of all of them together
};

class Processes {
 public:
  virtual ~Processes() = default;
  // The child gets SIGTERM when this process dies in any way. SIGINT, SIGTERM and SIGHUP that reach
  // this process reach the child; when it has ended the call fails with Fault::Interrupted.
  virtual Result<ProcessResult> run(const ProcessSpec& spec) = 0;
};

Processes& real_processes();

// Becomes the program: returns only if that fails.
Error replace_process(const std::vector<std::string>& arguments, const Environment& env);

// Between two children a signal must not end kiln in the middle of a file: while one of these
// lives, SIGINT, SIGTERM and SIGHUP are only remembered.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};

// The signal remembered, or 0.
int pending_interrupt();
Error interrupted_error();

}  // namespace kiln::sys
