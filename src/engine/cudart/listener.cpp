// SPDX-License-Identifier: Apache-2.0
#include "engine/cudart/listener.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/cudart/fork.h"

namespace kiln::engine {
namespace {

struct Listener {
  KilnLaunchListener function;
  void* user;
};

std::atomic<const Listener*> g_listener{nullptr};
std::mutex listener_mutex;

int64_t monotonic_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void listen_to_launches(KilnLaunchListener function, void* user) {
  // Never freed, because another thread may be about to call the previous one. There are only a few
  // per process.
  static std::vector<std::unique_ptr<Listener>>* all = new std::vector<std::unique_ptr<Listener>>;
  const std::lock_guard lock(listener_mutex);
  if (!function) {
    g_listener = nullptr;
    return;
  }
  all->push_back(std::make_unique<Listener>(Listener{function, user}));
  g_listener = all->back().get();
}

void fork_listeners(ForkPhase phase) { hold(listener_mutex, phase); }

int64_t launch_begins() { return g_listener.load(std::memory_order_acquire) ? monotonic_ns() : 0; }

void launch_ended(int64_t begin_ns, const KilnEngineLaunch& launch, const char* kernel,
                  uint64_t shared_bytes, int code) {
  const Listener* listener = g_listener.load(std::memory_order_acquire);
  if (!listener || begin_ns == 0) return;
  const KilnLaunchRecord record{
      sizeof(KilnLaunchRecord), code, kernel, launch.grid, launch.block, shared_bytes, begin_ns,
      monotonic_ns() - begin_ns};
  listener->function(&record, listener->user);
}

}  // namespace kiln::engine
