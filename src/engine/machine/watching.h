// SPDX-License-Identifier: Apache-2.0
// How do handlers deliver what only they know? Each of these does nothing where nobody watches.
#pragma once

#include "engine/machine/access.h"
#include "engine/machine/events.h"
#include "engine/machine/warp.h"

namespace kiln::engine {

inline Actor actor(const Warp& warp, const Op* op) {
  return {warp.frame->program, op->site, warp.block->number, warp.index, warp.mask};
}

// The sink, where it wants such events.
inline Sink* sink_for(const Warp& warp, EventBit bit) {
  Sink* sink = warp.block->grid->sink;
  return sink && (warp.block->grid->wanted & bit) ? sink : nullptr;
}

// What is known of an access before it happens.
struct AccessSite {
  AccessKind kind;
  Strength strength;
  Scope scope;
  bool async;
  uint32_t bytes;  // of each lane
};
// The lanes of the warp at the address that the Op has in a, imm, x and z (access.h).
void deliver_access(Warp& warp, const Op* op, const AccessSite& site);
inline void watch_access(Warp& warp, const Op* op, const AccessSite& site) {
  if (sink_for(warp, kAccessEvents)) deliver_access(warp, op, site);
}

// One lane of an instruction whose handler finds its addresses itself.
void watch_lane(const Warp& warp, const Op* op, uint32_t lane, ptx::Space space, uint64_t address,
                uint32_t bytes, Access access, bool async);

// As locate_at(), and delivers the access.
inline std::byte* locate_watched(Warp& warp, const Op* op, uint32_t lane, ptx::Space space,
                                 uint64_t address, uint32_t bytes, uint32_t align, Access access,
                                 bool async = false) {
  watch_lane(warp, op, lane, space, address, bytes, access, async);
  return locate_at(warp, op, lane, space, address, bytes, align, access);
}

inline void watch_fence(const Warp& warp, const Op* op, Scope scope, Strength order) {
  if (Sink* sink = sink_for(warp, kFenceEvents))
    sink->on(FenceEvent{actor(warp, op), scope, order});
}

inline void watch_async(const Warp& warp, const Op* op, AsyncStep step, int64_t pending = 0) {
  if (Sink* sink = sink_for(warp, kAsyncEvents))
    sink->on(AsyncEvent{actor(warp, op), step, pending});
}

// The event is put together only where somebody wants it: barriers are frequent.
[[gnu::cold]] void deliver_sync(const Warp& warp, const Op* op, SyncKind kind, uint32_t id,
                                uint32_t expected, bool waits, bool completed);
inline void watch_sync(const Warp& warp, const Op* op, SyncKind kind, uint32_t id,
                       uint32_t expected, bool waits, bool completed) {
  if (warp.block->sync_sink) [[unlikely]]
    deliver_sync(warp, op, kind, id, expected, waits, completed);
}

}  // namespace kiln::engine
