// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/alone.h"

#include <algorithm>
#include <bit>

#include "engine/compile/entry.h"

namespace kiln::engine {
namespace {

// Arrivals per window: iterations of all lanes together are short, of single lanes long. kWindows
// is per way.
constexpr uint32_t kArrivals[] = {64, 4}, kWarps = 8, kWindows = 4;
// Entries until both ways are timed again: at first, and at most.
constexpr uint32_t kAgain = 256, kMost = 1 << 18;
constexpr double kFaster = 0.85;

uint64_t ticks_now() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return 0;
#endif
}

void begin_timing(Alone& alone, Alone::Mode mode) {
  alone.began = 0;
  alone.windows = 0;
  alone.least[mode == Alone::Mode::TimesAlone] = 0;
  alone.mode.store(mode, std::memory_order_release);
}

// A result that is confirmed holds for longer each time. It is tested again because code for whole
// warps may have been made in the meantime, and because launches differ.
void decide(Alone& alone) {
  const bool is_faster = alone.least[1] < alone.least[0] * kFaster;
  alone.found = is_faster == alone.was_faster ? alone.found + 1 : 0;
  alone.was_faster = is_faster;
  alone.count.store(0, std::memory_order_relaxed);
  alone.wanted.store(std::min(kAgain << std::min(2 * alone.found, 16u), kMost),
                     std::memory_order_relaxed);
  alone.by.store(nullptr, std::memory_order_release);  // from here on another thread may time
  alone.mode.store(is_faster ? Alone::Mode::Runs : Alone::Mode::Waits, std::memory_order_release);
}

// The timing thread has arrived again: adds the time since its last arrival to the window.
void note_time(Alone& alone, Alone::Mode mode) {
  const bool is_alone = mode == Alone::Mode::TimesAlone;
  const uint64_t time = ticks_now();
  const bool is_over =
      alone.by_warps ? alone.rounds >= kWarps : ++alone.arrivals >= kArrivals[is_alone];
  if (alone.began && !is_over) return;
  if (alone.began && alone.rounds) {
    const double each = static_cast<double>(time - alone.began) / static_cast<double>(alone.rounds);
    double& least = alone.least[is_alone];
    least = alone.windows == 0 ? each : std::min(least, each);
    ++alone.windows;
  }
  alone.began = time;
  alone.rounds = alone.arrivals = 0;
  if (alone.windows < kWindows) return;
  is_alone ? decide(alone) : begin_timing(alone, Alone::Mode::TimesAlone);
}

// Has this warp not arrived before?
bool is_new(Alone& alone, const Warp& warp) {
  constexpr uint64_t kWarpsOfBlock = 64;
  const uint64_t number = warp.block->number * kWarpsOfBlock + warp.index;
  const bool is_next = number > alone.newest || warp.block->number < alone.newest / kWarpsOfBlock;
  if (is_next) alone.newest = number;
  return is_next;
}

bool times(Alone& alone, const Warp& warp) {
  const Worker* by = alone.by.load(std::memory_order_relaxed);
  return by == warp.worker ||
         (!by && alone.by.compare_exchange_strong(by, warp.worker, std::memory_order_acquire));
}

// Counts one more arrival; true when enough have been counted.
bool counts(Alone& alone) {
  const uint32_t count = alone.count.load(std::memory_order_relaxed) + 1;
  alone.count.store(count, std::memory_order_relaxed);
  return count >= alone.wanted.load(std::memory_order_relaxed);
}

const Op* run_lanes(Alone& alone, Warp& warp, bool* done, uint64_t* rounds) {
  Stretch& loop = *alone.loop;
  Compiled& code = loop.versions[0];
  Compiled::State state = code.state.load(std::memory_order_acquire);
  if (state == Compiled::State::New &&
      code.state.compare_exchange_strong(state, Compiled::State::Compiling))
    state = compile_timed(loop, code, warp);
  if (state == Compiled::State::Off) alone.mode.store(Alone::Mode::Off, std::memory_order_release);
  if (state != Compiled::State::Ready || warp.turn <= 0) return nullptr;
  code.entered.store(code.entered.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  Entry entry(loop, code, warp);
  const Op* next = entry.prepare() ? entry.run_lanes(done) : nullptr;
  if (!*done)
    code.missed.store(code.missed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  *rounds = static_cast<uint64_t>(entry.saved);
  return next;
}

}  // namespace

Alone::Alone(std::unique_ptr<Stretch> of) : loop(std::move(of)) {}
Alone::~Alone() = default;

const Op* run_alone(Stretch& stretch, Warp& warp, bool* done) {
  Alone& alone = *stretch.alone;
  Alone::Mode mode = alone.mode.load(std::memory_order_acquire);
  const auto lanes = static_cast<uint32_t>(std::popcount(warp.mask));
  uint64_t rounds = 0;
  switch (mode) {
    case Alone::Mode::Off:
      return nullptr;
    case Alone::Mode::Waits:
      if (warp.block->grid->settings.lanes_alone)  // a test
        return run_lanes(alone, warp, done, &rounds);
      // Tests of other code need whole warps to run it.
      if (lanes == kWarpSize || warp.block->grid->settings.compile_after == 0) return nullptr;
      if (!counts(alone) || !times(alone, warp)) return nullptr;
      begin_timing(alone, Alone::Mode::TimesTogether);
      return nullptr;
    case Alone::Mode::TimesTogether:
      if (!times(alone, warp)) return nullptr;
      note_time(alone, mode);
      mode = alone.mode.load(std::memory_order_relaxed);
      if (mode == Alone::Mode::TimesTogether) {
        alone.rounds += alone.by_warps ? is_new(alone, warp) : lanes;
        return nullptr;
      }
      break;
    case Alone::Mode::TimesAlone:
      if (!times(alone, warp)) return nullptr;
      note_time(alone, mode);
      mode = alone.mode.load(std::memory_order_relaxed);
      if (mode == Alone::Mode::TimesAlone) break;
      return mode == Alone::Mode::Runs ? run_lanes(alone, warp, done, &rounds) : nullptr;
    case Alone::Mode::Runs:
      if (counts(alone) && times(alone, warp)) begin_timing(alone, Alone::Mode::TimesTogether);
      return run_lanes(alone, warp, done, &rounds);
  }
  const bool is_new_one = alone.by_warps && is_new(alone, warp);
  const Op* next = run_lanes(alone, warp, done, &rounds);
  alone.rounds += is_new_one ? 1 : alone.by_warps ? 0 : rounds;
  return next;
}

}  // namespace kiln::engine
