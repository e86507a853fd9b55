// SPDX-License-Identifier: Apache-2.0
// How do atomics on vectors run? (PTX ISA: atom and red with .v2, .v4, .v8) Element by element: on
// a GPU the vector as a whole is not atomic either.
#include <bit>

#include "engine/decode/address_operand.h"
#include "engine/decode/lanes.h"
#include "engine/decode/watch_ops.h"
#include "engine/instructions/lowerings_more.h"
#include "engine/instructions/memory/memory_values.h"
#include "engine/machine/watching.h"
#include "engine/numbers/rmw.h"

namespace kiln::engine {
namespace {

struct VectorAtomic {
  AddressOperand memory;
  Rmw what = Rmw::Add;
  uint32_t count = 0;
  bool returns = false;
  Order order;
  uint32_t operands[kMostElements] = {}, results[kMostElements] = {};
};

template <class T>
const Op* run_vector_atomic(Warp& warp, const Op* op) {
  const VectorAtomic& how = *static_cast<const VectorAtomic*>(op->data);
  const uint32_t bytes = how.count * static_cast<uint32_t>(sizeof(T));
  return for_each_lane(warp, op, [&](uint32_t lane) {
    std::byte* at = locate_watched(warp, op, lane, how.memory.space, how.memory.of(warp, lane),
                                   bytes, bytes, Access::Atomic, false, how.order);
    if (!at) return false;
    for (uint32_t e = 0; e < how.count; ++e) {
      const T operand = warp.lanes<T>(how.operands[e])[lane];
      const T old = exchange(at + size_t{e} * sizeof(T), how.what, operand, operand);
      if (how.returns) warp.lanes<T>(how.results[e])[lane] = old;
    }
    return true;
  });
}

bool lower_vector(Lowering& l, bool is_atom) {
  const auto& operands = l.ins().operands;
  const size_t first = is_atom ? 1 : 0;
  VectorAtomic how;
  how.what = rmw_of(l.ins());
  if (how.what == Rmw::Add && l.type() == ptx::Type::f32) how.what = Rmw::AddFlushed;
  how.order = order_of(l.ins(), true);
  how.count = l.has("v8") ? 8 : l.has("v4") ? 4 : 2;
  const ptx::Operand& values = operands[first + 1];
  if (values.kind != ptx::OperandKind::Vector || values.elements.size() != how.count)
    return l.refuse("the number of registers differs from that of the vector");
  how.returns = is_atom && operands[0].kind == ptx::OperandKind::Vector;
  if (how.returns && operands[0].elements.size() != how.count)
    return l.refuse("the number of registers differs from that of the vector");
  for (uint32_t e = 0; e < how.count; ++e) {
    if (!l.lanes(values.elements[e], l.type(), &how.operands[e])) return false;
    Dest d;
    if (how.returns && !l.dest(operands[0].elements[e], ptx::bytes_of(l.type()), false, &d))
      return false;
    how.results[e] = d.offset;
  }
  const ptx::Space space = l.has("global") ? ptx::Space::Global : ptx::Space::Generic;
  if (!address_operand(l, operands[first], space, &how.memory)) return false;
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (sizeof(T) == 2 || sizeof(T) == 4) {
      l.emit(&run_vector_atomic<T>).data = l.own(how);
      return true;
    }
    return l.refuse("no such type for this instruction");
  });
}

}  // namespace

bool vector_atomic(Lowering& l) { return lower_vector(l, true); }
bool vector_reduction(Lowering& l) { return lower_vector(l, false); }

}  // namespace kiln::engine
