// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/versions.h"

#include <algorithm>
#include <new>

namespace kiln::engine {
namespace {

// If all patterns miss as often, and none holds, code for another one is made. The number is odd:
// each time by another warp of a block.
constexpr uint32_t kMissesOfAll = 37;
// How often one launch may make it, because the warp may not be like the others; and all launches.
constexpr uint32_t kMostOfLaunch = 3, kMostLater = 16;
// Of code that holds for fewer warps, by chance, so much is enough.
constexpr uint32_t kFewHits = 3, kMostUseless = 3;

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

// Null: there is no memory for it, or several have been of no use.
LaterVersion* add_later(Stretch& stretch) {
  stretch.launch.made.fetch_add(1, std::memory_order_relaxed);
  uint32_t useless = 0;
  for (const LaterVersion* each = stretch.later.load(); each; each = each->next)
    useless += hits_of(each->code) < kFewHits;
  if (useless >= kMostUseless) stretch.later_count.store(kMostLater, std::memory_order_relaxed);
  if (stretch.later_count.fetch_add(1, std::memory_order_relaxed) >= kMostLater) return nullptr;
  auto* made = new (std::nothrow) LaterVersion;
  if (!made) return nullptr;
  made->code.taken = stretch.versions[0].taken;
  made->next = stretch.later.load();
  while (!stretch.later.compare_exchange_weak(made->next, made)) {
  }
  return made;
}

}  // namespace

void begin_launch(Stretch& stretch, uint64_t epoch) {
  LaunchFacts& launch = stretch.launch;
  launch.hits_before.store(hits_of(stretch), std::memory_order_relaxed);
  launch.misses.store(0, std::memory_order_relaxed);
  launch.made.store(0, std::memory_order_relaxed);
  launch.holds.store(false, std::memory_order_relaxed);
  launch.epoch.store(epoch, std::memory_order_relaxed);
}

const Op* run_later(Stretch& stretch, Warp& warp, bool* done) {
  LaunchFacts& launch = stretch.launch;
  const uint64_t epoch = warp.block->grid->epoch;
  if (launch.epoch.load(std::memory_order_relaxed) != epoch) begin_launch(stretch, epoch);
  const uint64_t before = launch.hits_before.load(std::memory_order_relaxed);
  if (before == 0 || launch.holds.load(std::memory_order_relaxed)) return nullptr;
  // Not if one holds for a few warps by chance.
  if (hits_of(stretch) > before + 1 + launch.misses.load(std::memory_order_relaxed) / 16) {
    launch.holds.store(true, std::memory_order_relaxed);
    launch.misses_all.store(0, std::memory_order_relaxed);
    return nullptr;
  }
  const auto runs = [&](Compiled& code, const Op** next) {
    *next = try_code(stretch, code, warp, done);
    if (*done) stretch.favoured.store(&code, std::memory_order_relaxed);
    return *done;
  };
  const Op* next = nullptr;
  for (Compiled* each : {&stretch.versions[0], &stretch.versions[1]}) {
    if (&stretch.first() != each && stretch.is_like_first(*each) && runs(*each, &next)) return next;
  }
  for (LaterVersion* each = stretch.later.load(); each; each = each->next) {
    if (&stretch.first() != &each->code && runs(each->code, &next)) return next;
  }
  launch.misses.fetch_add(1, std::memory_order_relaxed);
  const uint32_t misses = launch.misses_all.fetch_add(1, std::memory_order_relaxed) + 1;
  if (misses % kMissesOfAll != 0 || !may_make_later(stretch)) return nullptr;
  LaterVersion* made = add_later(stretch);
  if (!made || runs(made->code, &next)) return next;
  const Compiled& second = stretch.versions[1];
  if (is_off(made->code) &&
      second.state.load(std::memory_order_acquire) == Compiled::State::Ready &&
      made->code.plan == second.plan)
    stretch.second_is_like_first.store(true, std::memory_order_relaxed);
  return nullptr;
}

void note_success(Stretch& stretch, Compiled& by) {
  const Compiled& first = stretch.first();
  const uint32_t missed = first.missed.load(std::memory_order_relaxed);
  if (stretch.is_later(first) || stretch.is_later(by) || &by <= &first ||
      !by.own.load(std::memory_order_relaxed) || missed <= kMissesAllowed ||
      missed < first.entered.load(std::memory_order_relaxed) / 2)
    return;
  const bool holds = stretch.launch.holds.load(std::memory_order_relaxed);
  if (!holds && !stretch.is_like_first(by) && stretch.launch.hits_before.load() &&
      may_make_later(stretch))
    return;
  stretch.favoured.store(&by, std::memory_order_relaxed);
}

void note_disfavour(Stretch& stretch, const Compiled& favoured) {
  if (stretch.is_later(favoured)) return;  // run_later() does
  const uint32_t entered = favoured.entered.load(std::memory_order_relaxed);
  const uint32_t before = stretch.entered_at_miss.exchange(entered, std::memory_order_relaxed);
  const uint32_t held = entered - before - 1, misses = stretch.misses.load();
  const uint32_t more = misses - std::min(misses, held) + 1;
  const bool goes_back = more > kMissesAllowed;
  stretch.misses.store(goes_back ? 0 : more, std::memory_order_relaxed);
  if (goes_back) stretch.favoured.store(stretch.versions, std::memory_order_relaxed);
}

}  // namespace kiln::engine
