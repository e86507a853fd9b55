// SPDX-License-Identifier: Apache-2.0
// Which threads run the blocks of a grid? The caller, and helpers from a pool that grows when they
// are first needed, as far as the system allows.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "engine/machine/warp.h"

namespace kiln::engine {

// Never freed, because its threads run until the process ends. It serves one grid at a time; a
// second launch from another thread runs on that thread alone.
class Pool {
 public:
  // Returns false if the pool is busy or has no threads; nothing has run then.
  bool share(Grid& grid, Worker& own, uint32_t helpers) noexcept;

 private:
  void grow(uint32_t wanted) noexcept;
  void help() noexcept;
  static void* begin(void* pool);

  std::mutex in_use_;
  std::atomic<uint32_t> helpers_{0};  // a helper that finds no memory leaves
  std::atomic<bool> refused_{false};
  std::atomic<uint32_t> begun_{0};  // helpers that have begun, including those that left at once
  uint32_t since_refusal_ = 0;      // protected by in_use_
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Grid* grid_ = nullptr;
  uint32_t places_ = 0;  // helpers that may still join
  uint64_t serial_ = 0;
  uint32_t busy_ = 0;
};

}  // namespace kiln::engine
