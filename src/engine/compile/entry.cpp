// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/entry.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "engine/compile/stand_ins.h"
#include "engine/machine/affine.h"

namespace kiln::engine {
namespace {

// Iterations of a loop with masks before the interpreter takes over. A turn there has 2,048.
constexpr uint64_t kMaskedRounds = 1 << 16;

int64_t rise(const Pattern2& steps, uint32_t lane, uint32_t row_lanes) {
  return steps.step * int64_t{lane % row_lanes} + steps.row_step * int64_t{lane / row_lanes};
}

}  // namespace

bool make_room(Worker& worker) {
  worker.room = {new (std::nothrow) Room, [](Room* room) { delete room; }};
  return worker.room != nullptr;
}

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

// Checks all lanes at once, with every offset that the loads add.
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
  // A negative number is beyond every limit.
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

// Makes every check of this reach fail; behind a branch there may be none.
bool Entry::none(const Reach& at, uint64_t* words) {
  words[0] = ~uint64_t{0};
  words[1] = words[2] = 0;
  return at.optional;
}

// Memory whose address is known only in the phase: the region that its load accessed last. Another
// Op may have overwritten the interpreter's cache entry.
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
    for (size_t i = 0; i < at.others.size() && cached.begin > cached.end; ++i)
      cached = touched_by(at.others[i]);
    // Otherwise the interpreter has not run the Op yet, or it is about to find a fault.
    if (cached.begin > cached.end || (at.writes && !cached.writable)) {
      if (at.optional) seen.store(kNotThere, std::memory_order_relaxed);
      return none(at, words);
    }
    if (last != cached.begin) seen.store(cached.begin, std::memory_order_relaxed);
    begin = cached.begin;
    size = cached.end - cached.begin;
  }
  // Its offsets begin at 0, which passes a check that none() makes.
  if (is_own(at.space) && size < at.span) return false;
  if (size < at.span || (begin & (at.align - 1)) != 0) {
    if (at.optional) compiled_.seen[index].store(kNotThere, std::memory_order_relaxed);
    return none(at, words);
  }
  words[0] = begin;
  words[1] = size - at.span;
  words[2] = move;
  return true;
}

// If there is no cache entry yet, or it belongs to another Op, the memory is expected where the
// pointer points that the addresses are computed from. Every second time, because this may be
// wrong. 0: unknown.
uint64_t Entry::root_of(const Reach& at) const {
  if (at.root == kNoRoot || compiled_.missed.load(std::memory_order_relaxed) % 2) return 0;
  uint64_t pointer;
  const size_t lane = at.root_has_lanes ? static_cast<size_t>(std::countr_zero(warp_.mask)) : 0;
  std::memcpy(&pointer, warp_.registers + at.root + lane * sizeof pointer, sizeof pointer);
  return pointer;
}

bool Entry::prepare() {
  // The same steps in rows of another length are other values.
  if (made_.header_rows && made_.header_rows != warp_.block->grid->block_dim.x) return false;
  if (!guards_hold()) return false;
  if (made_.local_stride && made_.local_stride != warp_.local_stride) return false;
  for (size_t i = 0; i < made_.prepared.size(); ++i) {
    room_.table[i] = 0;
    if (!place(made_.prepared[i], &room_.table[i]) && !made_.prepared[i].optional) return false;
  }
  for (size_t i = 0; i < made_.reaches.size(); ++i) {
    if (!reach(i, &room_.table[made_.prepared.size() + i * 3])) return false;
  }
  std::byte* to = room_.saved;
  for (const Emitted::Saved& each : made_.saved) {
    std::memcpy(to, warp_.registers + each.slot, each.bytes);
    to += each.bytes;
  }
  return true;
}

void Entry::put_back() const {
  const std::byte* from = room_.saved;
  for (const Emitted::Saved& each : made_.saved) {
    std::memcpy(warp_.registers + each.slot, from, each.bytes);
    from += each.bytes;
  }
}

