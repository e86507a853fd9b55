// SPDX-License-Identifier: Apache-2.0
// How do branches, returns and barriers run? (PTX ISA 9.7.12, 9.7.13)
#include "engine/decode/control.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "engine/decode/fuse.h"
#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/decode/watch_ops.h"
#include "engine/instructions/lowerings.h"
#include "engine/instructions/warp/groups.h"
#include "engine/machine/fault.h"
#include "engine/machine/spins.h"
#include "engine/machine/watching.h"

namespace kiln::engine {
namespace {

uint32_t first_lane(uint32_t mask) { return static_cast<uint32_t>(std::countr_zero(mask)); }

const Op* go(Warp& warp, const Op* from, const Op* to) {
  return to > from ? to : warp.jump_back(from, to);
}

const Op* run_branch(Warp& warp, const Op* op) { return go(warp, op, op->target); }

template <bool kNegated>
const Op* run_branch_if(Warp& warp, const Op* op) {
  uint32_t p = warp.predicate(op->a);
  uint32_t taken = (kNegated ? ~p : p) & warp.mask;
  if (taken == 0) return op + 1;
  if (taken == warp.mask) return go(warp, op, op->target);
  if (op->target <= op) {
    warp.steps += static_cast<uint64_t>(op - op->target) + 1;
    warp.turn -= op->y ? kSpinCost : 1;
  }
  return warp.diverge(op->target, taken, op + 1);
}

}  // namespace

bool is_branch_if(const Op& op, bool* negated) {
  *negated = op.run == &run_branch_if<true>;
  return *negated || op.run == &run_branch_if<false>;
}

const Op* run_guard_next(Warp& warp, const Op* op) {
  uint32_t p = warp.predicate(op->a);
  uint32_t active = (op->x ? ~p : p) & warp.mask;
  if (active == 0) return op + 2;
  if (active == warp.mask) return op + 1;
  uint32_t before = warp.mask;
  warp.mask = active;
  const Op* next = warp.step_masked(op + 1);
  if (!next) return nullptr;
  warp.mask = before;
  return op + 2;
}

const Op* run_branch_around(Warp& warp, const Op* op) {
  uint32_t p = warp.predicate(op->a);
  uint32_t skip = (op->x ? p : ~p) & warp.mask;
  if (skip == 0) return op + 1;
  if (skip == warp.mask) return op->target;
  return warp.diverge(op->target, skip, op + 1);
}

const Op* run_exit(Warp& warp, const Op*) { return warp.exit_lanes(); }

namespace {

// True if it changes no memory, except by a compare-and-swap or an exchange, which loops around a
// lock retry.
bool only_looks(const ptx::Form& form, const ptx::Instruction& ins) {
  if (form.has(ptx::kPolls))
    return form.operands.find('m') == form.operands.npos || ins.has("cas") || ins.has("exch");
  return !form.operands.starts_with('m') && !form.has(ptx::kParks) && !form.has(ptx::kWaits);
}

bool names(const ptx::Operand& operand, uint32_t reg) {
  const bool has_register = operand.kind == ptx::OperandKind::Register ||
                            operand.kind == ptx::OperandKind::Predicate || operand.base_is_register;
  return (has_register && operand.reg == reg) ||
         std::ranges::any_of(operand.elements,
                             [&](const ptx::Operand& element) { return names(element, reg); });
}

// True for a branch, a return or a call.
bool leaves(const ptx::Form& form) { return form.has(ptx::kGuarded) || form.has(ptx::kParks); }

// Does it pass on a value of these registers in a way that is not tracked: through memory, or
// through the carry?
template <class IsKnown>
bool hides(const ptx::Form& form, const ptx::Instruction& ins, const IsKnown& is_known,
           bool is_guard_known) {
  if (ins.has("cc")) return std::ranges::any_of(ins.operands, is_known);
  const bool stores = form.operands.starts_with('m');
  if (!stores && !form.has(ptx::kPolls)) return false;
  if (is_guard_known) return true;
  const ptrdiff_t first = stores ? 0 : 1;  // excludes the result of an atomic
  return std::any_of(ins.operands.begin() + first, ins.operands.end(), [&](const auto& each) {
    return each.kind != ptx::OperandKind::Address && is_known(each);
  });
}

// Does the value that the instruction gets from memory decide when lanes leave the loop? A
// histogram, or a list that grows by an atomic, waits for nobody.
bool decides(Lowering& l, uint32_t index, uint32_t begin, uint32_t end) {
  const ptx::Instruction& ins = l.body().instructions[index];
  if (!l.form(index).has(ptx::kPolls)) return true;
  std::vector<uint32_t> known;  // registers computed from it
  const auto add_written = [&](uint32_t i, const ptx::Instruction& of) {
    bool more = false;
    ptx::each_written(l.form(i), of, [&](const ptx::Operand& result) {
      if (result.kind == ptx::OperandKind::Sink) return;
      for (const ptx::Operand& element : result.elements) {
        if (std::ranges::count(known, element.reg) == 0) known.push_back(element.reg), more = true;
      }
      if (!result.elements.empty() || std::ranges::count(known, result.reg)) return;
      known.push_back(result.reg), more = true;
    });
    return more;
  };
  add_written(index, ins);
  const auto is_known = [&](const ptx::Operand& each) {
    return std::ranges::any_of(known, [&](uint32_t reg) { return names(each, reg); });
  };
  const auto is_guarded = [&](const ptx::Instruction& other) {
    return std::ranges::count(known, other.guard) != 0;
  };
  const auto reads = [&](const ptx::Instruction& other) {
    return is_guarded(other) || std::ranges::any_of(other.operands, is_known);
  };
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = begin; i < end; ++i) {
      const ptx::Instruction& other = l.body().instructions[i];
      if (&other == &ins || !reads(other)) continue;
      if (leaves(l.form(i)) || hides(l.form(i), other, is_known, is_guarded(other))) return true;
      more |= add_written(i, other);
    }
  }
  return reads(l.body().instructions[end]);  // the branch that closes the loop
}

