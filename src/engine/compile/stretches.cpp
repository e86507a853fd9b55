// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/stretches.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <ctime>
#include <optional>
#include <span>

#include "engine/machine/advance.h"

namespace kiln::engine {
namespace {

// A stretch whose code is mostly left again at once is worth nothing. Without a loop that costs
// little, and warps at the border of an image come one after the other.
constexpr uint32_t kMissesAllowed = 16, kMissesWithoutLoops = 256;
// So often it has to be left before other code is made as well.
constexpr uint32_t kMissesBefore = 4;
// One entry of so many at which lanes disagree.
constexpr uint32_t kSeldom = 8;
// Rounds of a loop with masks before the interpreter takes over. A turn there has 2,048.
constexpr uint64_t kMaskedRounds = 1 << 16;

int64_t rise(const Pattern2& steps, uint32_t lane, uint32_t row_lanes) {
  return steps.step * int64_t{lane % row_lanes} + steps.row_step * int64_t{lane / row_lanes};
}

// Which regions served last: they are looked for again.
void forget(Compiled& compiled) {
  for (size_t i = 0; i < compiled.made->reaches.size(); ++i)
    compiled.seen[i].store(0, std::memory_order_relaxed);
}

class Entry {
 public:
  Entry(Stretch& stretch, Compiled& compiled, Warp& warp)
      : stretch_(stretch), compiled_(compiled), made_(*compiled.made), warp_(warp) {
    row_lanes_ = made_.row_lanes;
  }
  // False: what the code takes for granted does not hold.
  bool prepare();
  // 0: it has to start again, interpreted.
  uint32_t run();
  uint64_t left = 0, ran = 0;
  // Of lanes that go apart: as Pass has it.
  uint32_t here = 0;
  uint32_t waiting[kMostPlaces];

 private:
  bool guards_hold() const;
  // The region that the interpreter found for an Op.
  Worker::CachedRegion& touched_by(uint32_t op) {
    return warp_.worker->cached(touched_as(stretch_, op));
  }
  bool place(const Prepared& at, uint64_t* pointer);
  bool reach(size_t index, uint64_t* words);
  uint64_t root_of(const Reach& at) const;
  static bool none(const Reach& at, uint64_t* words);
  bool is_inside(uint32_t op, uint64_t first, uint64_t bytes, bool writes);
  void put_back() const;
  void begin(Pass& pass, uint32_t lane, uint64_t budget);
  uint32_t run_once();
  uint32_t run_apart();

