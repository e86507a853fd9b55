// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/stretches.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <ctime>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "engine/compile/entry.h"
#include "engine/compile/versions.h"
#include "engine/decode/control.h"
#include "engine/machine/advance.h"

namespace kiln::engine {
namespace {

// Code rests if it has more misses than this (or kMissesAllowed) and they are three quarters of its
// entries, or more where an entry that holds is one of many warps. Without a loop a miss costs
// little, and warps at the border of an image follow each other.
constexpr uint32_t kMissesWithoutLoops = 256;
constexpr uint32_t kEntriesPerHit = 4, kWarpsPerHit = 32;
// Misses before another version is made too.
constexpr uint32_t kMissesBefore = 4;
// Disagreements are rare if fewer than one entry in this many has one.
constexpr uint32_t kSeldom = 8;

// For code that checks itself, after a check failed.
[[gnu::cold, gnu::noinline]] uint32_t run_refused(Stretch& stretch, Compiled& compiled, Warp& warp,
                                                  Pass& pass) {
  const auto code = reinterpret_cast<Code>(reinterpret_cast<uintptr_t>(compiled.memory.begin()));
  // The checks may hold for all warps but the last, or for this warp alone: at the borders of an
  // image.
  for (uint32_t fewer : {pass.followers > 1 ? pass.followers - 1 : 0, 0u}) {
    if (fewer == pass.followers) continue;
    pass.followers = pass.left = fewer;
    const uint32_t some = code(&pass);
    if (some != kRefused) return some;
  }
  // The region of some memory may not be known yet.
  if (!Entry(stretch, compiled, warp).prepare()) return 0;
  pass.budget = static_cast<uint64_t>(warp.turn);
  pass.looked = 1;
  const uint32_t again = code(&pass);
  return again == kRefused ? 0 : again;
}

[[gnu::always_inline]] inline uint32_t run_checked(Stretch& stretch, Compiled& compiled, Warp& warp,
                                                   Pass& pass) {
  const auto code = reinterpret_cast<Code>(reinterpret_cast<uintptr_t>(compiled.memory.begin()));
  const uint32_t exit = code(&pass);
  return exit != kRefused ? exit : run_refused(stretch, compiled, warp, pass);
}

void note_miss(Stretch& stretch, Compiled& compiled, uint32_t entered) {
  const uint32_t allowed = stretch.phase.loops ? kMissesAllowed : kMissesWithoutLoops;
  const uint32_t all = compiled.missed.load(std::memory_order_relaxed) + 1;
  compiled.missed.store(all, std::memory_order_relaxed);
  const uint32_t missed = all - compiled.missed_before.load(std::memory_order_relaxed);
  if (missed <= allowed) return;
  const uint32_t here = entered - compiled.entered_before.load(std::memory_order_relaxed);
  const uint32_t part = here / (compiled.made->goes_on ? kWarpsPerHit : kEntriesPerHit);
  if (missed > here - part) note_failure(stretch, compiled);
}

// Counts of several threads may get lost: they are statistics, and an atomic addition is slow.
uint32_t count_entry(Compiled& compiled) {
  const uint32_t count = compiled.entered.load(std::memory_order_relaxed);
  compiled.entered.store(count + 1, std::memory_order_relaxed);
  return count;
}

// If lanes disagree often, code for diverging lanes comes first from now on.
[[gnu::cold, gnu::noinline]] void note_disagreement(Stretch& stretch, Compiled& compiled,
                                                    const Warp& warp) {
  if (stretch.is_short.load(std::memory_order_relaxed) ||
      stretch.stays_together.load(std::memory_order_relaxed))
    return;
  const uint32_t count = stretch.disagreed.load(std::memory_order_relaxed) + 1;
  stretch.disagreed.store(count, std::memory_order_relaxed);
  const bool at_once = warp.block->grid->settings.compile_after == 0;
  const uint32_t entered = compiled.entered.load(std::memory_order_relaxed);
  if (!at_once && (count < kMissesAllowed || count < entered / kSeldom)) return;
  if (compiled.mean.load(std::memory_order_relaxed) == Compiled::kNotWeighed)
    look_at_balance(stretch, compiled, entered - 1, warp);
  stretch.goes_apart.store(true, std::memory_order_relaxed);
}

using Mode = Subnormals::Mode;
constexpr uint32_t kLookEvery = 64;

const Op* left_by(Stretch& stretch, Compiled& compiled, uint32_t exit, Warp& warp, uint64_t left,
                  uint64_t ran) {
  if (compiled.ways[exit - 1].disagrees) [[unlikely]]
    note_disagreement(stretch, compiled, warp);
  warp.turn = static_cast<int32_t>(left);
  warp.steps += ran;
  const Compiled::Way& way = compiled.ways[exit - 1];
  if (!way.backward) return way.next;
  if (kSubnormalsAreSlow) look_for_subnormals(stretch, warp);
  return warp.yield(way.next);
}

// Has the code run all warps of the block, from the first to the last, and have they ended?
bool has_run_block(const Compiled& compiled, uint32_t exit, const Warp& warp, const Pass& pass) {
  return exit != 0 && compiled.ways[exit - 1].ends && pass.left == 0 &&
         pass.followers + 1 == warp.block->warp_count;
}

// Fills in what code that checks itself needs for any warp of the block.
[[gnu::always_inline]] inline void tell_block(Pass& pass, const Compiled& compiled,
                                              const Warp& warp, uint64_t* table) {
  pass.shared = warp.block->shared;
  pass.shared_bytes = warp.block->shared_bytes;
  pass.cache = &warp.worker->cached(nullptr);
  pass.table = table;  // for what the code looks up itself
  pass.seen = compiled.seen.get();
  pass.first_lane = 0;
}

// And for this warp.
[[gnu::always_inline]] inline void tell_warp(Pass& pass, Warp& warp) {
  // Otherwise the compiler combines this and the next stores into a vector, whose load has to wait
  // until recent stores next to it are in the cache.
  std::byte* registers = warp.registers;
#if defined(__x86_64__)
  asm("" : "+r"(registers));
#endif
  pass.registers = pass.lanes4 = pass.lanes8 = registers;
  pass.local = warp.local.data();
  pass.local_bytes = warp.local_limit;
  pass.local_stride = warp.local_stride;
  pass.budget = static_cast<uint64_t>(warp.turn);
  pass.ran = 0;
  pass.looked = 0;
}

// Like enter(), for code that checks itself.
[[gnu::always_inline]] inline const Op* enter_own(Stretch& stretch, Compiled& compiled, Warp& warp,
                                                  bool* done) {
  Room& room = *warp.worker->room;
  Pass& pass = room.pass;
  tell_block(pass, compiled, warp, room.table);
  tell_warp(pass, warp);
  const bool goes_on = compiled.made->goes_on;
  pass.followers = pass.left = goes_on ? followers(warp) : 0;
  uint32_t count = count_entry(compiled);
  uint32_t exit = warp.turn > 0 ? run_checked(stretch, compiled, warp, pass) : 0;
  // Other versions are for borders, so the next block begins with the first version again.
  if (goes_on && compiled.taken.steps_hold) {
    NextBlocks next(warp);
    while (has_run_block(compiled, exit, warp, pass) && next.step()) {
      pass.left = pass.followers;
      pass.looked = 0;
      count = count_entry(compiled);
      exit = run_checked(stretch, compiled, warp, pass);
    }
  }
  if (pass.left != pass.followers) {
    const bool ends = exit != 0 && compiled.ways[exit - 1].ends;
    become(warp, pass.followers - pass.left, ends);
  }
  // For code that continues with the next warps this would weigh only the last entry, which
  // usually failed.
  if (!goes_on && is_drawn(count)) [[unlikely]]
    weigh(stretch, compiled, saved_at(compiled, exit, pass.ran), count, warp);
  if (exit == 0 || compiled.ways[exit - 1].early) [[unlikely]] {
    note_miss(stretch, compiled, count);
    forget(compiled);
  }
  if (exit == 0) [[unlikely]]
    return nullptr;
  *done = true;
  if (kSubnormalsAreSlow && count % kLookEvery == 0) [[unlikely]]
    look_for_subnormals(stretch, warp);
  return left_by(stretch, compiled, exit, warp, pass.budget, pass.ran);
}

// The interpreter continues with the lanes that wait at each place, and with those that run.
const Op* left_apart(const Stretch& stretch, const Compiled& compiled, uint32_t exit, Warp& warp,
                     const Entry& entry) {
  const Compiled::Way& way = compiled.ways[exit - 1];
  const std::vector<uint32_t>& places = compiled.made->places;
  LaneGroup groups[kMostPlaces];
  for (size_t i = 0; i < places.size(); ++i)
    groups[i] = {&stretch.tiers->all()[places[i]], entry.waiting[i]};
  warp.steps += entry.ran;
  // A branch back to before the phase counts for the turn; otherwise a loop around the phase would
  // never end its turn.
  const bool goes_back = entry.here != 0 && way.next < &stretch.tiers->all()[stretch.phase.begin];
  const bool ends = way.backward || (goes_back && --warp.turn <= 0);
  return go_apart(warp, {groups, places.size()}, {way.next, entry.here}, ends);
}

// Null: the interpreter has to continue.
const Op* enter(Stretch& stretch, Compiled& compiled, Warp& warp, bool* done) {
  if (compiled.made->checks_itself) return enter_own(stretch, compiled, warp, done);
  const uint32_t count = count_entry(compiled);
  Entry entry(stretch, compiled, warp);
  const uint32_t exit = warp.turn > 0 && entry.prepare() ? entry.run() : 0;
  if (is_drawn(count)) [[unlikely]] {
    const bool weighs = exit != 0 && compiled.made->weighs;
    weigh(stretch, compiled, weighs ? entry.saved : saved_at(compiled, exit, entry.ran), count,
          warp);
  }
  if (exit == 0 || compiled.ways[exit - 1].early) note_miss(stretch, compiled, count);
  if (exit == 0) return nullptr;
  *done = true;
  if (kSubnormalsAreSlow && count % kLookEvery == 0) look_for_subnormals(stretch, warp);
  if (compiled.made->apart) return left_apart(stretch, compiled, exit, warp, entry);
  return left_by(stretch, compiled, exit, warp, entry.left, entry.ran);
}

}  // namespace

const Op* try_code(Stretch& stretch, Compiled& compiled, Warp& warp, bool* done) {
  Compiled::State state = compiled.state.load(std::memory_order_acquire);
  if (state == Compiled::State::New &&
      compiled.state.compare_exchange_strong(state, Compiled::State::Compiling)) {
    state = compile_timed(stretch, compiled, warp);
  }
  if (state == Compiled::State::Ready) return enter(stretch, compiled, warp, done);
  if (state == Compiled::State::Resting) rest(compiled);
  return nullptr;
}

namespace {

// Is a part of the warp inside the phase? It would be left behind.
bool others_are_inside(const Stretch& stretch, const Warp& warp) {
  if (warp.splits.empty()) return false;
  const Tiers& tiers = *stretch.tiers;
  const uint32_t count = stretch.phase.end - stretch.phase.begin;
  const auto is_inside = [&](const Op* at, const Op* first) {
    return at >= first && at < first + count;
  };
  return std::any_of(warp.splits.begin(), warp.splits.end(), [&](const Split& split) {
    return split.frame == warp.frame && (is_inside(split.at, tiers.original(stretch.phase.begin)) ||
                                         is_inside(split.at, &tiers.all()[stretch.phase.begin]));
  });
}

// Fewer Ops than this are not worth the copies.
constexpr uint64_t kFewestStoodIn = 96;

const Op* enter_stood_in(Stretch& stretch, Warp& warp, bool* done) {
  Compiled& compiled = stretch.stood_in;
  Compiled::State state = compiled.state.load(std::memory_order_acquire);
  if (state == Compiled::State::New &&
      compiled.state.compare_exchange_strong(state, Compiled::State::Compiling)) {
    state = compile_timed(stretch, compiled, warp);
  }
  if (state != Compiled::State::Ready || others_are_inside(stretch, warp)) return nullptr;
  const uint64_t before = warp.steps;
  const uint32_t missed = compiled.missed.load(std::memory_order_relaxed);
  const Op* next;
  {
    const StandIns here(warp, compiled.stand_ins);
    next = enter(stretch, compiled, warp, done);
  }
  if (warp.steps - before < kFewestStoodIn &&
      compiled.missed.load(std::memory_order_relaxed) == missed)
    note_miss(stretch, compiled, compiled.entered.load(std::memory_order_relaxed));
  return next;
}

// Was there never any code?
bool has_none(const Compiled& compiled) {
  return compiled.state.load(std::memory_order_acquire) == Compiled::State::Off &&
         compiled.code_bytes.load(std::memory_order_relaxed) == 0;
}

const Op* enter_apart(Stretch& stretch, Warp& warp, bool* done) {
  if (stretch.is_short.load(std::memory_order_relaxed)) return nullptr;
  if (others_are_inside(stretch, warp)) return nullptr;
  if (warp.mask == kFullMask) {
    const Op* next = try_code(stretch, stretch.apart_all, warp, done);
    const Compiled& first = stretch.apart_all;
    const Compiled::State state = first.state.load(std::memory_order_acquire);
    if (*done || (state == Compiled::State::Ready &&
                  first.missed.load(std::memory_order_relaxed) <= kMissesBefore))
      return next;
    // Code with fewer assumptions costs more.
    if (state == Compiled::State::Off && !first.pays) return nullptr;
    if (state == Compiled::State::Resting && !first.fails.load(std::memory_order_relaxed))
      return nullptr;
  }
  return try_code(stretch, stretch.apart, warp, done);
}

// Some lanes are elsewhere.
const Op* run_for_some(Stretch& stretch, Warp& warp, bool* done) {
  // Should the search end with this kind of code? The first kind that exists is used.
  const auto serves = [&](const Compiled& compiled) {
    if (!*done && has_none(compiled)) return false;
    if (is_off(compiled)) stretch.none_for_some.store(true, std::memory_order_relaxed);
    return true;
  };
  if (stretch.phase.loops) {
    const Op* next = try_code(stretch, stretch.some, warp, done);
    if (serves(stretch.some)) return next;
  }
  if (!stretch.is_short.load(std::memory_order_relaxed)) {
    const Op* next = enter_apart(stretch, warp, done);
    if (serves(stretch.apart)) return next;
  }
  if (stretch.phase.loops && !stretch.phase.stores) {
    const Op* next = enter_stood_in(stretch, warp, done);
    if (serves(stretch.stood_in)) return next;
  }
  stretch.none_for_some.store(true, std::memory_order_relaxed);
  return nullptr;
}

// `from`: the first version that has not been tried.
const Op* run_compiled(Stretch& stretch, size_t from, Warp& warp, bool* done) {
  if (warp.mask != kFullMask) return run_for_some(stretch, warp, done);
  if (stretch.goes_apart.load(std::memory_order_relaxed)) {
    const Op* next = enter_apart(stretch, warp, done);
    if (*done) return next;
    if (has_none(stretch.apart_all) && (!stretch.apart_all.pays || has_none(stretch.apart)))
      stretch.is_short = true, stretch.goes_apart = false;
  }
  bool off = from == 0 && !stretch.goes_apart.load(std::memory_order_relaxed), asked = false;
  for (Compiled& each : std::span(stretch.versions).subspan(from)) {
    const bool asks = &each != stretch.versions && !std::exchange(asked, true);
    const Op* next = asks ? run_later(stretch, warp, done) : nullptr;
    if (!*done && asks && stretch.is_later(stretch.first())) next = run_second(stretch, warp, done);
    if (*done) return next;
    next = try_code(stretch, each, warp, done);
    if (*done) note_success(stretch, each);
    if (*done) return next;
    off &= is_off(each);
    // Code that was never entered, or that seldom misses, leaves nothing to the next versions.
    if (each.missed.load(std::memory_order_relaxed) <= kMissesBefore) break;
  }
  if (off) stretch.none_for_all.store(true, std::memory_order_relaxed);
  return nullptr;
}

// Interprets the first Op. A branch runs in the copy, because it continues from its own place; the
// fields that it reads are the same there.
const Op* run_first(const Stretch& stretch, Warp& warp) {
  const Op* const original = stretch.original;
  if (stretch.branches_first) return original->run(warp, stretch.copy);
  const Op* const next =
      warp.mask == kFullMask ? original->run(warp, original) : warp.step_masked(original);
  return next == original + 1 ? stretch.copy + 1 : stretch.tiers->replaced(next);
}

// Runs the code or, if that is not possible, one Op in the interpreter. Code that begins with a
// branch exits at that branch if lanes disagree, so the branch is interpreted.
[[gnu::always_inline]] inline const Op* run_as(Stretch& stretch, const Op* op, Warp& warp) {
  bool done = false;
  size_t tried = 0;
  // All lanes are here, so machine code that exchanges values between lanes need not wait.
  if (warp.mask == kFullMask) warp.pass_sync = false;
  Compiled& first = first_of(stretch, warp);
  if (warp.mask == kFullMask && first.own.load(std::memory_order_acquire) &&
      !stretch.goes_apart.load(std::memory_order_relaxed)) [[likely]] {
    const Op* next = enter_own(stretch, first, warp, &done);
    if (done) [[likely]]
      return next != op || !stretch.branches_first ? next : run_first(stretch, warp);
    if (&first != stretch.versions) note_disfavour(stretch, first);
    tried = stretch.is_later(first) ? 1 : static_cast<size_t>(&first - stretch.versions) + 1;
  }
  if (tried == 0 || first.missed.load(std::memory_order_relaxed) > kMissesBefore) {
    const Op* next = run_compiled(stretch, tried, warp, &done);
    if (done) return next != op || !stretch.branches_first ? next : run_first(stretch, warp);
  }
  return run_first(stretch, warp);
}

// A warp has come from here to a barrier. The warps after it usually wait to enter the same code,
// and the way through the block to each of them takes longer than a step of a tree in shared
// memory. What the code needs for all of them is filled in once.
class Behind {
 public:
  Behind(Stretch& stretch, const Op* op, const Op* barrier, Warp& warp)
      : stretch_(stretch),
        op_(op),
        barrier_(barrier),
        block_(*warp.block),
        at_(warp.index),
        room_(*warp.worker->room),
        pass_(room_.behind) {
    Compiled& first = stretch.first();
    const bool has_own = first.own.load(std::memory_order_acquire) &&
                         !stretch.goes_apart.load(std::memory_order_relaxed) &&
                         !first.made->goes_on;
    if (!has_own) return;
    tell_block(pass_, first, warp, room_.behind_table);
    pass_.followers = pass_.left = 0;
    own_ = &first;
  }
  void run() {
    for (uint32_t i = at_ + 1; i < block_.started; ++i) {
      Warp& other = *block_.warps[i];
      if (!other.passes_to(op_)) return;
      if (!(own_ ? run_own(other) : run_any(other, run_as(stretch_, op_, other)))) return;
      block_.reached = i;
    }
  }
  ~Behind() {
    if (saved_) {
      own_->balance.store(own_->balance.load(std::memory_order_relaxed) + saved_,
                          std::memory_order_relaxed);
    }
  }
  Behind(const Behind&) = delete;
  Behind& operator=(const Behind&) = delete;

