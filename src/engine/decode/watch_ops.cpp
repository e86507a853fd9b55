// SPDX-License-Identifier: Apache-2.0
// How do event Ops find the values that they deliver?
#include "engine/decode/watch_ops.h"

#include <bit>

#include "engine/decode/lowering.h"
#include "engine/machine/watching.h"

namespace kiln::engine {

const Op* run_access_event(Warp& warp, const Op* op) {
  deliver_access(warp, op, *static_cast<const AccessSite*>(op->data));
  return op + 1;
}

bool is_load_event(const Op& op) {
  if (op.run == &run_variable_event)
    return static_cast<const VariableSite*>(op.data)->kind == AccessKind::Load;
  if (op.run != &run_access_event) return false;
  const auto& site = *static_cast<const AccessSite*>(op.data);
  return site.kind == AccessKind::Load && site.strength == Strength::Weak && !site.async;
}

const Op* run_variable_event(Warp& warp, const Op* op) {
  check_variable(warp, op, *static_cast<const VariableSite*>(op->data));
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

const Op* run_stretch_event(Warp& warp, const Op* op) {
  StretchEvent event{actor(warp, op), warp.mask, static_cast<uint32_t>(op->imm)};
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
  event.element = static_cast<uint32_t>(op->imm);
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

namespace {

// a: the predicate of the guard, if y is set; x: it is negated.
const Op* run_branch_event(Warp& warp, const Op* op) {
  BranchEvent event{actor(warp, op), warp.mask};
  if (op->y) {
    const uint32_t holds = warp.predicate(op->a);
    event.taken &= op->x ? ~holds : holds;
    event.paths = event.taken == 0 || event.taken == warp.mask ? 1 : 2;
  }
  warp.block->grid->sink->on(event);
  return op + 1;
}

// a: the index of each lane's target.
const Op* run_branch_indexed_event(Warp& warp, const Op* op) {
  const uint32_t* index = warp.lanes<uint32_t>(op->a);
  BranchEvent event{actor(warp, op), warp.mask, 0};
  for (uint32_t rest = warp.mask; rest; ++event.paths) {
    const uint32_t chosen = index[std::countr_zero(rest)];
    for (uint32_t i = 0; i < kWarpSize; ++i) rest &= index[i] == chosen ? ~(1u << i) : ~0u;
  }
  warp.block->grid->sink->on(event);
  return op + 1;
}

// A variant with sync events may run in a launch whose sink does not want them (launch.cpp).
const Op* run_exit_event(Warp& warp, const Op* op) {
  if (Sink* sink = warp.block->sync_sink) sink->on(ExitEvent{actor(warp, op)});
  return op + 1;
}

// x: the AsyncStep; y: the AsyncKind; z: reads_only; imm: groups that may still run.
const Op* run_group_event(Warp& warp, const Op* op) {
  watch_async(warp, op, static_cast<AsyncStep>(op->x), op->imm, static_cast<AsyncKind>(op->y),
              op->z != 0);
  return op + 1;
}

}  // namespace

void announce_branch(Lowering& l, bool guarded, uint32_t predicate, bool negated) {
  if (!(l.variant().events & kControlEvents)) return;
  Op& event = l.emit(&run_branch_event);
  event.a = predicate;
  event.x = negated;
  event.y = guarded;
}

void announce_branch_indexed(Lowering& l, uint32_t index) {
  if (l.variant().events & kControlEvents) l.emit(&run_branch_indexed_event).a = index;
}

void announce_exit(Lowering& l) {
  if (l.variant().events & kSyncEvents) l.emit(&run_exit_event);
}

void announce_group(Lowering& l, AsyncKind kind) {
  if (!(l.variant().events & kSyncEvents)) return;
  const bool commits = l.has("commit_group"), waits = l.has("wait_group");
  Op& event = l.emit(&run_group_event);
  event.x = static_cast<uint8_t>(commits ? AsyncStep::Commit
                                 : waits ? AsyncStep::Wait
                                         : AsyncStep::Fence);
  event.y = static_cast<uint8_t>(kind);
  event.z = l.has("read");
  event.imm = waits ? static_cast<int64_t>(l.operand(0).bits) : 0;
}

Strength strength_of(const ptx::Instruction& ins) {
  if (ins.has("sc")) return Strength::Sequential;
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

Order order_of(const ptx::Instruction& ins, bool atomic) {
  Order order{strength_of(ins), scope_of(ins)};
  // PTX ISA 9.7.13: an atomic without these is relaxed, with GPU scope.
  if (atomic && order.strength == Strength::Weak) order.strength = Strength::Relaxed;
  if (order.strength != Strength::Weak && order.scope == Scope::None) order.scope = Scope::Gpu;
  return order;
}

}  // namespace kiln::engine
