// SPDX-License-Identifier: Apache-2.0
// How does a function allocate stack memory at run time? (PTX ISA 9.7.17: alloca, stacksave,
// stackrestore) After its local variables, as much as the lane that asks for most; freed when the
// function ends.
#include <bit>

#include "engine/decode/address_operand.h"
#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings_more.h"
#include "engine/machine/fault.h"

namespace kiln::engine {
namespace {

struct Alloca {
  LaneValue size;
  uint32_t align = 8;
};

template <class T>
const Op* run_alloca(Warp& warp, const Op* op) {
  const Alloca& how = *static_cast<const Alloca*>(op->data);
  uint64_t most = 0;
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    most = std::max(most, how.size.of(warp, static_cast<uint32_t>(std::countr_zero(rest))));
  }
  Frame& frame = *warp.frame;
  const uint64_t base = uint64_t{frame.local_offset} + frame.program->local_bytes;
  const uint64_t at = (base + frame.stack_bytes + how.align - 1) / how.align * how.align;
  if (most > (1u << 30) || at + most > (1u << 30) ||
      !warp.grow_local(static_cast<uint32_t>(at + most))) {
    const uint32_t lane = static_cast<uint32_t>(std::countr_zero(warp.mask));
    return warp.fault(op, kLaunchFailure, lane,
                      "Stack overflow: alloca\n" + where(warp, *op, lane));
  }
  frame.stack_bytes = static_cast<uint32_t>(at + most - base);
  warp.fill_local(warp.mask, static_cast<uint32_t>(at), static_cast<uint32_t>(most));
  T result[kWarpSize];
  for (T& r : result) r = static_cast<T>(at);
  warp.put(op->d, result);
  return op + 1;
}

template <class T>
const Op* run_save(Warp& warp, const Op* op) {
  T result[kWarpSize];
  for (T& r : result) r = static_cast<T>(warp.frame->stack_bytes);
  warp.put(op->d, result);
  return op + 1;
}

// Memory that other lanes of the same call allocated stays: only a converged warp frees memory.
template <class T>
const Op* run_restore(Warp& warp, const Op* op) {
  for (const Split& split : warp.splits) {
    if (split.frame == warp.frame) return op + 1;
  }
  const T saved = warp.lanes<T>(op->a)[std::countr_zero(warp.mask)];
  warp.frame->stack_bytes = std::min(warp.frame->stack_bytes, static_cast<uint32_t>(saved));
  return op + 1;
}

}  // namespace

bool take_stack(Lowering& l) {
  const auto& operands = l.ins().operands;
  const uint32_t bytes = ptx::bytes_of(l.type());
  Alloca how;
  if (!lane_value(l, operands[1], l.type(), &how.size)) return false;
  if (operands.size() > 2) how.align = static_cast<uint32_t>(operands[2].bits);
  if (!std::has_single_bit(how.align) || how.align > 4096)
    return l.refuse("the alignment is not a small power of two");
  Dest d;
  if (!l.dest(operands[0], bytes, false, &d)) return false;
  Op& op = l.emit(bytes == 8 ? &run_alloca<uint64_t> : &run_alloca<uint32_t>);
  op.d = d.offset;
  op.data = l.own(how);
  return true;
}

bool save_stack(Lowering& l) {
  const bool wide = ptx::bytes_of(l.type()) == 8;
  Dest d;
  if (!l.dest(l.operand(0), wide ? 8 : 4, false, &d)) return false;
  l.emit(wide ? &run_save<uint64_t> : &run_save<uint32_t>).d = d.offset;
  return true;
}

bool restore_stack(Lowering& l) {
  const bool wide = ptx::bytes_of(l.type()) == 8;
  uint32_t a;
  if (!l.lanes(l.operand(0), l.type(), &a)) return false;
  l.emit(wide ? &run_restore<uint64_t> : &run_restore<uint32_t>).a = a;
  return true;
}

}  // namespace kiln::engine