// Does the loop that this branch closes wait for another thread's write? It does if it is short and
// reads memory in a way that asks for the newest value. Returns Op::y.
uint8_t closes_a_spin(Lowering& l) {
  constexpr uint32_t kLongest = 64;
  const ptx::Instruction& ins = l.ins();
  auto label = l.body().labels.find(ins.operands[0].name);
  const auto index = static_cast<uint32_t>(&ins - l.body().instructions.data());
  if (label == l.body().labels.end() || label->second > index || index - label->second > kLongest)
    return 0;
  bool polls = false, only = true;
  for (uint32_t i = label->second; i < index; ++i) {
    const ptx::Instruction& inside = l.body().instructions[i];
    polls |= ptx::polls(l.form(i), inside) && decides(l, i, label->second, index);
    only &= only_looks(l.form(i), inside);
  }
  return polls ? kSpins | (only ? kOnlyWaits : 0) : 0;
}

}  // namespace

bool branch(Lowering& l) {
  const ptx::Instruction& ins = l.ins();
  const uint8_t spins = closes_a_spin(l);
  if (ins.guard == ptx::kNoRegister) {
    announce_branch(l, false, 0, false);
    Op& op = l.emit(&run_branch);
    op.y = spins;
    l.branch_to(op, ins.operands[0].name);
    return true;
  }
  ptx::Operand guard;
  guard.kind = ptx::OperandKind::Predicate;
  guard.reg = ins.guard;
  uint32_t p;
  if (!l.predicate(guard, &p)) return false;
  announce_branch(l, true, p, ins.guard_negated);
  Op& op = l.emit(ins.guard_negated ? &run_branch_if<true> : &run_branch_if<false>);
  op.a = p;
  op.y = spins;
  l.branch_to(op, ins.operands[0].name);
  return true;
}

namespace {

using Targets = std::vector<const Op*>;

const Op* run_branch_indexed(Warp& warp, const Op* op) {
  const auto& targets = *static_cast<const Targets*>(op->data);
  const uint32_t* index = warp.lanes<uint32_t>(op->a);
  uint32_t rest = warp.mask;
  uint32_t first = first_lane(rest);
  uint32_t chosen = index[first];
  if (chosen >= targets.size()) {
    return warp.fault(op, kLaunchFailure, first,
                      fmt::format("Invalid index {} of a branch with {} targets\n{}", chosen,
                                  targets.size(), where(warp, *op, first)));
  }
  uint32_t same = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i)
    same |= (rest >> i & 1) && index[i] == chosen ? 1u << i : 0;
  if (same == rest) return go(warp, op, targets[chosen]);
  return warp.diverge(targets[chosen], same, op);  // the others run this Op again
}

}  // namespace

bool branch_indexed(Lowering& l) {
  auto found = l.body().branch_targets.find(l.operand(1).name);
  if (found == l.body().branch_targets.end())
    return l.refuse("its list of targets is not declared");
  uint32_t index;
  if (!l.lanes(l.operand(0), ptx::Type::u32, &index)) return false;
  for (std::string_view label : found->second) {
    if (!l.body().labels.count(label)) return l.refuse("a target is not a label of this function");
  }
  announce_branch_indexed(l, index);
  Op& op = l.emit(&run_branch_indexed);
  op.a = index;
  Targets* targets = l.own(Targets{});
  op.data = targets;
  std::vector<std::string_view> labels = found->second;
  l.fix_later(l.op_count() - 1,
              [targets, labels](Op&, const std::function<const Op*(std::string_view)>& find) {
                for (std::string_view label : labels) targets->push_back(find(label));
              });
  return true;
}

