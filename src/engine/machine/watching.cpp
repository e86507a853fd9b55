// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/watching.h"

#include <bit>

#include "engine/machine/affine.h"
#include "engine/memory/mbarrier.h"

namespace kiln::engine {
namespace {

template <class A>
void add_offset(const A* from, uint64_t offset, uint64_t (&to)[kWarpSize]) {
  for (uint32_t i = 0; i < kWarpSize; ++i) to[i] = static_cast<A>(from[i] + static_cast<A>(offset));
}

// A run of 32-bit addresses that wraps around is delivered by lanes.
bool run_wraps(uint64_t base, uint64_t step) {
  const auto signed_step = static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(step)));
  const int64_t last = static_cast<int64_t>(base) + signed_step * (kWarpSize - 1);
  return last < 0 || last > int64_t{0xffffffff};
}

// Returns false if the addresses must be delivered by lanes.
bool read_rows(const Affine& value, uint64_t offset, bool narrow, AccessEvent* event) {
  Affine at = value;
  at.base += offset;
  if (at.state == AffineState::Lanes) return false;
  if (narrow) {
    uint32_t least, most;
    if (!affine_bounds<uint32_t>(at, &least, &most)) return false;
    at.base = static_cast<uint32_t>(at.base);
    at.step = static_cast<uint64_t>(int64_t{static_cast<int32_t>(at.step)});
    at.row_step = static_cast<uint64_t>(int64_t{static_cast<int32_t>(at.row_step)});
  }
  event->shape = AddressShape::Rows;
  event->base = at.base;
  event->step = at.step;
  event->row_step = at.row_step;
  event->row_lanes = at.row_lanes;
  return true;
}

// Fills in the shape, base and step, or the lanes. Inline, because every access calls it.
[[gnu::always_inline]] inline void read_addresses(Warp& warp, const Op* op, AccessEvent* event,
                                                  uint64_t (&lanes)[kWarpSize]) {
  const auto offset = static_cast<uint64_t>(op->imm);
  const bool narrow = op->x & kAddress32;
  if (op->x & kAddressUniform) {
    const uint64_t at = narrow ? *warp.lanes<uint32_t>(op->a) : *warp.lanes<uint64_t>(op->a);
    event->shape = AddressShape::Uniform;
    event->base = narrow ? static_cast<uint32_t>(at + offset) : at + offset;
    return;
  }
  uint32_t slot = op->a;
  if (op->x & kAddressRows) {
    if (read_rows(affine_at(warp, op->a), offset, narrow, event)) return;
    materialize(warp, op->a);
    slot += kAffineLanes;
  }
  if (op->x & kAddressAffine) {
    const Affine& value = affine_at(warp, op->a);
    const uint64_t base = value.base + offset;
    if (value.state != AffineState::Lanes && !narrow) {
      event->shape = AddressShape::Run;
      event->base = base;
      event->step = value.step;
      return;
    }
    if (value.state != AffineState::Lanes && !run_wraps(base & 0xffffffffu, value.step)) {
      event->shape = AddressShape::Run;
      event->base = base & 0xffffffffu;
      event->step = static_cast<uint64_t>(
          static_cast<int64_t>(static_cast<int32_t>(static_cast<uint32_t>(value.step))));
      return;
    }
    materialize(warp, op->a);
    slot += kAffineLanes;
  }
  event->shape = AddressShape::Lanes;
  event->addresses = lanes;
  if (narrow) {
    add_offset(warp.lanes<uint32_t>(slot), offset, lanes);
  } else {
    add_offset(warp.lanes<uint64_t>(slot), offset, lanes);
  }
}

}  // namespace

void deliver_access(Warp& warp, const Op* op, const AccessSite& site) {
  uint64_t lanes[kWarpSize];
  AccessEvent event{.by = actor(warp, op),
                    .space = static_cast<ptx::Space>(op->z),
                    .kind = site.kind,
                    .strength = site.strength,
                    .scope = site.scope,
                    .async = site.async,
                    .bytes = site.bytes,
                    .addresses = lanes,
                    .repeats = site.repeats,
                    .repeat_step = site.repeat_step,
                    .values = site.value_bytes ? warp.lanes<std::byte>(site.value) : nullptr,
                    .value_bytes = site.value_bytes,
                    .same_value = site.same_value};
  read_addresses(warp, op, &event, lanes);
  warp.block->grid->sink->on(event);
}

namespace {

// Do the bytes of all lanes, active or not, begin at most `most` bytes after `begin`?
bool all_inside(const AccessEvent& event, uint64_t begin, uint64_t most) {
  const auto inside = [&](uint32_t lane) { return event.address(lane) - begin <= most; };
  constexpr uint32_t kLast = kWarpSize - 1;
  switch (event.shape) {
    case AddressShape::Uniform:
      return inside(0);
    case AddressShape::Run:
      return inside(0) && inside(kLast);
    case AddressShape::Rows:
      return inside(0) && inside(event.row_lanes - 1) && inside(kWarpSize - event.row_lanes) &&
             inside(kLast);
    case AddressShape::Lanes:
      break;
  }
  uint32_t beyond = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) beyond |= event.addresses[i] - begin > most ? 1 : 0;
  return beyond == 0;
}

}  // namespace

