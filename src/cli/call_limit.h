// SPDX-License-Identifier: Apache-2.0
// How does a call inside this process end when it takes longer than --limit allows? With the
// process: a kernel that never returns cannot be asked to.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "cli/command.h"

namespace kiln::cli {

inline constexpr const char* kPastLimitFix =
    "raise --limit, or look for an endless loop: on the engine KILN_ENGINE_STEP_LIMIT=10000000 "
    "names its line";

// "it did not finish in 5 s (--limit)".
std::string past_limit(double limit_s);

// While it lives, a call that runs longer than `limit_s` ends the process with exit code 1 and
// `error` on stderr. 0: no limit.
class CallLimit {
 public:
  CallLimit(double limit_s, Error error, const Context& context);
  ~CallLimit();
  CallLimit(const CallLimit&) = delete;
  CallLimit& operator=(const CallLimit&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread watchdog_;
};

}  // namespace kiln::cli