bool leave_kernel(Lowering& l) {
  announce_exit(l);
  l.emit(&run_exit);
  return true;
}

bool leave_function(Lowering& l) {
  if (l.is_kernel()) return leave_kernel(l);
  l.emit(&run_return);
  return true;
}

namespace {

const Op* run_trap(Warp& warp, const Op* op) {
  uint32_t lane = first_lane(warp.mask);
  return warp.fault(op, kLaunchFailure, lane,
                    fmt::format("Trap instruction executed\n{}", where(warp, *op, lane)));
}

// In a loop around a wait, sleeping is not progress.
const Op* run_yield(Warp& warp, const Op* op) { return sleep(warp, op + 1); }

// Bits of Op::y of a barrier.
constexpr uint8_t kVotes = 1;    // a reduction; the predicate is op->c
constexpr uint8_t kWatched = 2;  // the sink may want to know who arrives
constexpr uint8_t kAligned = 4;

[[gnu::cold]] void deliver_arrival(const Warp& warp, const Op* op, uint32_t id, uint32_t wanted) {
  if (!warp.block->sync_sink) return;
  SyncEvent event;
  event.id = id;
  event.expected = wanted;
  event.waits = op->x == 0;
  event.aligned = op->y & kAligned;
  deliver_sync(warp, op, warp.mask, event);
}

// op->a: number of the barrier; op->b: number of threads (0: all); op->x: arrive only; op->z: both
// numbers are constants of the program.
[[gnu::noinline]] const Op* run_any_barrier(Warp& warp, const Op* op) {
  if (op->z && (op->x | op->y) == 0 && warp.mask == kFullMask) [[likely]] {
    const uint32_t id = *warp.lanes<uint32_t>(op->a), wanted = *warp.lanes<uint32_t>(op->b);
    if (id < kBarrierCount) {
      warp.moved = true;
      warp.splits.push_back(
          {op + 1, kFullMask, warp.frame, Wait::Barrier, static_cast<uint8_t>(id), 0, 0, false});
      warp.block->arrive(static_cast<uint8_t>(id), kWarpSize, wanted);
      return nullptr;
    }
  }
  uint32_t lane = first_lane(warp.mask);
  const uint32_t *ids = warp.lanes<uint32_t>(op->a), *counts = warp.lanes<uint32_t>(op->b);
  const uint32_t id = ids[lane], wanted = counts[lane];
  if (id >= kBarrierCount) {
    return warp.fault(op, kLaunchFailure, lane,
                      fmt::format("Barrier {} does not exist: there are {}\n{}", id, kBarrierCount,
                                  where(warp, *op, lane)));
  }
  uint32_t others = 0;  // lanes that name another barrier: they run this Op again
  if (!op->z) {
    for (uint32_t i = 0; i < kWarpSize; ++i)
      others |= ids[i] != id || counts[i] != wanted ? 1u << i : 0;
    others &= warp.mask;
  }
  if (others) {
    ++warp.frame->users;
    warp.splits.push_back({op, others, warp.frame, Wait::None, 0, 0, warp.current_penalty, false});
    warp.mask &= ~others;
  }
  uint32_t threads = static_cast<uint32_t>(std::popcount(warp.mask));
  // A thread count is a count of whole warps: lanes that have ended count with those that arrive
  // last.
  if (wanted && warp.mask == warp.alive) threads = kWarpSize;
  Block& block = *warp.block;
  if (op->y) [[unlikely]] {
    if (op->y & kWatched) deliver_arrival(warp, op, id, wanted);
    if (op->y & kVotes) {
      block.barriers[id].votes_true +=
          static_cast<uint32_t>(std::popcount(warp.predicate(op->c) & warp.mask));
      block.barriers[id].voters += static_cast<uint32_t>(std::popcount(warp.mask));
    }
  }
  if (op->x) {
    block.arrive(static_cast<uint8_t>(id), threads, wanted);
    return others ? warp.park(op + 1, Wait::None, 0, 0) : op + 1;
  }
  warp.park(op + 1, Wait::Barrier, static_cast<uint8_t>(id), 0);
  block.arrive(static_cast<uint8_t>(id), threads, wanted);
  return nullptr;
}

}  // namespace

const Op* run_barrier(Warp& warp, const Op* op) {
  // The usual case: bar.sync 0 of all lanes.
  if (op->z && (op->x | op->y) == 0 && warp.mask == kFullMask && warp.block->counts_warps &&
      (*warp.lanes<uint32_t>(op->a) | *warp.lanes<uint32_t>(op->b)) == 0 && warp.splits.empty() &&
      warp.frame == warp.kernel_frame) [[likely]] {
    warp.block->arrive_whole(warp, op + 1);
    return nullptr;
  }
  return run_any_barrier(warp, op);
}

