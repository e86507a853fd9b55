// SPDX-License-Identifier: Apache-2.0
// How do threads join a grid, and when is this worth it?
#include "engine/machine/pool.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>

#include "engine/machine/events.h"
#include "engine/machine/grid.h"
#include "engine/machine/sole.h"

namespace kiln::engine {
namespace {

// Signals belong to the program's own threads. Helpers are created with all signals blocked, except
// those that report a fault of the thread itself, so they start that way.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Thread-local data of a library may be allocated when it is first used, for example by the first
// exception, and the process ends if there is no memory. So this checks that there is memory, and
// uses the data at once.
bool has_room() noexcept {
  constexpr size_t kEnough = 65536;
  void* volatile room = std::malloc(kEnough);
  std::free(room);
  if (!room) return false;
  (void)std::uncaught_exceptions();
  return true;
}

// Is there address space for one more thread, with its stack and malloc's arena, and as much again
// for everything else? If a limit leaves less, helpers would take all of it, and the next thread of
// the program itself would end the process when it first uses its thread-local data of this
// library.
bool has_space() noexcept {
  constexpr size_t kBytes = size_t{256} << 20;
  void* at = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at != MAP_FAILED && munmap(at, kBytes) == 0;
}

// Enough for a thread to have its memory to itself for a while, and few enough for all threads to
// end at about the same time. Blocks that wait for each other are taken one by one, in the order in
// which they are waited for.
uint32_t blocks_at_once(const Grid& grid, uint32_t workers) {
  if (grid.cooperative || grid.cluster_size > 1 || grid.program->may_wait) return 1;
  constexpr uint64_t kShares = 64, kMost = 16;
  if (workers == 1) return kMost;
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(grid.block_count / (kShares * workers), 1, kMost));
}

// A pointer keeps thread-local memory small, so that it need not be allocated when a thread runs
// out of memory.
Worker& worker_of_this_thread() {
  thread_local std::unique_ptr<Worker> own;
  if (!own) own = std::make_unique<Worker>();
  // The analyser thinks that a thread_local ends with its scope.
  return *own;  // NOLINT(clang-analyzer-cplusplus.NewDelete)
}

}  // namespace

bool Pool::share(Grid& grid, Worker& own, uint32_t helpers) noexcept {
  if (!in_use_.try_lock()) return false;
  grow(helpers);
  const bool shared = helpers_ > 0;
  if (shared) {
    {
      std::lock_guard lock(mutex_);
      grid_ = &grid;
      places_ = helpers;
      ++serial_;
    }
    wake_.notify_all();
    own.run_blocks(grid);
    std::unique_lock lock(mutex_);
    grid_ = nullptr;
    idle_.wait(lock, [&] { return busy_ == 0; });
  }
  in_use_.unlock();
  return shared;
}

// Requires in_use_. If the system refuses a thread (a limit on processes, no memory for a stack),
// the existing helpers serve. It is asked again later, because the limit may go away.
void Pool::grow(uint32_t wanted) noexcept {
  constexpr uint32_t kLaunchesBetweenTries = 64;
  if (helpers_ >= wanted || (refused_ && ++since_refusal_ % kLaunchesBetweenTries != 0)) return;
  pthread_attr_t detached;
  if (pthread_attr_init(&detached) != 0) return;
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  {
    SignalsBlocked while_they_begin;
    pthread_t thread;
    refused_ = false;
    for (uint32_t made = helpers_; made < wanted && !refused_; ++made) {
      refused_ = !has_space();
      if (refused_) break;
      ++helpers_;  // before it begins, because it may leave at once
      const uint32_t before = begun_.load();
      if (pthread_create(&thread, &detached, &Pool::begin, this) == 0) {
        begun_.wait(before);  // otherwise this thread could take the memory that the helper found
        continue;
      }
      --helpers_;
      refused_ = true;
    }
  }
  pthread_attr_destroy(&detached);
}

void* Pool::begin(void* pool) {
  static_cast<Pool*>(pool)->help();
  return nullptr;
}

void Pool::help() noexcept {
  const bool stays = has_room();
  if (!stays) {
    refused_ = true;
    --helpers_;
  }
  begun_.fetch_add(1);
  begun_.notify_one();
  if (!stays) return;
  Worker worker;
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return grid_ && serial_ != seen; });
    seen = serial_;
    if (places_ == 0) continue;
    --places_;
    Grid* grid = grid_;
    ++busy_;
    lock.unlock();
    worker.run_blocks(*grid);
    lock.lock();
    if (--busy_ == 0) idle_.notify_all();
  }
}

uint32_t thread_limit(const Settings& settings) {
  if (settings.threads > 0) return std::min(settings.threads, 1024u);
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return static_cast<uint32_t>(std::max(count, 1));
}

void run_grid(Grid& grid) {
  Worker& own = worker_of_this_thread();
  // Waking the pool takes some microseconds, which is not worth it for little work.
  bool small = grid.block_count == 1 || grid.block_count * grid.threads_per_block <= 1024;
  // Watchers get events from one thread, unless they can merge those of several threads.
  const bool alone = small || (grid.sink && !grid.sink->can_merge());
  const uint32_t workers = alone ? 1 : thread_limit(grid.settings);
  grid.blocks_at_once = blocks_at_once(grid, workers);
  Pool* (*pool)() = grid.device->pool;
  const SoleGrid sole_grid(own, workers == 1);
  if (workers > 1 && pool && pool()->share(grid, own, workers - 1)) return;
  own.run_blocks(grid);
}

}  // namespace kiln::engine
