// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/balance.h"

#include <algorithm>

namespace kiln::engine {
namespace {

// Entries that are evaluated together. Code that has lost rests for as many, and longer each time.
constexpr uint32_t kWeighed = 256, kMostRest = 16;
constexpr int64_t kDrawn = 16;  // entries per selected one, see is_drawn()

}  // namespace

void look_at_balance(Stretch& stretch, Compiled& compiled, uint32_t count, const Warp& warp) {
  const uint32_t entries = count + 1 - compiled.weighed.exchange(count + 1);
  const int64_t balance = compiled.balance.exchange(0, std::memory_order_relaxed);
  const auto mean = static_cast<int32_t>(balance / std::max(entries, 1u));
  compiled.mean.store(mean, std::memory_order_relaxed);
  // A test that requests compiled code from the first block on always gets it.
  if (warp.block->grid->settings.compile_after == 0) return;
  // Where lanes seldom diverge, code that exits at a disagreement saves more.
  if (&compiled == &stretch.apart_all && mean < stretch.first().mean.load()) {
    stretch.stays_together.store(true, std::memory_order_relaxed);
    stretch.goes_apart.store(false, std::memory_order_relaxed);
  }
  // The loss has to exceed the error of an estimate.
  if (mean >= -compiled.worth.entering / 4) return;
  const uint32_t losses = compiled.losses.fetch_add(1, std::memory_order_relaxed);
  Compiled::State state = Compiled::State::Ready;
  compiled.rest.store(kWeighed << std::min(losses, kMostRest), std::memory_order_relaxed);
  if (!compiled.state.compare_exchange_strong(state, Compiled::State::Resting)) return;
  compiled.own.store(nullptr, std::memory_order_relaxed);
  const auto is_ready = [](const Compiled& each) {
    return each.state.load(std::memory_order_acquire) == Compiled::State::Ready;
  };
  if (stretch.goes_apart.load(std::memory_order_relaxed) || is_ready(stretch.first()) ||
      std::any_of(std::begin(stretch.versions), std::end(stretch.versions), is_ready))
    return;
  stretch.left_out.store(compiled.rest.exchange(0), std::memory_order_relaxed);
}

void weigh(Stretch& stretch, Compiled& compiled, int64_t saved, uint32_t count, const Warp& warp) {
  const int64_t before = compiled.balance.load(std::memory_order_relaxed);
  const int64_t more = (saved - compiled.worth.entering) * kDrawn;
  compiled.balance.store(before + more, std::memory_order_relaxed);
  if (count - compiled.weighed.load(std::memory_order_relaxed) >= kWeighed)
    look_at_balance(stretch, compiled, count, warp);
}

void rest(Compiled& compiled) {
  const uint32_t left = compiled.rest.load(std::memory_order_relaxed);
  if (left) return compiled.rest.store(left - 1, std::memory_order_relaxed);
  Compiled::State state = Compiled::State::Resting;
  if (!compiled.state.compare_exchange_strong(state, Compiled::State::Ready)) return;
  if (compiled.made->checks_itself)
    compiled.own.store(compiled.memory.begin(), std::memory_order_release);
}

}  // namespace kiln::engine
