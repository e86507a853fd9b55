// SPDX-License-Identifier: Apache-2.0
// Does a stretch meet subnormal values, and is it faster with f32 computed in f64?
#include <algorithm>
#include <limits>
#include <optional>

#include "engine/compile/versions.h"

namespace kiln::engine {
namespace {

#if defined(__x86_64__)
// An operand was subnormal, or a result was subnormal and inexact.
constexpr uint32_t kSawSubnormals = 0x12;
bool has_seen_subnormals() { return (__builtin_ia32_stmxcsr() & kSawSubnormals) != 0; }
void forget_subnormals() { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~kSawSubnormals); }
uint64_t ticks() { return __builtin_ia32_rdtsc(); }
#else
bool has_seen_subnormals() { return false; }
void forget_subnormals() {}
uint64_t ticks() { return 0; }
#endif

Stretch& plain_of(Stretch& stretch) { return stretch.plain ? *stretch.plain : stretch; }

constexpr uint32_t kTimed = 8, kUnseen = 16;
// Other code takes longer to make than short programs lose.
constexpr uint32_t kSeen = 96;
// Other code cannot pay if an Op of 32 lanes takes fewer ticks than this: subnormals take hundreds.
constexpr double kSlow = 48;

void set_mode(Stretch& stretch, Subnormals::Mode mode) {
  Subnormals& here = stretch.subnormals;
  if (mode != Subnormals::Mode::Plain && !stretch.by_double) {
    stretch.by_double = std::make_unique<Stretch>(stretch);
    here.has_double.store(true, std::memory_order_release);
  }
  here.count = 0;
  here.mode.store(mode, std::memory_order_release);
}

}  // namespace

void look_for_subnormals(Stretch& entered, const Warp& warp) noexcept {
  Stretch& stretch = plain_of(entered);
  Subnormals& here = stretch.subnormals;
  const std::unique_lock lock(here.mutex, std::try_to_lock);
  const auto mode = here.mode.load(std::memory_order_relaxed);
  if (!lock || mode == Subnormals::Mode::TimesPlain || mode == Subnormals::Mode::TimesDouble)
    return;
  const bool seen = has_seen_subnormals();
  if (seen) forget_subnormals();
  try {
    switch (mode) {
      case Subnormals::Mode::Plain:
        if (here.rest && here.rest--) return;
        here.count = seen ? here.count + 1 : 0;
        if (seen && warp.block->grid->settings.compile_after == 0) {  // a test
          set_mode(stretch, Subnormals::Mode::Double);
        } else if (here.count > kSeen) {
          here.least[0] = here.least[1] = std::numeric_limits<double>::max();
          set_mode(stretch, Subnormals::Mode::TimesPlain);
        }
        return;
      case Subnormals::Mode::Double:
        here.count = seen ? 0 : here.count + 1;
        if (here.count > kUnseen) set_mode(stretch, Subnormals::Mode::Plain);
        return;
      default:
        return;
    }
  } catch (...) {
    // There is no memory for other code.
  }
}

TimedEntry::TimedEntry(Stretch& entered, const Warp& warp)
    : stretch_(entered), warp_(warp), begin_(ticks()), steps_(warp.steps) {
  forget_subnormals();
}

TimedEntry::~TimedEntry() {
  const auto time = static_cast<double>(ticks() - begin_);
  const bool seen = has_seen_subnormals(), is_double = stretch_.plain != nullptr;
  Stretch& stretch = plain_of(stretch_);
  Subnormals& here = stretch.subnormals;
  const std::unique_lock lock(here.mutex, std::try_to_lock);
  const auto mode = here.mode.load(std::memory_order_relaxed);
  if (!lock || mode != (is_double ? Subnormals::Mode::TimesDouble : Subnormals::Mode::TimesPlain))
    return;
  try {
    const uint64_t ops = warp_.steps - steps_ + stretch.phase.end - stretch.phase.begin;
    if (seen)
      here.least[is_double] = std::min(here.least[is_double], time / static_cast<double>(ops));
    if (++here.count < kTimed) return;
    if (!is_double && seen && here.least[0] > kSlow) {
      set_mode(stretch, Subnormals::Mode::TimesDouble);
      return;
    }
    const bool pays = is_double && here.least[1] < here.least[0] * 0.8;
    if (!pays) here.rest = uint32_t{64} << std::min(here.failed++, 14u);
    set_mode(stretch, pays ? Subnormals::Mode::Double : Subnormals::Mode::Plain);
  } catch (...) {
    here.mode.store(Subnormals::Mode::Plain, std::memory_order_relaxed);
  }
}

}  // namespace kiln::engine
