// SPDX-License-Identifier: Apache-2.0
// Which threads run the blocks of a grid? The caller works too; the others come from a pool that
// grows when first needed and takes as many as the system gives.
#pragma once

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "engine/machine/warp.h"

namespace kiln::engine {

// Never freed: its threads run until the process ends. Only one grid at a time is shared out; a
// second launch from another thread runs alone.
class Pool {
 public:
  // False: the pool is busy, or no thread could be had; nothing has run.
  bool share(Grid& grid, Worker& own, uint32_t helpers) noexcept;

 private:
  void grow(uint32_t wanted) noexcept;
  void help() noexcept;
  static void* begin(void* pool);

  std::mutex in_use_;
  std::atomic<uint32_t> helpers_{0};  // a helper that finds no room leaves
  std::atomic<bool> refused_{false};
  std::atomic<uint32_t> begun_{0};  // helpers that have begun, or left at once
  uint32_t since_refusal_ = 0;      // under in_use_
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Grid* grid_ = nullptr;
  uint32_t places_ = 0;  // helpers that may still join
  uint64_t serial_ = 0;
  uint32_t busy_ = 0;
};

}  // namespace kiln::engine
