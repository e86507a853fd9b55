// SPDX-License-Identifier: Apache-2.0
// Which thread may change memory without atomic instructions? One that runs a grid alone, while no
// other grid runs in the process. A locked instruction takes ten times as long as a load and a
// store. The thread marks such a change by a plain store; a thread that begins another grid makes
// that store visible (membarrier) and waits until the change is over.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln::engine {

class Worker;

struct SoleState {
  std::atomic<const Worker*> worker{nullptr};  // the one that may; null: none
  std::atomic<uint32_t> grids{0};              // that are running
  std::atomic<bool> inside{false};
};
inline SoleState sole;

// In the child of a fork no thread runs a grid, and none will finish its change.
inline void forget_sole() {
  sole.worker = nullptr;
  sole.grids = 0;
  sole.inside = false;
}

// Lives while a grid runs. `alone`: one thread runs all of its blocks.
class SoleGrid {
 public:
  SoleGrid(const Worker& worker, bool alone) noexcept;
  ~SoleGrid();
  SoleGrid(const SoleGrid&) = delete;
  SoleGrid& operator=(const SoleGrid&) = delete;

 private:
  bool is_sole_;
};

// Lives while one Op runs.
class SoleChange {
 public:
  explicit SoleChange(const Worker& worker)
      : is_sole_(sole.worker.load(std::memory_order_relaxed) == &worker && begin()) {}
  ~SoleChange() {
    if (is_sole_) sole.inside.store(false, std::memory_order_release);
  }
  SoleChange(const SoleChange&) = delete;
  SoleChange& operator=(const SoleChange&) = delete;
  explicit operator bool() const { return is_sole_; }

 private:
  // A thread that begins another grid first counts it and then checks whether this thread is
  // inside.
  static bool begin() {
    if (!is_ready()) return false;
    sole.inside.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sole.grids.load(std::memory_order_acquire) == 1) return true;
    sole.inside.store(false, std::memory_order_release);
    return false;
  }
  // Registers for membarrier only after a number of changes.
  static bool is_ready() {
    return ready_.load(std::memory_order_relaxed) == Ready::Yes || get_ready();
  }
  static bool get_ready() noexcept;
  enum class Ready : uint8_t { NotYet, Yes, Never };
  static inline std::atomic<Ready> ready_{Ready::NotYet};

  bool is_sole_;
};

}  // namespace kiln::engine
