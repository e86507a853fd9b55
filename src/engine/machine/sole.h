// SPDX-License-Identifier: Apache-2.0
// Which thread may change memory without atomic instructions? One that runs a grid all by itself,
// while no other grid runs in the process: a locked instruction takes ten times as long as a load
// and a store. It says when it is inside such a change, by a plain store; a thread that begins
// another grid makes that store visible (membarrier), and waits until the change is over.
#pragma once

#include <atomic>
#include <cstdint>

namespace kiln::engine {

class Worker;

struct SoleState {
  std::atomic<const Worker*> worker{nullptr};  // the one that may; null: none
  std::atomic<uint32_t> grids{0};              // that run
  std::atomic<bool> inside{false};
};
inline SoleState sole;

// In the child of a fork no thread runs a grid any more, and none will leave its change.
inline void forget_sole() {
  sole.worker = nullptr;
  sole.grids = 0;
  sole.inside = false;
}

// While a grid runs. `alone`: one thread runs all of its blocks.
class SoleGrid {
 public:
  SoleGrid(const Worker& worker, bool alone) noexcept;
  ~SoleGrid();
  SoleGrid(const SoleGrid&) = delete;
  SoleGrid& operator=(const SoleGrid&) = delete;

 private:
  bool is_sole_;
};

// For the time of one Op.
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
  // Whoever begins another grid counts it first, and then looks whether this thread is inside.
  static bool begin() {
    if (!is_ready()) return false;
    sole.inside.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (sole.grids.load(std::memory_order_acquire) == 1) return true;
    sole.inside.store(false, std::memory_order_release);
    return false;
  }
  // The system is asked for its barrier once this has been of use for a while.
  static bool is_ready() {
    return ready_.load(std::memory_order_relaxed) == Ready::Yes || get_ready();
  }
  static bool get_ready() noexcept;
  enum class Ready : uint8_t { NotYet, Yes, Never };
  static inline std::atomic<Ready> ready_{Ready::NotYet};

  bool is_sole_;
};

}  // namespace kiln::engine