// A pass from this lane on. Does not touch the scratch memory and the fields for code that checks
// itself.
void Entry::begin(Pass& pass, uint32_t lane, uint64_t budget) {
  pass.registers = warp_.registers;
  pass.lanes4 = warp_.registers + size_t{lane} * 4;
  pass.lanes8 = warp_.registers + size_t{lane} * 8;
  pass.table = room_.table;
  pass.budget = budget;
  pass.ran = 0;
  pass.first_lane = lane;
  pass.mask = warp_.mask;
  pass.warp = &warp_;
}

// All lanes in one pass, without masks.
uint32_t Entry::run_once() {
  const auto code = reinterpret_cast<Code>(reinterpret_cast<uintptr_t>(compiled_.memory.begin()));
  Pass& pass = room_.pass;
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

// Any lanes, each of which may end at another place.
uint32_t Entry::run_apart() {
  const auto code = reinterpret_cast<Code>(reinterpret_cast<uintptr_t>(compiled_.memory.begin()));
  Pass& pass = room_.pass;
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
  saved = pass.saved;
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
        if (room_.table[i] == 0) continue;  // invalid
        const Pattern2& steps = made_.prepared[i].steps;
        room_.table[i] += static_cast<uint64_t>(rise(steps, lane, row_lanes_) -
                                                rise(steps, lane - made_.lanes, row_lanes_));
      }
    }
    if ((warp_.mask >> lane & own) == 0) continue;
    Pass& pass = room_.pass;
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

// Each lane has its own local memory.
void Entry::move_local(uint32_t lane) {
  for (size_t i = 0; i < made_.reaches.size(); ++i) {
    if (made_.reaches[i].space != ptx::Space::Local) continue;
    room_.table[made_.prepared.size() + i * 3 + 2] =
        reinterpret_cast<uint64_t>(warp_.local.data()) + uint64_t{lane} * warp_.local_stride;
  }
}

// Regions do not overlap, so two regions with the same start are the same region.
bool Entry::loads_where_it_stores() const {
  const auto begin = [&](size_t i) { return room_.table[made_.prepared.size() + i * 3]; };
  const auto is_global = [&](size_t i) { return !is_own(made_.reaches[i].space); };
  for (size_t i = 0; i < made_.reaches.size(); ++i) {
    if (!is_global(i) || !made_.reaches[i].writes) continue;
    for (size_t j = 0; j < made_.reaches.size(); ++j) {
      if (is_global(j) && !made_.reaches[j].writes && begin(i) == begin(j)) return true;
    }
  }
  return false;
}

const Op* Entry::run_lanes(bool* done) {
  if (stretch_.phase.keeps_apart && loads_where_it_stores()) return nullptr;
  const auto code = reinterpret_cast<Code>(reinterpret_cast<uintptr_t>(compiled_.memory.begin()));
  const Op* const first = &stretch_.tiers->all()[stretch_.phase.first()];
  for (uint32_t slot : made_.headers) materialize(warp_, slot);
  LaneGroup groups[kWarpSize];
  size_t count = 0;
  LaneGroup paused{first, 0};  // lanes whose turn is over
  Pass& pass = room_.pass;
  for (uint32_t rest = warp_.mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    begin(pass, lane, kMaskedRounds);
    move_local(lane);
    pass.saved = 0;
    const uint32_t exit = code(&pass);
    const Op* next = exit ? compiled_.ways[exit - 1].next : first;
    saved += pass.saved + 1;
    ran = std::max(ran, pass.ran);
    if (exit && compiled_.ways[exit - 1].early) forget(compiled_);
    *done |= next != first || pass.saved != 0;
    if (exit && compiled_.ways[exit - 1].backward && (!paused.lanes || paused.at == next)) {
      paused.at = next;
      paused.lanes |= 1u << lane;
      continue;
    }
    LaneGroup* group = std::find_if(groups, groups + count,
                                    [&](const LaneGroup& each) { return each.at == next; });
    if (group == groups + count) groups[count++] = {next, 0};
    group->lanes |= 1u << lane;
  }
  if (!*done) return nullptr;
  warp_.steps += ran;
  return go_apart(warp_, {groups, count}, paused, paused.lanes != 0);
}

}  // namespace kiln::engine