 private:
  // Returns false if the warp has not come to the barrier: it continues when the block runs it.
  bool run_any(Warp& other, const Op* next) {
    if (next && next->run == &run_barrier) next = run_barrier(other, next);
    if (other.at_barrier) return true;
    if (next) other.stand_at(next);
    return false;
  }
  bool run_own(Warp& other) {
    const auto code = reinterpret_cast<Code>(reinterpret_cast<uintptr_t>(own_->memory.begin()));
    tell_warp(pass_, other);
    const uint32_t exit = code(&pass_);
    if (exit == 0 || exit == kRefused) [[unlikely]]
      return run_any(other, run_as(stretch_, op_, other));
    const Compiled::Way& way = own_->ways[exit - 1];
    count_entry(*own_);
    if (way.next != barrier_ || way.backward || way.early || way.disagrees) [[unlikely]] {
      if (way.early) {
        note_miss(stretch_, *own_, own_->entered.load(std::memory_order_relaxed));
        forget(*own_);
      }
      const Op* next = left_by(stretch_, *own_, exit, other, pass_.budget, pass_.ran);
      return run_any(other,
                     next == op_ && stretch_.branches_first ? run_first(stretch_, other) : next);
    }
    other.turn = static_cast<int32_t>(pass_.budget);
    other.steps += pass_.ran;
    saved_ += way.saved;  // they came here at little cost
    block_.arrive_whole(other, barrier_ + 1);
    return true;
  }

