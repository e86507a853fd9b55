// SPDX-License-Identifier: Apache-2.0
// How do event Ops read what they deliver?
#include "engine/decode/watch_ops.h"

#include "engine/machine/watching.h"

namespace kiln::engine {
const Op* run_access_event(Warp& warp, const Op* op) {
  deliver_access(warp, op, *static_cast<const AccessSite*>(op->data));
  return op + 1;
}

const Op* run_instruction_event(Warp& warp, const Op* op) {
  InstructionEvent event{actor(warp, op), warp.mask};
  if (op->y) {
    const uint32_t holds = warp.predicate(op->a);
    event.by.mask &= op->x ? ~holds : holds;
  }
  warp.block->grid->sink->on(event);
  return op + 1;
}

const Op* run_value_event(Warp& warp, const Op* op) {
  uint64_t same[kWarpSize];
  ValueEvent event{actor(warp, op), op->x, warp.lanes<std::byte>(op->a)};
  if (op->y) {
    for (uint32_t i = 0; i < kWarpSize; ++i) same[i] = *warp.lanes<uint64_t>(op->a);
    event.bytes = 8;
    event.lanes = same;
  }
  warp.block->grid->sink->on(event);
  return op + 1;
}

const Op* run_guard_chain(Warp& warp, const Op* op) {
  const uint32_t p = warp.predicate(op->a);
  const uint32_t active = (op->x ? ~p : p) & warp.mask;
  const Op* end = op + 1 + op->imm;
  if (active == 0) return end;
  if (active == warp.mask) return op + 1;
  const uint32_t before = warp.mask;
  warp.mask = active;
  for (const Op* each = op + 1; each != end; ++each) {
    if (!warp.step_masked(each)) return nullptr;
  }
  warp.mask = before;
  return end;
}

Strength strength_of(const ptx::Instruction& ins) {
  if (ins.has("acq_rel")) return Strength::AcquireRelease;
  if (ins.has("acquire")) return Strength::Acquire;
  if (ins.has("release")) return Strength::Release;
  if (ins.has("volatile")) return Strength::Volatile;
  return ins.has("relaxed") || ins.has("mmio") ? Strength::Relaxed : Strength::Weak;
}

Scope scope_of(const ptx::Instruction& ins) {
  if (ins.has("cta")) return Scope::Block;
  if (ins.has("cluster")) return Scope::Cluster;
  if (ins.has("gpu") || ins.has("gl")) return Scope::Gpu;
  return ins.has("sys") || ins.has("volatile") || ins.has("mmio") ? Scope::System : Scope::None;
}

}  // namespace kiln::engine
