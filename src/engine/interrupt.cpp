// SPDX-License-Identifier: Apache-2.0
// How are Python's handler and the engine's chained?
#include "engine/interrupt.h"

#include <dlfcn.h>
#include <signal.h>

#include <mutex>

namespace kiln::engine {
namespace {

std::atomic<uint64_t> interrupts{0};
std::mutex watch_mutex;
uint32_t watchers = 0;
struct sigaction before;

void on_interrupt(int signal, siginfo_t* info, void* context) {
  interrupts.fetch_add(1, std::memory_order_relaxed);
  if (before.sa_flags & SA_SIGINFO) {
    before.sa_sigaction(signal, info, context);
  } else {
    before.sa_handler(signal);
  }
}

bool is_plain(const struct sigaction& action) {
  return !(action.sa_flags & SA_SIGINFO) && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
}

template <class Function>
Function* in_process(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

// Under watch_mutex. False: there is no Python, or its handler is not there.
bool install() {
  if (watchers++ > 0) return true;
  struct sigaction current;
  const bool wanted =
      in_process<int()>("PyErr_CheckSignals") && sigaction(SIGINT, nullptr, &current) == 0 && !is_plain(current);
  if (wanted) {
    before = current;
    struct sigaction ours = current;
    ours.sa_flags |= SA_SIGINFO;
    ours.sa_sigaction = &on_interrupt;
    if (sigaction(SIGINT, &ours, nullptr) == 0) return true;
  }
  --watchers;
  return false;
}

}  // namespace

InterruptWatch::~InterruptWatch() {
  if (state_.load() != kWatching) return;
  std::lock_guard lock(watch_mutex);
  if (--watchers > 0) return;
  struct sigaction current;
  // Whoever has put in a handler of his own meanwhile keeps it.
  if (sigaction(SIGINT, nullptr, &current) == 0 && (current.sa_flags & SA_SIGINFO) &&
      current.sa_sigaction == &on_interrupt) {
    sigaction(SIGINT, &before, nullptr);
  }
}

bool InterruptWatch::poll() {
  if (state_.load(std::memory_order_acquire) == kNew) {
    std::lock_guard lock(watch_mutex);
    if (state_.load() == kNew) {
      seen_ = interrupts.load();
      state_.store(install() ? kWatching : kNothingToWatch, std::memory_order_release);
    }
  }
  return state_.load(std::memory_order_acquire) == kWatching && interrupts.load(std::memory_order_relaxed) != seen_;
}

bool python_will_raise() {
  auto* ensure = in_process<int()>("PyGILState_Ensure");
  auto* release = in_process<void(int)>("PyGILState_Release");
  auto* check = in_process<int()>("PyErr_CheckSignals");
  auto* clear = in_process<void()>("PyErr_Clear");
  auto* interrupt = in_process<void()>("PyErr_SetInterrupt");
  if (!ensure || !release || !check || !clear || !interrupt) return false;
  const int state = ensure();
  // Does the handler raise here? Then it will again, as soon as the call has returned to the interpreter. An exception
  // of C++ instead would reach Python as a RuntimeError, and KeyboardInterrupt would come some statement later.
  const bool raises = check() != 0;
  if (raises) {
    clear();
    interrupt();
  }
  release(state);
  return raises;
}

}  // namespace kiln::engine
