// SPDX-License-Identifier: Apache-2.0
// Who takes part in an exchange? Lanes name the members that they wait for, and a warp may hold
// several groups of them at one instruction (cooperative groups of a labeled partition).
#pragma once

#include <bit>

#include "engine/machine/warp.h"
#include "engine/machine/watching.h"

namespace kiln::engine {

inline uint32_t first_member(uint32_t mask) {
  return static_cast<uint32_t>(std::countr_zero(mask));
}

// The members that active lanes name: all of them, and those that each of them names.
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

// Runs f(group, members) for each set of active lanes that name the same: `group` get the result,
// `members` are those and the lanes that have come to the same exchange at another place, whose
// values are among `values` then (Warp::all_here). False: some members are not here yet.
template <class F>
bool for_each_group(Warp& warp, const Op* op, void* values, uint32_t bytes, F&& f) {
  const uint32_t* named = warp.lanes<uint32_t>(op->b);
  const auto [any, all] = named_by(warp, named);
  uint32_t away;
  if (!warp.all_here(op, any, values, bytes, &away)) return false;
  if (warp.block->sync_sink) [[unlikely]]
    deliver_groups(warp, op, SyncKind::Exchange, named);
  if (any == all) {
    // A mask that names none of the lanes that run this is undefined in PTX: their registers stay
    // as they are.
    if (const uint32_t group = any & warp.mask) f(group, group | away);
    return true;
  }
  for (uint32_t rest = warp.mask; rest;) {
    const uint32_t members = named[first_member(rest)];
    uint32_t group = 0;
    for (uint32_t i = 0; i < kWarpSize; ++i)
      group |= (rest >> i & 1) && named[i] == members ? 1u << i : 0;
    f(group, group | (away & members));
    rest &= ~group;
  }
  return true;
}

}  // namespace kiln::engine
