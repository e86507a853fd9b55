// SPDX-License-Identifier: Apache-2.0
// Who takes part in an exchange? Lanes name the members that they wait for, and a warp may have
// several groups of them at one instruction (cooperative groups of a labeled partition).
#pragma once

#include <bit>

#include "engine/machine/warp.h"
#include "engine/machine/watching.h"

namespace kiln::engine {

inline uint32_t first_member(uint32_t mask) {
  return static_cast<uint32_t>(std::countr_zero(mask));
}

// The members that active lanes name: those that any of them names, and those that all of them
// name.
struct Named {
  uint32_t any = 0, all = kFullMask;
};
inline Named named_by(const Warp& warp, const uint32_t* named) {
  Named out;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    out.any |= (warp.mask >> i & 1) ? named[i] : 0;
    out.all &= (warp.mask >> i & 1) ? named[i] : kFullMask;
  }
  return out;
}

// Calls f for each set of lanes that name the same members.
template <class F>
void for_each_set(uint32_t lanes, const uint32_t* named, F&& f) {
  for (uint32_t rest = lanes; rest;) {
    const uint32_t members = named[first_member(rest)];
    uint32_t group = 0;
    for (uint32_t i = 0; i < kWarpSize; ++i)
      group |= (rest >> i & 1) && named[i] == members ? 1u << i : 0;
    f(group, members);
    rest &= ~group;
  }
}

// If lanes name different members and some of those have not arrived: the lanes whose own members
// are all here and name the same set. They do not wait for other groups, which may in turn wait for
// them.
inline uint32_t ready_lanes(const Warp& warp, uint32_t any, const uint32_t* named) {
  if (warp.pass_sync || (any & warp.alive & ~warp.mask) == 0) return 0;
  uint32_t ready = 0;
  for_each_set(warp.mask, named, [&](uint32_t group, uint32_t members) {
    ready |= (members & warp.alive & ~group) == 0 ? group : 0;
  });
  return ready;
}

// Runs f() for only these lanes; the others run the Op again. Returns what its handler returns.
template <class F>
const Op* run_ready(Warp& warp, const Op* op, uint32_t ready, F&& f) {
  const uint32_t all = warp.mask;
  warp.mask = ready;
  f();
  warp.mask = all;
  return warp.diverge(op + 1, ready, op);
}

// Runs f(group, members) for each set of active lanes that name the same members. `group` gets the
// result. `members` also has the lanes that have reached the same exchange at another place;
// `values` then has their values too (Warp::all_here). Returns what the handler returns.
template <class F>
const Op* run_groups(Warp& warp, const Op* op, void* values, uint32_t bytes, F&& f) {
  const uint32_t* named = warp.lanes<uint32_t>(op->b);
  const auto [any, all] = named_by(warp, named);
  if (const uint32_t ready = any != all ? ready_lanes(warp, any, named) : 0) [[unlikely]]
    return run_ready(warp, op, ready, [&] { run_groups(warp, op, values, bytes, f); });
  uint32_t away;
  if (!warp.all_here(op, any, values, bytes, &away)) return nullptr;
  if (warp.block->sync_sink) [[unlikely]]
    deliver_groups(warp, op, SyncKind::Exchange, named);
  if (any == all) {
    // In PTX, a mask with none of the lanes that run this is undefined: their registers stay
    // unchanged.
    if (const uint32_t group = any & warp.mask) f(group, group | away);
    return op + 1;
  }
  for_each_set(warp.mask, named,
               [&](uint32_t group, uint32_t members) { f(group, group | (away & members)); });
  return op + 1;
}

}  // namespace kiln::engine