  Stretch& stretch_;
  Compiled& compiled_;
  const Emitted& made_;
  Warp& warp_;
  uint32_t row_lanes_;
  uint64_t table_[kMostWords];
  std::byte saved_[kMostSavedBytes];
};

bool Entry::guards_hold() const {
  for (const Guard& guard : made_.guards) {
    const std::byte* at = warp_.registers + guard.slot;
    if (guard.in == Slot::Predicate) {
      uint32_t bits;
      std::memcpy(&bits, at, 4);
      if (bits != 0 && bits != kFullMask) return false;
    } else if (guard.in == Slot::Header) {
      const Affine& header = affine_at(warp_, guard.slot);
      if (header.state == AffineState::Lanes ||
          !(header_steps(header, row_lanes_, guard.bytes == 4) == guard.steps))
        return false;
    } else if (guard.in == Slot::Scalar) {
      uint64_t number = 0;
      std::memcpy(&number, at, guard.bytes);
      if (number != guard.number) return false;
    } else if (!guard.rises.hold(at, guard.bytes)) {
      return false;
    }
  }
  return true;
}

bool Entry::is_inside(uint32_t op, uint64_t first, uint64_t bytes, bool writes) {
  Worker::CachedRegion& cached = touched_by(op);
  if (first >= cached.begin && first < cached.end && cached.end - first >= bytes &&
      (cached.writable || !writes))
    return true;
  auto region = warp_.block->grid->memory.find(first, bytes, writes);
  if (!region) return false;
  cached = {region->begin, region->end, region->writable};
  return true;
}

// All lanes at once, with every offset that the loads add.
bool Entry::place(const Prepared& at, uint64_t* pointer) {
  uint64_t base = 0;
  if (at.of == Place::Of::Header) {
    const Affine& header = affine_at(warp_, at.slot);
    if (header.state == AffineState::Lanes) return false;
    if (!(header_steps(header, row_lanes_, at.narrow) == at.steps)) return false;
    base = header.base;
  } else {
    std::memcpy(&base, warp_.registers + at.slot, at.narrow ? 4 : 8);
  }
  if (at.narrow) base &= 0xffffffffu;
  if (base & (at.align - 1)) return false;
  // Below 0 it is beyond every limit.
  const uint64_t begin = base + static_cast<uint64_t>(at.first);
  if (at.space == ptx::Space::Shared) {
    const uint64_t limit = warp_.block->shared_bytes;
    if (begin > limit || limit - begin < at.bytes) return false;
    *pointer = reinterpret_cast<uint64_t>(warp_.block->shared) + base;
    return true;
  }
  if ((begin + at.bytes) >> (at.narrow ? 32 : 56)) return false;
  if (!is_inside(at.op, begin, at.bytes, at.writes)) return false;
  *pointer = base;
  return true;
}

// Every check of it fails; behind a branch perhaps none is made.
bool Entry::none(const Reach& at, uint64_t* words) {
  words[0] = ~uint64_t{0};
  words[1] = words[2] = 0;
  return at.optional;
}

// Of memory that an address comes to only in the phase: the region that its load touched last. The
// interpreter's note of it may have been overwritten by that of another Op.
bool Entry::reach(size_t index, uint64_t* words) {
  const Reach& at = made_.reaches[index];
  uint64_t begin = 0, size = 0, move = 0;
  if (at.space == ptx::Space::Local) {
    size = warp_.local_limit;
    move = reinterpret_cast<uint64_t>(warp_.local.data());
  } else if (at.space == ptx::Space::Shared) {
    size = warp_.block->shared_bytes;
    move = reinterpret_cast<uint64_t>(warp_.block->shared);
  } else {
    Worker::CachedRegion& cached = touched_by(at.op);
    std::atomic<uint64_t>& seen = compiled_.seen[index];
    const uint64_t last = seen.load(std::memory_order_relaxed);
    const uint64_t wanted = last > kNotThere ? last : root_of(at);
    if (wanted && (wanted < cached.begin || wanted >= cached.end)) {
      if (auto region = warp_.block->grid->memory.find(wanted, 1, at.writes))
        cached = {region->begin, region->end, region->writable};
    }
    // Else the interpreter has not been there yet, or it is about to find a fault.
    if (cached.begin > cached.end || (at.writes && !cached.writable)) {
      if (at.optional) seen.store(kNotThere, std::memory_order_relaxed);
      return none(at, words);
    }
    if (last != cached.begin) seen.store(cached.begin, std::memory_order_relaxed);
    begin = cached.begin;
    size = cached.end - cached.begin;
  }
  if (size < at.span || (begin & (at.align - 1)) != 0) {
    if (at.optional) compiled_.seen[index].store(kNotThere, std::memory_order_relaxed);
    return none(at, words);
  }
  words[0] = begin;
  words[1] = size - at.span;
  words[2] = move;
  return true;
}

// Where nobody has been yet, or the note is another Op's, memory is expected where the pointer
// points to that addresses are made of; every second time, in case that is wrong. 0: not known.
uint64_t Entry::root_of(const Reach& at) const {
  if (at.root == kNoRoot || compiled_.missed.load(std::memory_order_relaxed) % 2) return 0;
  uint64_t pointer;
  const size_t lane = at.root_has_lanes ? static_cast<size_t>(std::countr_zero(warp_.mask)) : 0;
  std::memcpy(&pointer, warp_.registers + at.root + lane * sizeof pointer, sizeof pointer);
  return pointer;
}

bool Entry::prepare() {
  if (!guards_hold()) return false;
  if (made_.local_stride && made_.local_stride != warp_.local_stride) return false;
  for (size_t i = 0; i < made_.prepared.size(); ++i) {
    table_[i] = 0;
    if (!place(made_.prepared[i], &table_[i]) && !made_.prepared[i].optional) return false;
  }
  for (size_t i = 0; i < made_.reaches.size(); ++i) {
    if (!reach(i, &table_[made_.prepared.size() + i * 3])) return false;
  }
  std::byte* to = saved_;
  for (const Emitted::Saved& each : made_.saved) {
    std::memcpy(to, warp_.registers + each.slot, each.bytes);
    to += each.bytes;
  }
  return true;
}

void Entry::put_back() const {
  const std::byte* from = saved_;
  for (const Emitted::Saved& each : made_.saved) {
    std::memcpy(warp_.registers + each.slot, from, each.bytes);
    from += each.bytes;
  }
}

// From this lane on. What serves code that checks itself, and the scratch memory, are left alone.
void Entry::begin(Pass& pass, uint32_t lane, uint64_t budget) {
  pass.registers = warp_.registers;
  pass.lanes4 = warp_.registers + size_t{lane} * 4;
  pass.lanes8 = warp_.registers + size_t{lane} * 8;
  pass.table = table_;
  pass.budget = budget;
  pass.ran = 0;
  pass.first_lane = lane;
  pass.mask = warp_.mask;
  pass.warp = &warp_;
}

// All lanes in one pass, without masks.
uint32_t Entry::run_once() {
  const auto code = reinterpret_cast<Code>(reinterpret_cast<uintptr_t>(compiled_.memory.begin()));
  Pass pass;
  begin(pass, 0, static_cast<uint64_t>(warp_.turn));
  const uint32_t exit = code(&pass);
  if (exit == 0 || made_.exits[exit - 1].early) [[unlikely]]
    forget(compiled_);
  if (exit == 0) [[unlikely]]
    put_back();
  left = pass.budget;
  ran = pass.ran;
  return exit;
}

// Any lanes, each of which may end elsewhere.
uint32_t Entry::run_apart() {
  const auto code = reinterpret_cast<Code>(reinterpret_cast<uintptr_t>(compiled_.memory.begin()));
  Pass pass;
  begin(pass, 0, kMaskedRounds);
  std::fill_n(pass.waiting, made_.places.size(), 0);
  pass.here = 0;
  const uint32_t exit = code(&pass);
  if (exit == 0 || made_.exits[exit - 1].early) [[unlikely]]
    forget(compiled_);
  if (exit == 0) [[unlikely]]
    put_back();
  left = static_cast<uint64_t>(warp_.turn);
  ran = pass.ran;
  here = pass.here;
  std::copy_n(pass.waiting, made_.places.size(), waiting);
  return exit;
}

uint32_t Entry::run() {
  if (made_.apart) return run_apart();
  if (made_.lanes == kWarpSize && !made_.masked) return run_once();
  const auto code = reinterpret_cast<Code>(reinterpret_cast<uintptr_t>(compiled_.memory.begin()));
  uint32_t exit = 0;
  const uint32_t own = made_.lanes == kWarpSize ? kFullMask : (1u << made_.lanes) - 1;
  for (uint32_t lane = 0; lane < kWarpSize; lane += made_.lanes) {
    if (lane) {
      for (size_t i = 0; i < made_.prepared.size(); ++i) {
        // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): prepare() filled it
        if (table_[i] == 0) continue;  // no good
        const Pattern2& steps = made_.prepared[i].steps;
        table_[i] += static_cast<uint64_t>(rise(steps, lane, row_lanes_) -
                                           rise(steps, lane - made_.lanes, row_lanes_));
      }
    }
    if ((warp_.mask >> lane & own) == 0) continue;
    Pass pass;
    begin(pass, lane, made_.masked ? kMaskedRounds : static_cast<uint64_t>(warp_.turn));
    exit = code(&pass);
    if (exit == 0) {
      forget(compiled_);
      put_back();
      return 0;
    }
    left = made_.masked ? static_cast<uint64_t>(warp_.turn) : pass.budget;
    ran = pass.ran;
  }
  return exit;
}

// Of code that checks itself.
[[gnu::cold, gnu::noinline]] uint32_t run_refused(Stretch& stretch, Compiled& compiled, Warp& warp,
                                                  Pass& pass) {
  const auto code = reinterpret_cast<Code>(reinterpret_cast<uintptr_t>(compiled.memory.begin()));
  // Perhaps it holds of all but the last warp, or of this one alone: at the ends of an image.
  for (uint32_t fewer : {pass.followers > 1 ? pass.followers - 1 : 0, 0u}) {
    if (fewer == pass.followers) continue;
    pass.followers = pass.left = fewer;
    const uint32_t some = code(&pass);
    if (some != kRefused) return some;
  }
  // Perhaps the region of some memory was not known yet.
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

void note_miss(const Stretch& stretch, Compiled& compiled, uint32_t entered) {
  const uint32_t allowed = stretch.phase.loops ? kMissesAllowed : kMissesWithoutLoops;
  const uint32_t missed = compiled.missed.fetch_add(1, std::memory_order_relaxed) + 1;
  if (missed <= allowed || missed <= entered / 4 * 3) return;
  compiled.own.store(nullptr, std::memory_order_relaxed);
  compiled.state.store(Compiled::State::Off, std::memory_order_relaxed);
}

// Counts of several threads may get lost: they are for people, and an atomic addition is slow.
uint32_t count_entry(Compiled& compiled) {
  const uint32_t count = compiled.entered.load(std::memory_order_relaxed);
  compiled.entered.store(count + 1, std::memory_order_relaxed);
  return count;
}

// Where lanes disagree again and again, code for that comes first from now on.
[[gnu::cold, gnu::noinline]] void note_disagreement(Stretch& stretch, const Compiled& compiled,
                                                    const Warp& warp) {
  const uint32_t count = stretch.disagreed.load(std::memory_order_relaxed) + 1;
  stretch.disagreed.store(count, std::memory_order_relaxed);
  const bool at_once = warp.block->grid->settings.compile_after == 0;
  if (at_once || (count >= kMissesAllowed &&
                  count >= compiled.entered.load(std::memory_order_relaxed) / kSeldom))
    stretch.goes_apart.store(true, std::memory_order_relaxed);
}

const Op* left_by(Stretch& stretch, const Compiled& compiled, uint32_t exit, Warp& warp,
                  uint64_t left, uint64_t ran) {
  if (compiled.ways[exit - 1].disagrees) [[unlikely]]
    note_disagreement(stretch, compiled, warp);
  warp.turn = static_cast<int32_t>(left);
  warp.steps += ran;
  const Compiled::Way& way = compiled.ways[exit - 1];
  return way.backward ? warp.yield(way.next) : way.next;
}

// All warps of it, from the first to the last, and they have ended.
bool has_run_block(const Compiled& compiled, uint32_t exit, const Warp& warp, const Pass& pass) {
  return exit != 0 && compiled.ways[exit - 1].ends && pass.left == 0 &&
         pass.followers + 1 == warp.block->warp_count;
}

// As enter(), of code that checks itself.
[[gnu::always_inline]] inline const Op* enter_own(Stretch& stretch, Compiled& compiled, Warp& warp,
                                                  bool* done) {
  Pass pass;
  pass.registers = pass.lanes4 = pass.lanes8 = warp.registers;
  pass.shared = warp.block->shared;
  pass.shared_bytes = warp.block->shared_bytes;
  pass.local = warp.local.data();
  pass.local_bytes = warp.local_limit;
  pass.local_stride = warp.local_stride;
  pass.cache = &warp.worker->cached(nullptr);
  uint64_t table[kMostWords];  // for what the code finds itself
  pass.table = table;
  pass.seen = compiled.seen.get();
  pass.first_lane = 0;
  pass.budget = static_cast<uint64_t>(warp.turn);
  pass.ran = 0;
  pass.looked = 0;
  const bool goes_on = compiled.made->goes_on;
  pass.followers = pass.left = goes_on ? followers(warp) : 0;
  uint32_t count = count_entry(compiled);
  uint32_t exit = warp.turn > 0 ? run_checked(stretch, compiled, warp, pass) : 0;
  // Other versions are for borders: the next block begins with the first one again.
  if (goes_on && &compiled == stretch.versions) {
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
  if (exit == 0 || compiled.ways[exit - 1].early) [[unlikely]]
    note_miss(stretch, compiled, count);
  if (exit == 0) [[unlikely]] {
    forget(compiled);
    return nullptr;
  }
  *done = true;
  return left_by(stretch, compiled, exit, warp, pass.budget, pass.ran);
}

// The interpreter goes on with the lanes that wait at each place, and with those that run.
const Op* left_apart(const Stretch& stretch, const Compiled& compiled, uint32_t exit, Warp& warp,
                     const Entry& entry) {
  const Compiled::Way& way = compiled.ways[exit - 1];
  const std::vector<uint32_t>& places = compiled.made->places;
  LaneGroup groups[kMostPlaces];
  for (size_t i = 0; i < places.size(); ++i)
    groups[i] = {&stretch.tiers->all()[places[i]], entry.waiting[i]};
  warp.steps += entry.ran;
  // A branch back to before the phase is one of the turn's, or a loop around it would never end.
  const bool goes_back = entry.here != 0 && way.next < &stretch.tiers->all()[stretch.phase.begin];
  const bool ends = way.backward || (goes_back && --warp.turn <= 0);
  return go_apart(warp, {groups, places.size()}, {way.next, entry.here}, ends);
}

// Null: the interpreter has to go on.
const Op* enter(Stretch& stretch, Compiled& compiled, Warp& warp, bool* done) {
  if (compiled.made->checks_itself) return enter_own(stretch, compiled, warp, done);
  const uint32_t count = count_entry(compiled);
  Entry entry(stretch, compiled, warp);
  const uint32_t exit = warp.turn > 0 && entry.prepare() ? entry.run() : 0;
  if (exit == 0 || compiled.ways[exit - 1].early) note_miss(stretch, compiled, count);
  if (exit == 0) return nullptr;
  *done = true;
  if (compiled.made->apart) return left_apart(stretch, compiled, exit, warp, entry);
  return left_by(stretch, compiled, exit, warp, entry.left, entry.ran);
}

// Compiles it where nobody has. Null: the interpreter, or other code, has to go on.
const Op* try_code(Stretch& stretch, Compiled& compiled, Warp& warp, bool* done) {
  Compiled::State state = compiled.state.load(std::memory_order_acquire);
  if (state == Compiled::State::New &&
      compiled.state.compare_exchange_strong(state, Compiled::State::Compiling)) {
    state = compile_timed(stretch, compiled, warp);
  }
  return state == Compiled::State::Ready ? enter(stretch, compiled, warp, done) : nullptr;
}

// Does a part of the warp stand in the middle of the phase? It would be left behind.
bool others_are_inside(const Stretch& stretch, const Warp& warp) {
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

// So few Ops are not worth what it costs to stand in.
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

// There never was any code.
bool has_none(const Compiled& compiled) {
  return compiled.state.load(std::memory_order_acquire) == Compiled::State::Off &&
         compiled.code_bytes.load(std::memory_order_relaxed) == 0;
}

const Op* enter_apart(Stretch& stretch, Warp& warp, bool* done) {
  if (stretch.is_short.load(std::memory_order_relaxed)) return nullptr;
  if (!warp.splits.empty() && others_are_inside(stretch, warp)) return nullptr;
  if (warp.mask == kFullMask) {
    const Op* next = try_code(stretch, stretch.apart_all, warp, done);
    const Compiled& first = stretch.apart_all;
    const Compiled::State state = first.state.load(std::memory_order_acquire);
    if (*done || (state == Compiled::State::Ready &&
                  first.missed.load(std::memory_order_relaxed) <= kMissesBefore))
      return next;
    // What takes less for granted costs more.
    if (state == Compiled::State::Off && !first.pays) return nullptr;
  }
  return try_code(stretch, stretch.apart, warp, done);
}

// Some lanes are elsewhere.
const Op* run_for_some(Stretch& stretch, Warp& warp, bool* done) {
  if (stretch.phase.loops) {
    const Op* next = try_code(stretch, stretch.some, warp, done);
    if (*done || !has_none(stretch.some)) return next;
  }
  const Op* next = enter_apart(stretch, warp, done);
  if (*done || !has_none(stretch.apart)) return next;
  if (!stretch.phase.loops || stretch.phase.stores) return nullptr;
  return enter_stood_in(stretch, warp, done);
}

// `from`: the first version that has not been tried.
const Op* run_compiled(Stretch& stretch, size_t from, Warp& warp, bool* done) {
  if (warp.mask != kFullMask) return run_for_some(stretch, warp, done);
  if (stretch.goes_apart.load(std::memory_order_relaxed)) {
    const Op* next = enter_apart(stretch, warp, done);
    if (*done) return next;
  }
  for (Compiled& each : std::span(stretch.versions).subspan(from)) {
    const Op* next = try_code(stretch, each, warp, done);
    // What has never run, or always runs, leaves nothing to the others.
    if (*done || each.missed.load(std::memory_order_relaxed) <= kMissesBefore) return next;
  }
  return nullptr;
}

}  // namespace

const Op* run_stretch(Warp& warp, const Op* op) {
  Stretch& stretch = *static_cast<Stretch*>(const_cast<void*>(op->data));
  const Tiers& tiers = *stretch.tiers;
  bool done = false;
  size_t tried = 0;
  // Machine code that exchanges lanes waits for none: all are here.
  if (warp.mask == kFullMask) warp.pass_sync = false;
  Compiled& first = stretch.versions[0];
  if (warp.mask == kFullMask && first.own.load(std::memory_order_acquire) &&
      !stretch.goes_apart.load(std::memory_order_relaxed)) [[likely]] {
    const Op* next = enter_own(stretch, first, warp, &done);
    if (done) [[likely]]
      return next;
    tried = 1;
  }
  if (tried == 0 || first.missed.load(std::memory_order_relaxed) > kMissesBefore) {
    const Op* next = run_compiled(stretch, tried, warp, &done);
    if (done) return next;
  }
  const Op* original = tiers.original(stretch.phase.begin);
  return tiers.replaced(warp.mask == kFullMask ? original->run(warp, original)
                                               : warp.step_masked(original));
}

}  // namespace kiln::engine
