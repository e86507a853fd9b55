// SPDX-License-Identifier: Apache-2.0
// How are Python's handler and the engine's chained?
#include "engine/cudart/interrupt.h"

#include <dlfcn.h>
#include <signal.h>

#include <mutex>

#include "engine/cudart/fork.h"

namespace kiln::engine {
namespace {

std::atomic<uint64_t> interrupts{0};
std::mutex watch_mutex;
uint32_t watchers = 0;
struct sigaction handler_before;

void on_interrupt(int signal, siginfo_t* info, void* context) {
  interrupts.fetch_add(1, std::memory_order_relaxed);
  if (handler_before.sa_flags & SA_SIGINFO) {
    handler_before.sa_sigaction(signal, info, context);
  } else {
    handler_before.sa_handler(signal);
  }
}

bool is_plain(const struct sigaction& action) {
  return !(action.sa_flags & SA_SIGINFO) &&
         (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
}

template <class Function>
Function* in_process(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Requires watch_mutex. Returns false if Python has no handler.
bool install() {
  if (watchers++ > 0) return true;
  struct sigaction current;
  const bool wanted = sigaction(SIGINT, nullptr, &current) == 0 && !is_plain(current);
  if (wanted) {
    handler_before = current;
    struct sigaction ours = current;
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = &on_interrupt;
    if (sigaction(SIGINT, &ours, nullptr) == 0) return true;
  }
  --watchers;
  return false;
}

// Requires watch_mutex.
void uninstall() {
  struct sigaction current;
  // A handler that was installed in the meantime stays.
  if (sigaction(SIGINT, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) &&
      current.sa_sigaction == &on_interrupt) {
    sigaction(SIGINT, &handler_before, nullptr);
  }
}

}  // namespace

InterruptWatch::~InterruptWatch() {
  if (state_.load() != kWatching) return;
  std::lock_guard lock(watch_mutex);
  if (--watchers == 0) uninstall();
}

void fork_interrupts(ForkPhase phase) {
  if (phase == ForkPhase::Child &&
      watchers > 0) {  // launches of threads that the child does not have
    watchers = 0;
    uninstall();
  }
  hold(watch_mutex, phase);
}

bool InterruptWatch::raised() {
  if (state_.load(std::memory_order_acquire) == kNew) {
    // Before locking: the lookup waits for threads that load a library, and these may wait for a
    // fork (fork.h).
    const bool python = in_process<int()>("PyErr_CheckSignals") != nullptr;
    std::lock_guard lock(watch_mutex);
    if (state_.load() == kNew) {
      seen_ = interrupts.load();
      state_.store(python && install() ? kWatching : kNothingToWatch, std::memory_order_release);
    }
  }
  return state_.load(std::memory_order_acquire) == kWatching &&
         interrupts.load(std::memory_order_relaxed) != seen_;
}

bool python_will_raise() {
  auto* ensure = in_process<int()>("PyGILState_Ensure");
  auto* release = in_process<void(int)>("PyGILState_Release");
  auto* check = in_process<int()>("PyErr_CheckSignals");
  auto* clear = in_process<void()>("PyErr_Clear");
  auto* interrupt = in_process<void()>("PyErr_SetInterrupt");
  if (!ensure || !release || !check || !clear || !interrupt) return false;
  const int state = ensure();
  // Does the handler raise here? Then it will again as soon as the call has returned to the
  // interpreter. A C++ exception would reach Python as a RuntimeError, and KeyboardInterrupt would
  // follow some statements later.
  const bool raises = check() != 0;
  if (raises) {
    clear();
    interrupt();
  }
  release(state);
  return raises;
}

}  // namespace kiln::engine
