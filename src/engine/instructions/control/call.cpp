// SPDX-License-Identifier: Apache-2.0
// How do device functions run? A call creates a frame for the lanes that make it; a frame lives as
// long as lanes are in it.
#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <cstring>

#include "engine/decode/control.h"
#include "engine/decode/image.h"
#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings.h"
#include "engine/machine/builtins.h"
#include "engine/machine/fault.h"
#include "engine/machine/watching.h"

namespace kiln::engine {
namespace {

constexpr uint32_t kMaxDepth = 2048;

struct Argument {
  uint32_t from, to, bytes;  // offsets in the two frames, bytes per lane
};

struct CallSite {
  const Program* callee = nullptr;
  std::vector<Program::Passed> arguments, results;  // in the caller's frame
  uint32_t pointer = 0;                             // for an indirect call: 64-bit lanes
  Image* image = nullptr;
  Variant variant;  // of the caller
  // The last target of an indirect call here, because asking the image takes a lock. Not used for
  // watched callers, which run another program than the one at the pointer.
  mutable const Program* last_callee = nullptr;

  const Program* callee_at(uint64_t at) const {
    if (variant.events) return image->program_at(at, variant);
    std::atomic_ref last(last_callee);
    const Program* known = last.load(std::memory_order_acquire);
    if (known && reinterpret_cast<uint64_t>(known) == at) return known;
    known = image->program_at(at, variant);
    last.store(known, std::memory_order_release);
    return known;
  }
};

void copy_lanes(std::byte* to, const std::byte* from, uint32_t bytes, uint32_t mask) {
  if (mask == kFullMask) {
    std::memcpy(to, from, size_t{bytes} * kWarpSize);
    return;
  }
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    size_t at = size_t{static_cast<uint32_t>(std::countr_zero(rest))} * bytes;
    std::memcpy(to + at, from + at, bytes);
  }
}

const Op* enter(Warp& warp, const Op* op, const CallSite& site, const Program& callee) {
  uint32_t lane = static_cast<uint32_t>(std::countr_zero(warp.mask));
  Frame* caller = warp.frame;
  uint32_t local = caller->local_offset + caller->program->local_bytes + caller->stack_bytes;
  if (caller->depth + 1 > kMaxDepth || !warp.grow_local(local + callee.local_bytes)) {
    return warp.fault(op, kLaunchFailure, lane,
                      fmt::format("Stack overflow: {} calls deep\n{}", caller->depth + 1,
                                  where(warp, *op, lane)));
  }
  Frame* frame = warp.worker->acquire(callee, *warp.block->grid);
  if (!frame) {
    return warp.fault(op, kLaunchOutOfResources, lane,
                      fmt::format("Out of memory for the registers of a call, {} calls deep\n{}",
                                  caller->depth + 1, where(warp, *op, lane)));
  }
  if (callee.local_bytes) warp.fill_local(warp.mask, local, callee.local_bytes);
  frame->parent = caller;
  frame->depth = caller->depth + 1;
  frame->users = 1;
  frame->local_offset = local;
  frame->stack_bytes = 0;
  frame->return_to = op + 1;
  frame->call = &site;
  fill_specials(warp, *frame);
  for (size_t i = 0; i < site.arguments.size(); ++i) {
    copy_lanes(frame->data() + callee.arguments[i].offset,
               caller->data() + site.arguments[i].offset, site.arguments[i].bytes, warp.mask);
  }
  warp.steps += 1;
  watch_call(warp, op, callee, false);
  // The split continues in the new frame; the caller's frame keeps one user for it.
  warp.splits.push_back(
      {callee.ops.data(), warp.mask, frame, Wait::None, 0, 0, warp.current_penalty, false});
  return nullptr;
}

bool fits(const CallSite& site, const Program& callee) {
  if (site.arguments.size() != callee.arguments.size() ||
      site.results.size() != callee.results.size())
    return false;
  for (size_t i = 0; i < site.arguments.size(); ++i) {
    if (site.arguments[i].bytes != callee.arguments[i].bytes) return false;
  }
  for (size_t i = 0; i < site.results.size(); ++i) {
    if (site.results[i].bytes != callee.results[i].bytes) return false;
  }
  return true;
}

const Op* run_call(Warp& warp, const Op* op) {
  const CallSite& site = *static_cast<const CallSite*>(op->data);
  return enter(warp, op, site, *site.callee);
}

// Lanes may call different functions: one group after the other.
const Op* run_call_indirect(Warp& warp, const Op* op) {
  const CallSite& site = *static_cast<const CallSite*>(op->data);
  const uint64_t* pointer = warp.lanes<uint64_t>(site.pointer);
  uint32_t lane = static_cast<uint32_t>(std::countr_zero(warp.mask));
  const Program* callee = site.callee_at(pointer[lane]);
  if (!callee || !fits(site, *callee)) {
    return warp.fault(op, kIllegalInstruction, lane,
                      fmt::format("Invalid function pointer 0x{:x}{}\n{}", pointer[lane],
                                  callee ? ": its arguments differ" : "", where(warp, *op, lane)));
  }
  uint32_t same = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i)
    same |= (warp.mask >> i & 1) && pointer[i] == pointer[lane] ? 1u << i : 0;
  if (same != warp.mask) {
    ++warp.frame->users;
    warp.splits.push_back(
        {op, warp.mask & ~same, warp.frame, Wait::None, 0, 0, warp.current_penalty, false});
    warp.mask = same;
  }
  return enter(warp, op, site, *callee);
}