  Stretch& stretch_;
  const Op *op_, *barrier_;
  Block& block_;
  uint32_t at_;
  Compiled* own_ = nullptr;
  int64_t saved_ = 0;
  Room& room_;
  Pass& pass_;
};

[[gnu::noinline]] const Op* run_whole(Stretch& stretch, const Op* op, Warp& warp) {
  if (!warp.worker->room && !make_room(*warp.worker)) [[unlikely]]
    return run_first(stretch, warp);
  const Op* next = run_as(stretch, op, warp);
  if (!next || next->run != &run_barrier || warp.mask != kFullMask) return next;
  const Op* behind = run_barrier(warp, next);
  if (warp.at_barrier && warp.index + 1 < warp.block->started &&
      !warp.block->grid->settings.schedule)
    Behind(stretch, op, next, warp).run();
  return behind;
}

[[gnu::noinline]] const Op* run_subnormal(Stretch& plain, Mode mode, const Op* op, Warp& warp) {
  // Tests run both.
  const bool alternates =
      mode == Mode::Double && warp.index % 2 == 0 && warp.block->grid->settings.compile_after == 0;
  Stretch& stretch = mode == Mode::TimesPlain || alternates ? plain : *plain.by_double;
  std::optional<TimedEntry> timed;
  if (mode != Mode::Double) timed.emplace(stretch, warp);
  return run_whole(stretch, op, warp);
}

}  // namespace

namespace {

[[gnu::always_inline]] inline const Op* run_together(Stretch& stretch, Warp& warp, const Op* op) {
  const bool is_whole = warp.mask == kFullMask;
  const std::atomic<bool>& none = is_whole ? stretch.none_for_all : stretch.none_for_some;
  if (none.load(std::memory_order_relaxed)) return run_first(stretch, warp);
  if (const uint32_t left = stretch.left_out.load(std::memory_order_relaxed); is_whole && left) {
    stretch.left_out.store(left - 1, std::memory_order_relaxed);
    return run_first(stretch, warp);
  }
  const Mode mode = stretch.subnormals.mode.load(std::memory_order_acquire);
  if (mode != Mode::Plain) [[unlikely]]
    return run_subnormal(stretch, mode, op, warp);
  return run_whole(stretch, op, warp);
}

[[gnu::noinline]] const Op* run_one_by_one(Stretch& stretch, Warp& warp, const Op* op) {
  bool done = false;
  const bool has_room = warp.worker->room || make_room(*warp.worker);
  const Op* next = has_room ? run_alone(stretch, warp, &done) : nullptr;
  return done ? next : run_together(stretch, warp, op);
}

}  // namespace

const Op* run_stretch(Warp& warp, const Op* op) {
  Stretch& stretch = *static_cast<Stretch*>(const_cast<void*>(op->data));
  if (stretch.alone && asks(*stretch.alone, warp)) [[unlikely]]
    return run_one_by_one(stretch, warp, op);
  return run_together(stretch, warp, op);
}

}  // namespace kiln::engine
