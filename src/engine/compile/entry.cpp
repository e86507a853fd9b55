// SPDX-License-Identifier: Apache-2.0
#include "engine/compile/entry.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kiln::engine {
namespace {

// Rounds of a loop with masks before the interpreter takes over. A turn there has 2,048.
constexpr uint64_t kMaskedRounds = 1 << 16;

int64_t rise(const Pattern2& steps, uint32_t lane, uint32_t row_lanes) {
  return steps.step * int64_t{lane % row_lanes} + steps.row_step * int64_t{lane / row_lanes};
}

}  // namespace

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
    for (size_t i = 0; i < at.others.size() && cached.begin > cached.end; ++i)
      cached = touched_by(at.others[i]);
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
  // The same steps in rows of another length are other values.
  if (made_.header_rows && made_.header_rows != warp_.block->grid->block_dim.x) return false;
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

}  // namespace kiln::engine
