// SPDX-License-Identifier: Apache-2.0
// How do handlers deliver events that only they know? These functions do nothing in runs that are
// not watched.
#pragma once

#include "engine/machine/access.h"
#include "engine/machine/events.h"
#include "engine/machine/warp.h"

namespace kiln::engine {

inline Actor actor(const Warp& warp, const Op* op) {
  return {warp.frame->program, op->site, warp.block->number, warp.index, warp.mask};
}

// The sink, if it wants such events; otherwise null.
inline Sink* sink_for(const Warp& warp, EventBit bit) {
  Sink* sink = warp.block->grid->sink;
  return sink && (warp.block->grid->wanted & bit) ? sink : nullptr;
}

// What is known about an access before it happens.
struct AccessSite {
  AccessKind kind;
  Strength strength;
  Scope scope;
  bool async;
  uint32_t bytes;  // per lane
  uint32_t repeats = 1;
  int64_t repeat_step = 0;
  uint32_t value = 0;       // for a store: offset in the frame
  uint8_t value_bytes = 0;  // 0: unknown
  bool same_value = false;
};
// The lanes access the address in a, imm, x and z of the Op (access.h).
void deliver_access(Warp& warp, const Op* op, const AccessSite& site);
inline void watch_access(Warp& warp, const Op* op, const AccessSite& site) {
  if (sink_for(warp, kAccessEvents)) deliver_access(warp, op, site);
}

// An access to shared memory whose address was computed from that of a variable.
struct VariableSite {
  SharedVariable variable;
  AccessKind kind;
  uint32_t bytes;  // per lane
};
// Reports active lanes whose bytes are inside the block's memory but outside the variable.
void check_variable(Warp& warp, const Op* op, const VariableSite& site);

// The address of each active lane, as for deliver_access(). Those of other lanes may not be set.
void lane_addresses(Warp& warp, const Op* op, uint64_t (&addresses)[kWarpSize]);

// One lane of an instruction whose handler computes its addresses itself.
void watch_lane(const Warp& warp, const Op* op, uint32_t lane, ptx::Space space, uint64_t address,
                uint32_t bytes, Access access, bool async, Order order = {});

// Like locate_at(), and delivers the access. An atomic without an order is relaxed.
inline std::byte* locate_watched(Warp& warp, const Op* op, uint32_t lane, ptx::Space space,
                                 uint64_t address, uint32_t bytes, uint32_t align, Access access,
                                 bool async = false, Order order = {}) {
  watch_lane(warp, op, lane, space, address, bytes, access, async, order);
  return locate_at(warp, op, lane, space, address, bytes, align, access);
}

inline void watch_fence(const Warp& warp, const Op* op, Scope scope, Strength order, Proxy proxy) {
  if (Sink* sink = sink_for(warp, kFenceEvents))
    sink->on(FenceEvent{actor(warp, op), scope, order, proxy});
}

inline void watch_async(const Warp& warp, const Op* op, AsyncStep step, int64_t pending = 0,
                        AsyncKind kind = AsyncKind::Copy, bool reads_only = false) {
  if (Sink* sink = sink_for(warp, kAsyncEvents))
    sink->on(AsyncEvent{actor(warp, op), step, pending, kind, reads_only});
}

inline void watch_call(const Warp& warp, const Op* op, const Program& callee, bool returns) {
  if (Sink* sink = sink_for(warp, kControlEvents))
    sink->on(CallEvent{actor(warp, op), &callee, returns});
}

// Only if Block::sync_sink is set. The event has everything except `by`; `lanes` are those of the
// warp.
[[gnu::cold]] void deliver_sync(const Warp& warp, const Op* op, uint32_t lanes, SyncEvent event);
// For lanes of a warp that have met.
[[gnu::cold]] void deliver_met(const Warp& warp, const Op* op, SyncKind kind, uint32_t lanes,
                               uint32_t members, const int8_t* sources = nullptr);
// The same for each group of active lanes that name the same members.
[[gnu::cold]] void deliver_groups(const Warp& warp, const Op* op, SyncKind kind,
                                  const uint32_t* members, const int8_t* sources = nullptr);
// For members that are elsewhere in the same function when lanes begin to wait for them at `op`.
[[gnu::cold]] void deliver_absent(const Warp& warp, const Op* op, uint32_t members);

// The kernel continues, whatever the sink returns.
[[gnu::cold]] void left_variable(const Warp& warp, const Op* op, uint32_t lane,
                                 const VariableSite& site, uint64_t address, uint64_t size);

// For a fault after which the kernel cannot continue.
[[gnu::cold]] void deliver_fault(const Warp& warp, const Op* op, int code, uint32_t lane,
                                 const std::string& text);

// Called when a copy of `lane` has delivered bytes to the mbarrier at that address. Returns false
// if a fault was reported.
bool bytes_came(Warp& warp, const Op* op, uint32_t lane, ptx::Space space, uint64_t address,
                int64_t bytes);

}  // namespace kiln::engine
