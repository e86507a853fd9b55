// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/versions.h"

#include <algorithm>
#include <new>
#include <span>

namespace kiln::engine {
namespace {

// If all patterns miss as often, and none holds, code for another one is made. The number is odd:
// each time by another warp of a block.
constexpr uint32_t kMissesOfAll = 37;
// A warp for which the code holds makes up for so many for which it does not.
constexpr uint32_t kMissesPerHit = 4;
// After as many misses of all in a launch, all are tried for one warp of so many only.
constexpr uint32_t kSeldomTried = 64;
// How often one launch may make it, because the warp may not be like the others; and all launches.
constexpr uint32_t kMostOfLaunch = 3, kMostLater = 24;
// Code that holds for fewer warps is of no use.
constexpr uint32_t kFewHits = 3, kMuchUseless = 3;

// Entries that are evaluated together. Code that has lost rests for as many, and longer each time.
constexpr uint32_t kWeighed = 256, kMostRest = 16;
constexpr int64_t kDrawn = 16;  // entries per selected one, see is_drawn()

using State = LaunchFacts::State;

// Counts of several threads may get lost.
uint64_t hits_of(const Compiled& compiled) {
  const uint32_t entered = compiled.entered.load(std::memory_order_relaxed);
  const uint32_t missed = compiled.missed.load(std::memory_order_relaxed);
  return entered - std::min(entered, missed);
}

// Of the first version, and those like it.
uint64_t hits_of(const Stretch& stretch) {
  uint64_t hits = hits_of(stretch.versions[0]);
  if (stretch.is_like_first(stretch.versions[1])) hits += hits_of(stretch.versions[1]);
  for (const LaterVersion* each = stretch.later.load(); each; each = each->next)
    hits += hits_of(each->code);
  return hits;
}

bool may_make_later(const Stretch& stretch) {
  return stretch.launch.made.load(std::memory_order_relaxed) < kMostOfLaunch &&
         stretch.later_count.load(std::memory_order_relaxed) < kMostLater;
}

uint32_t useless_of(const Stretch& stretch) {
  uint32_t out = 0;
  for (const LaterVersion* each = stretch.later.load(); each; each = each->next) {
    const Compiled::State state = each->code.state.load(std::memory_order_relaxed);
    out += state == Compiled::State::Resting || hits_of(each->code) < kFewHits;
  }
  return out;
}

// Null: there is no memory for it.
LaterVersion* add_later(Stretch& stretch) {
  stretch.launch.made.fetch_add(1, std::memory_order_relaxed);
  if (stretch.later_count.fetch_add(1, std::memory_order_relaxed) >= kMostLater) return nullptr;
  auto* made = new (std::nothrow) LaterVersion;
  if (!made) return nullptr;
  made->code.taken = stretch.versions[0].taken;
  made->second.taken = stretch.versions[1].taken;
  made->next = stretch.later.load();
  while (!stretch.later.compare_exchange_weak(made->next, made)) {
  }
  return made;
}

}  // namespace

void begin_launch(Stretch& stretch, uint64_t epoch) {
  LaunchFacts& launch = stretch.launch;
  const uint64_t hits = hits_of(stretch);
  launch.hits.store(hits, std::memory_order_relaxed);
  launch.misses.store(0, std::memory_order_relaxed);
  launch.made.store(0, std::memory_order_relaxed);
  launch.allowed.store(0, std::memory_order_relaxed);
  launch.state.store(hits == 0 ? State::Never : State::Unknown, std::memory_order_relaxed);
  launch.epoch.store(epoch, std::memory_order_relaxed);
}

namespace {

// Does the first version, or one like it, hold for as many warps of this launch as it should? For
// those that have nothing to compute, as in the first row of an image, it may hold by chance.
bool holds(Stretch& stretch) {
  LaunchFacts& launch = stretch.launch;
  const uint64_t hits = hits_of(stretch), before = launch.hits.exchange(hits);
  const uint32_t missed = launch.missed.load(std::memory_order_relaxed);
  const uint64_t made_up = kMissesPerHit * (hits - std::min(hits, before));
  const uint32_t left = missed - static_cast<uint32_t>(std::min<uint64_t>(missed, made_up));
  launch.missed.store(left + 1, std::memory_order_relaxed);
  if (left >= kMissesPerHit) return false;
  if (launch.allowed.fetch_add(1, std::memory_order_relaxed) == kMissesAllowed)
    launch.state.store(State::Hold, std::memory_order_relaxed);
  return true;
}

}  // namespace

const Op* run_later(Stretch& stretch, Warp& warp, bool* done) {
  LaunchFacts& launch = stretch.launch;
  const uint64_t epoch = warp.block->grid->epoch;
  if (launch.epoch.load(std::memory_order_relaxed) != epoch) begin_launch(stretch, epoch);
  if (launch.state.load(std::memory_order_relaxed) == State::Never) return nullptr;
  if (holds(stretch)) return nullptr;
  const auto runs = [&](Compiled& code, const Op** next) {
    *next = try_code(stretch, code, warp, done);
    if (*done) stretch.favoured.store(&code, std::memory_order_release);
    return *done;
  };
  const Op* next = nullptr;
  const uint32_t misses = launch.misses.fetch_add(1, std::memory_order_relaxed);
  const uint32_t useless = useless_of(stretch);
  const uint32_t most = useless < kMuchUseless ? kMissesOfAll * kMostOfLaunch : kMissesOfAll;
  if (misses < most || misses % kSeldomTried == 0) {
    for (Compiled* each : {&stretch.versions[0], &stretch.versions[1]}) {
      if (&stretch.first() != each && stretch.is_like_first(*each) && runs(*each, &next))
        return next;
    }
    for (LaterVersion* each = stretch.later.load(); each; each = each->next) {
      if (&stretch.first() != &each->code && runs(each->code, &next)) return next;
    }
  }
  if (misses == most) launch.state.store(State::Fail, std::memory_order_relaxed);
  // After each that was of no use, twice as many misses are waited for.
  const bool waits = launch.missed.load(std::memory_order_relaxed) < kMissesOfAll << useless;
  if (waits || !may_make_later(stretch)) return nullptr;
  launch.missed.store(0, std::memory_order_relaxed);
  LaterVersion* made = add_later(stretch);
  if (!made || runs(made->code, &next)) return next;
  const Compiled& second = stretch.versions[1];
  if (is_off(made->code) &&
      second.state.load(std::memory_order_acquire) == Compiled::State::Ready &&
      made->code.plan == second.plan)
    stretch.second_is_like_first.store(true, std::memory_order_relaxed);
  return nullptr;
}

const Op* run_second(Stretch& stretch, Warp& warp, bool* done) {
  const Compiled& first = stretch.first();
  for (LaterVersion* each = stretch.later.load(); each; each = each->next) {
    if (&each->code == &first) return try_code(stretch, each->second, warp, done);
  }
  return nullptr;
}

void note_success(Stretch& stretch, Compiled& by) {
  const Compiled& first = stretch.first();
  if (&by == &first || !by.own.load(std::memory_order_relaxed)) return;
  const State state = stretch.launch.state.load(std::memory_order_relaxed);
  const uint32_t missed = first.missed.load(std::memory_order_relaxed);
  const bool misses = !stretch.is_later(first) && &by > &first && missed > kMissesAllowed &&
                      missed >= first.entered.load(std::memory_order_relaxed) / 2 &&
                      (state != State::Unknown || stretch.is_like_first(by));
  if (state == State::Fail || misses || is_off(first) ||
      first.fails.load(std::memory_order_relaxed))
    stretch.favoured.store(&by, std::memory_order_release);
}

void note_disfavour(Stretch& stretch, const Compiled& favoured) {
  if (stretch.is_later(favoured)) return;  // run_later() does
  const uint32_t entered = favoured.entered.load(std::memory_order_relaxed);
  const uint32_t before = stretch.entered_at_miss.exchange(entered, std::memory_order_relaxed);
  const uint32_t held = entered - before - 1, misses = stretch.misses.load();
  const uint32_t more = misses - std::min(misses, held) + 1;
  const bool goes_back = more > kMissesAllowed;
  stretch.misses.store(goes_back ? 0 : more, std::memory_order_relaxed);
  if (goes_back) stretch.favoured.store(stretch.versions, std::memory_order_release);
}

namespace {

// Returns false if another thread has been faster.
bool begin_rest(Compiled& compiled) {
  const uint32_t losses = compiled.losses.fetch_add(1, std::memory_order_relaxed);
  Compiled::State state = Compiled::State::Ready;
  compiled.rest.store(kWeighed << std::min(losses, kMostRest), std::memory_order_relaxed);
  if (!compiled.state.compare_exchange_strong(state, Compiled::State::Resting)) return false;
  compiled.own.store(nullptr, std::memory_order_relaxed);
  return true;
}

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
  if (!begin_rest(compiled)) return;
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

void note_failure(Stretch& stretch, Compiled& compiled) {
  compiled.fails.store(true, std::memory_order_relaxed);
  if (!begin_rest(compiled)) return;
  const auto serves = [](const Compiled& each) {
    const Compiled::State state = each.state.load(std::memory_order_acquire);
    return state != Compiled::State::Resting && state != Compiled::State::Off;
  };
  const std::span<Compiled> versions(stretch.versions);
  const bool is_for_all =
      stretch.is_later(compiled) ||
      (&compiled >= versions.data() && &compiled < versions.data() + versions.size());
  if (!is_for_all || stretch.goes_apart.load(std::memory_order_relaxed) ||
      std::any_of(versions.begin(), versions.end(), serves))
    return;
  for (const LaterVersion* each = stretch.later.load(); each; each = each->next) {
    if (serves(each->code) || serves(each->second)) return;
  }
  stretch.left_out.store(compiled.rest.exchange(0), std::memory_order_relaxed);
}

void rest(Compiled& compiled) {
  const uint32_t left = compiled.rest.load(std::memory_order_relaxed);
  if (left) return compiled.rest.store(left - 1, std::memory_order_relaxed);
  Compiled::State state = Compiled::State::Resting;
  if (!compiled.state.compare_exchange_strong(state, Compiled::State::Ready)) return;
  compiled.fails.store(false, std::memory_order_relaxed);
  compiled.entered_before.store(compiled.entered.load(), std::memory_order_relaxed);
  compiled.missed_before.store(compiled.missed.load(), std::memory_order_relaxed);
  if (compiled.made->checks_itself)
    compiled.own.store(compiled.memory.begin(), std::memory_order_release);
}

}  // namespace kiln::engine