const Op* run_builtin(Warp& warp, const Op* op) {
  const CallSite& site = *static_cast<const CallSite*>(op->data);
  BuiltinCall call{warp, op, site.arguments, site.results};
  return kBuiltins[op->imm].run(call);
}

}  // namespace

const Op* run_return(Warp& warp, const Op* op) {
  Frame* frame = warp.frame;
  Frame* caller = frame->parent;
  const CallSite& site = *static_cast<const CallSite*>(frame->call);
  const Program& callee = *frame->program;
  watch_call(warp, op, callee, true);
  for (size_t i = 0; i < site.results.size(); ++i) {
    copy_lanes(caller->data() + site.results[i].offset, frame->data() + callee.results[i].offset,
               site.results[i].bytes, warp.mask);
  }
  ++caller->users;
  warp.splits.push_back(
      {frame->return_to, warp.mask, caller, Wait::None, 0, 0, warp.current_penalty, false});
  if (--frame->users == 0) {
    --caller->users;
    warp.worker->release(frame);
  }
  return nullptr;
}

bool call(Lowering& l) {
  const ptx::Instruction& ins = l.ins();
  const auto& operands = ins.operands;
  if (operands.size() <= ins.call_results) return l.refuse("it has no target");
  const ptx::Operand& target = operands[ins.call_results];
  CallSite site;
  site.image = &l.image();
  site.variant = l.variant();
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i == ins.call_results) continue;
    const Lowering::Passed* passed = l.passed(operands[i].name);
    if (operands[i].kind != ptx::OperandKind::Symbol || !passed)
      return l.refuse("an argument is not a .param variable");
    (i < ins.call_results ? site.results : site.arguments)
        .push_back({passed->offset, passed->bytes});
  }
  l.program().has_calls = true;
  if (target.kind == ptx::OperandKind::Register) {
    uint32_t pointer;
    if (!l.lanes(target, ptx::Type::b64, &pointer)) return false;
    site.pointer = pointer;
    CallSite* kept = l.own(site);
    l.emit(&run_call_indirect).data = kept;
    return true;
  }
  if (target.kind != ptx::OperandKind::Symbol) return l.refuse("a target is not a function");
  std::string name(target.name);
  const ptx::Function* function = l.module().find(target.name);
  if (!function || function->body_text.empty()) {
    int builtin = builtin_named(name);
    if (builtin < 0)
      return l.refuse(fmt::format("the function '{}' is declared but not defined", name));
    const Builtin& known = kBuiltins[builtin];
    if (site.arguments.size() != known.arguments || site.results.size() != known.results) {
      return l.refuse(fmt::format("'{}' takes different arguments", name));
    }
    CallSite* kept = l.own(site);
    Op& op = l.emit(&run_builtin);
    op.data = kept;
    op.imm = builtin;
    return true;
  }
  auto callee = l.image().program(*function, l.variant());
  if (!callee) return l.refuse(callee.error().why);
  site.callee = *callee;
  l.program().callees.push_back(*callee);
  // A callee that is being decoded (recursion) has already declared its arguments.
  if (!fits(site, *site.callee))
    return l.refuse(fmt::format("the arguments do not match '{}'", name));
  CallSite* kept = l.own(site);
  l.emit(&run_call).data = kept;
  return true;
}

}  // namespace kiln::engine
