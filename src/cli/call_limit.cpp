// SPDX-License-Identifier: Apache-2.0
// How does a call inside this process end when it takes longer than --limit allows?
#include "cli/call_limit.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>

#include "cli/app.h"

namespace kiln::cli {
namespace {

// What the kernel printed so far is the best hint at where it hangs. Whoever prints right now keeps
// the stream: then its words are lost, and not the end.
void flush_printed() {
  if (::ftrylockfile(stdout) != 0) return;
  ::fflush_unlocked(stdout);
  ::funlockfile(stdout);
}

}  // namespace

std::string past_limit(double limit_s) {
  return fmt::format("it did not finish in {} s (--limit)", limit_s);
}

CallLimit::CallLimit(double limit_s, Error error, const Context& context) {
  if (limit_s <= 0) return;
  sigset_t all, former;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &former);
  watchdog_ = std::thread([this, limit_s, error = std::move(error), &context] {
    std::unique_lock lock(mutex_);
    const auto limit = std::chrono::duration<double>(limit_s);
    if (changed_.wait_for(lock, limit, [this] { return done_; })) return;
    flush_printed();
    context.end_progress();
    ::_exit(report_error(error, context.json, context.terminal.color_err));
  });
  ::pthread_sigmask(SIG_SETMASK, &former, nullptr);
}

CallLimit::~CallLimit() {
  if (!watchdog_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_all();
  }
  watchdog_.join();
}

}  // namespace kiln::cli