namespace {

// The count of the barrier that the lanes have just passed. op->x: 0 popc, 1 and, 2 or.
const Op* run_barrier_result(Warp& warp, const Op* op) {
  const Barrier& barrier =
      warp.block->barriers[warp.lanes<uint32_t>(op->a)[first_lane(warp.mask)] % kBarrierCount];
  if (op->x == 0) {
    uint32_t result[kWarpSize];
    for (uint32_t& r : result) r = barrier.result_true;
    warp.put(op->d, result);
  } else {
    bool holds =
        op->x == 1 ? barrier.result_true == barrier.result_voters : barrier.result_true != 0;
    warp.set_predicate(op->d, holds ? kFullMask : 0);
  }
  return op + 1;
}

// The Op::y bits of a watched barrier.
uint8_t watched_flags(const Lowering& l, bool aligned) {
  if (!(l.variant().events & kSyncEvents)) return 0;
  return aligned || l.has("aligned") ? kWatched | kAligned : kWatched;
}

ptx::Operand zero() {
  ptx::Operand out;
  out.kind = ptx::OperandKind::Integer;
  return out;
}

}  // namespace

bool trap(Lowering& l) {
  l.emit(&run_trap);
  return true;
}

bool yield_warp(Lowering& l) {
  l.emit(&run_yield);
  return true;
}

namespace {

bool lower_barrier(Lowering& l, bool aligned) {
  uint32_t id, wanted;
  if (!l.lanes(l.operand(0), ptx::Type::u32, &id)) return false;
  const bool counts = l.ins().operands.size() > 1;
  if (!l.lanes(counts ? l.operand(1) : zero(), ptx::Type::u32, &wanted)) return false;
  l.program().has_barrier = true;
  Op& op = l.emit(&run_barrier);
  op.a = id;
  op.b = wanted;
  op.x = l.has("arrive");
  op.y = watched_flags(l, aligned);
  const auto is_number = [&](size_t operand) {
    return l.operand(operand).kind == ptx::OperandKind::Integer;
  };
  op.z = is_number(0) && (!counts || is_number(1));
  return true;
}

bool lower_reduce(Lowering& l, bool aligned) {
  const auto& operands = l.ins().operands;
  uint32_t id, wanted, votes, d = 0;
  if (!l.lanes(operands[1], ptx::Type::u32, &id)) return false;
  if (!l.lanes(operands.size() > 3 ? operands[2] : zero(), ptx::Type::u32, &wanted)) return false;
  if (!l.predicate(operands.back(), &votes)) return false;
  bool popc = l.has("popc");
  Dest dest;
  if (popc ? !l.dest(operands[0], 4, false, &dest) : !l.dest_predicate(operands[0], &d))
    return false;
  l.program().has_barrier = true;
  Op& op = l.emit(&run_barrier);
  op.a = id;
  op.b = wanted;
  op.c = votes;
  op.y = kVotes | watched_flags(l, aligned);
  Op& result = l.emit(&run_barrier_result);
  result.a = id;
  result.d = popc ? dest.offset : d;
  result.x = popc ? 0 : l.has("and") ? 1 : 2;
  return true;
}

}  // namespace

bool barrier(Lowering& l) { return lower_barrier(l, false); }
bool barrier_aligned(Lowering& l) { return lower_barrier(l, true); }
bool barrier_reduce(Lowering& l) { return lower_reduce(l, false); }
bool barrier_reduce_aligned(Lowering& l) { return lower_reduce(l, true); }

namespace {

const Op* run_warp_barrier(Warp& warp, const Op* op) {
  const uint32_t* members = warp.lanes<uint32_t>(op->a);
  const auto pass = [&] {
    if (warp.block->sync_sink) [[unlikely]]
      deliver_groups(warp, op, SyncKind::Warp, members);
  };
  const auto [any, all] = named_by(warp, members);
  if (const uint32_t ready = any != all ? ready_lanes(warp, any, members) : 0) [[unlikely]]
    return run_ready(warp, op, ready, pass);
  if (!warp.all_here(op, any)) return nullptr;
  pass();
  return op + 1;
}

}  // namespace

bool warp_barrier(Lowering& l) {
  uint32_t members;
  if (!l.lanes(l.operand(0), ptx::Type::b32, &members)) return false;
  l.emit(&run_warp_barrier).a = members;
  return true;
}

void describe_control(Meanings& to) {
  to.add(&run_branch, {Does::Branch});
  to.add(&run_branch_if<false>, {Does::BranchIf});
  to.add(&run_branch_if<true>, {Does::BranchUnless});
  to.add(&run_branch_indexed, {Does::BranchIndexed});
}

}  // namespace kiln::engine
