// SPDX-License-Identifier: Apache-2.0
// How do 128-bit values move? (PTX ISA: .b128 of ld, st, mov, atom)
#include <bit>

#include "engine/decode/address_operand.h"
#include "engine/decode/lanes.h"
#include "engine/decode/watch_ops.h"
#include "engine/instructions/lowerings_more.h"
#include "engine/machine/watching.h"
#include "engine/numbers/whole.h"

namespace kiln::engine {
namespace {

using Wide = Whole;

struct WideMove {
  AddressOperand memory;
  uint32_t slots[3] = {};
  Order order;
};

ptx::Space wide_space(Lowering& l) {
  if (l.has("shared") || l.has("shared::cta") || l.has("shared::cluster"))
    return ptx::Space::Shared;
  if (l.has("local")) return ptx::Space::Local;
  return l.has("global") || l.has("const") || l.has("param") ? ptx::Space::Global
                                                             : ptx::Space::Generic;
}

template <bool kLoad>
const Op* run_transfer(Warp& warp, const Op* op) {
  const WideMove& how = *static_cast<const WideMove*>(op->data);
  Wide* values = warp.lanes<Wide>(how.slots[0]);
  return for_each_lane(warp, op, [&](uint32_t lane) {
    std::byte* at = locate_watched(warp, op, lane, how.memory.space, how.memory.of(warp, lane), 16,
                                   16, kLoad ? Access::Read : Access::Write, false, how.order);
    if (!at) return false;
    std::byte* value = reinterpret_cast<std::byte*>(&values[lane]);
    kLoad ? load_as_one(at, value, 16) : store_as_one(at, value, 16);
    return true;
  });
}

const Op* run_atomic(Warp& warp, const Op* op) {
  const WideMove& how = *static_cast<const WideMove*>(op->data);
  const Wide *operand = warp.lanes<Wide>(how.slots[1]), *swap = warp.lanes<Wide>(how.slots[2]);
  Wide* old = warp.lanes<Wide>(how.slots[0]);
  return for_each_lane(warp, op, [&](uint32_t lane) {
    std::byte* at = locate_watched(warp, op, lane, how.memory.space, how.memory.of(warp, lane), 16,
                                   16, Access::Atomic, false, how.order);
    if (!at) return false;
    const Wide given = operand[lane], other = swap[lane];
    if (op->x) {  // cas
      old[lane] = compare_and_swap(at, given, other);
      return true;
    }
    Wide seen = load_whole(at);
    for (Wide found = compare_and_swap(at, seen, given); found != seen;
         found = compare_and_swap(at, seen, given)) {
      seen = found;
    }
    old[lane] = seen;
    return true;
  });
}

// op->x: 0 copy, 1 two words become one, 2 one becomes two (c: the high one).
const Op* run_move(Warp& warp, const Op* op) {
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    const uint32_t i = static_cast<uint32_t>(std::countr_zero(rest));
    if (op->x == 0) {
      warp.lanes<Wide>(op->d)[i] = warp.lanes<Wide>(op->a)[i];
    } else if (op->x == 1) {
      warp.lanes<Wide>(op->d)[i] = {warp.lanes<uint64_t>(op->a)[i], warp.lanes<uint64_t>(op->b)[i]};
    } else {
      const Wide value = warp.lanes<Wide>(op->a)[i];
      warp.lanes<uint64_t>(op->d)[i] = value.low;
      warp.lanes<uint64_t>(op->c)[i] = value.high;
    }
  }
  return op + 1;
}

// A 128-bit register, as lanes; there are no immediates of this width.
bool wide_register(Lowering& l, const ptx::Operand& operand, uint32_t* slot) {
  if (operand.kind == ptx::OperandKind::Register) return l.lanes(operand, ptx::Type::b128, slot);
  return l.refuse("expected a register of 128 bits");
}

bool transfer(Lowering& l, const ptx::Operand& value, const ptx::Operand& memory, bool load) {
  WideMove how;
  Dest d;
  if (load ? !l.dest(value, 16, false, &d) : !wide_register(l, value, &how.slots[0])) return false;
  if (load) how.slots[0] = d.offset;
  if (!address_operand(l, memory, wide_space(l), &how.memory)) return false;
  how.order = order_of(l.ins(), false);
  l.emit(load ? &run_transfer<true> : &run_transfer<false>).data = l.own(how);
  return true;
}

}  // namespace

bool wide_load(Lowering& l) { return transfer(l, l.operand(0), l.operand(1), true); }
bool wide_store(Lowering& l) { return transfer(l, l.operand(1), l.operand(0), false); }

bool wide_move(Lowering& l) {
  uint32_t a = 0;
  Dest d;
  if (!wide_register(l, l.operand(1), &a) || !l.dest(l.operand(0), 16, false, &d)) return false;
  Op& op = l.emit(&run_move);
  op.a = a;
  op.d = d.offset;
  return true;
}

bool wide_pack(Lowering& l) {
  const ptx::Operand& from = l.operand(1);
  if (from.kind != ptx::OperandKind::Vector || from.elements.size() != 2)
    return l.refuse("expected two registers");
  uint32_t low, high;
  Dest d;
  if (!l.lanes(from.elements[0], ptx::Type::b64, &low) ||
      !l.lanes(from.elements[1], ptx::Type::b64, &high) || !l.dest(l.operand(0), 16, false, &d)) {
    return false;
  }
  Op& op = l.emit(&run_move);
  op.x = 1;
  op.a = low;
  op.b = high;
  op.d = d.offset;
  return true;
}

bool wide_unpack(Lowering& l) {
  const ptx::Operand& to = l.operand(0);
  if (to.kind != ptx::OperandKind::Vector || to.elements.size() != 2)
    return l.refuse("expected two registers");
  uint32_t a = 0;
  Dest low, high;
  if (!wide_register(l, l.operand(1), &a) || !l.dest(to.elements[0], 8, false, &low) ||
      !l.dest(to.elements[1], 8, false, &high)) {
    return false;
  }
  Op& op = l.emit(&run_move);
  op.x = 2;
  op.a = a;
  op.d = low.offset;
  op.c = high.offset;
  return true;
}

bool wide_atomic(Lowering& l) {
  const auto& operands = l.ins().operands;
  WideMove how;
  Dest d;
  if (!l.dest(operands[0], 16, false, &d) ||
      !address_operand(l, operands[1], wide_space(l), &how.memory) ||
      !wide_register(l, operands[2], &how.slots[1])) {
    return false;
  }
  const bool swaps = l.has("cas");
  if (operands.size() != (swaps ? 4u : 3u)) return l.refuse("wrong number of operands");
  how.slots[0] = d.offset;
  how.slots[2] = how.slots[1];
  if (swaps && !wide_register(l, operands[3], &how.slots[2])) return false;
  how.order = order_of(l.ins(), true);
  Op& op = l.emit(&run_atomic);
  op.x = swaps;
  op.data = l.own(how);
  return true;
}

}  // namespace kiln::engine