void check_variable(Warp& warp, const Op* op, const VariableSite& site) {
  AccessEvent event;
  uint64_t lanes[kWarpSize];
  read_addresses(warp, op, &event, lanes);
  const Grid& grid = *warp.block->grid;
  const bool dynamic = site.variable.bytes == 0;
  const uint64_t from =
      dynamic ? grid.shared_bytes - grid.dynamic_shared_bytes : site.variable.offset;
  const uint64_t size = dynamic ? warp.block->shared_bytes - from : site.variable.bytes;
  const bool generic = static_cast<ptx::Space>(op->z) == ptx::Space::Generic;
  const uint64_t begin = from | (generic ? kSharedWindow : 0);
  if (size >= site.bytes && all_inside(event, begin, size - site.bytes)) return;
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const uint64_t address = event.address(lane);
    if (size >= site.bytes && address - begin <= size - site.bytes) continue;
    const uint64_t in_block = generic ? address ^ kSharedWindow : address;
    // An access outside the block's memory is reported when it happens.
    if (in_block > warp.block->shared_bytes || warp.block->shared_bytes - in_block < site.bytes)
      continue;
    left_variable(warp, op, lane, site, in_block, size);
  }
}

void lane_addresses(Warp& warp, const Op* op, uint64_t (&addresses)[kWarpSize]) {
  AccessEvent event;
  read_addresses(warp, op, &event, addresses);
  if (event.shape == AddressShape::Lanes) return;
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    addresses[lane] = event.address(lane);
  }
}

void watch_lane(const Warp& warp, const Op* op, uint32_t lane, ptx::Space space, uint64_t address,
                uint32_t bytes, Access access, bool async, Order order) {
  Sink* sink = sink_for(warp, kAccessEvents);
  if (!sink) return;
  if (access == Access::Atomic && order.strength == Strength::Weak)
    order = {Strength::Relaxed, Scope::Gpu};
  AccessEvent event;
  event.by = actor(warp, op);
  event.by.mask = 1u << lane;
  event.space = space;
  event.kind = access == Access::Read    ? AccessKind::Load
               : access == Access::Write ? AccessKind::Store
                                         : AccessKind::Atomic;
  event.strength = order.strength;
  event.scope = order.scope;
  event.async = async;
  event.bytes = bytes;
  event.shape = AddressShape::Uniform;
  event.base = address;
  sink->on(event);
}

void deliver_sync(const Warp& warp, const Op* op, uint32_t lanes, SyncEvent event) {
  event.by = actor(warp, op);
  event.by.mask = lanes;
  warp.block->sync_sink->on(event);
}

void deliver_met(const Warp& warp, const Op* op, SyncKind kind, uint32_t lanes, uint32_t members,
                 const int8_t* sources) {
  SyncEvent event;
  event.kind = kind;
  event.expected = members;
  event.completed = true;
  event.sources = sources;
  deliver_sync(warp, op, lanes, event);
}

void deliver_groups(const Warp& warp, const Op* op, SyncKind kind, const uint32_t* members,
                    const int8_t* sources) {
  for (uint32_t rest = warp.mask; rest;) {
    const uint32_t named = members[std::countr_zero(rest)];
    uint32_t group = 0;
    for (uint32_t i = 0; i < kWarpSize; ++i)
      group |= (rest >> i & 1) && members[i] == named ? 1u << i : 0;
    deliver_met(warp, op, kind, group, named, sources);
    rest &= ~group;
  }
}

void deliver_absent(const Warp& warp, const Op* op, uint32_t members) {
  for (const Split& split : warp.splits) {
    const uint32_t lanes = split.mask & members & ~warp.mask;
    if (!lanes || split.frame != warp.frame || split.wait != Wait::None) continue;
    SyncEvent event;
    event.kind = SyncKind::Exchange;
    event.id = op->site;
    event.expected = members;
    deliver_sync(warp, split.at, lanes, event);
  }
}

void deliver_fault(const Warp& warp, const Op* op, int code, uint32_t lane,
                   const std::string& text) {
  FaultEvent event;
  event.by = actor(warp, op);
  event.by.mask = 1u << lane;
  event.code = code;
  event.text = &text;
  warp.block->grid->sink->recovers(event);
}

bool bytes_came(Warp& warp, const Op* op, uint32_t lane, ptx::Space space, uint64_t address,
                int64_t bytes) {
  std::byte* object = locate_at(warp, op, lane, space, address, 8, 8, Access::Atomic);
  if (!object) return false;
  const Phase before = phase_at(object);
  complete_bytes(object, bytes);
  Sink* sink = sink_for(warp, kMbarrierEvents);
  if (!sink) return true;
  MbarrierEvent event;
  event.by = actor(warp, op);
  event.by.mask = 1u << lane;
  event.step = MbarrierStep::Complete;
  event.address = space == ptx::Space::Shared ? kSharedWindow | address : address;
  event.bytes = bytes;
  event.async = true;
  event.parity = static_cast<uint32_t>(before.parity);
  event.completed = phase_at(object).parity != before.parity;
  event.order = {Strength::Relaxed, Scope::Cluster};
  sink->on(event);
  return true;
}

}  // namespace kiln::engine
