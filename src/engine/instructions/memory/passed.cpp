// SPDX-License-Identifier: Apache-2.0
// How do arguments get into a kernel, and into and out of the functions that it calls? (PTX ISA
// 5.1.6)
#include "engine/instructions/memory/passed.h"

#include "engine/instructions/memory/memory_values.h"

namespace kiln::engine {
namespace {

// `.param` memory of calls: in the frame, one lane after the other. op->c: bytes per lane; op->imm:
// offset inside.
template <class M, class R>
const Op* run_load_passed(Warp& warp, const Op* op) {
  const std::byte* from = warp.lanes<std::byte>(op->a) + op->imm;
  R result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i) result[i] = widen<M, R>(from + size_t{i} * op->c);
  warp.put(op->d, result);
  return op + 1;
}

template <class M, class R>
const Op* run_store_passed(Warp& warp, const Op* op) {
  std::byte* to = warp.lanes<std::byte>(op->a) + op->imm;
  const R* b = warp.lanes<R>(op->b);
  const uint32_t step = op->y ? 0 : 1;
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    uint32_t i = static_cast<uint32_t>(__builtin_ctz(rest));
    narrow<M, R>(to + size_t{i} * op->c, b[i * step]);
  }
  return op + 1;
}

}  // namespace

bool load_parameter(Lowering& l, const ptx::Operand& address, const ptx::Operand& to,
                    int64_t skip) {
  ptx::Operand at = address;
  at.offset += skip;
  Source from;
  if (!l.parameter(at, l.type(), &from)) return false;
  if (to.kind == ptx::OperandKind::Sink) return true;
  if (l.register_bytes(to) < ptx::bytes_of(l.type()))
    return l.refuse("the register is narrower than the value");
  if (l.alias(to, from, address)) return true;
  struct Same {
    static uint64_t f(uint64_t a) { return a; }
  };
  // Scalars have 8 bytes, whatever the width of the register.
  l.emit_value(to, l.register_bytes(to), true, &run_unary<Same, uint64_t, uint64_t, false>, from);
  return true;
}

bool load_passed(Lowering& l, const ptx::Operand& address, const Lowering::Passed& passed,
                 const ptx::Operand& to, int64_t skip) {
  uint32_t bytes = ptx::bytes_of(l.type());
  int64_t at = address.offset + skip;
  if (at < 0 || at + bytes > passed.bytes) return l.refuse("a read beyond the argument");
  if (to.kind == ptx::OperandKind::Sink) return true;
  uint32_t register_bytes = l.register_bytes(to);
  return with_memory_types(l, register_bytes, [&](auto m, auto r) {
    Dest d;
    if (!l.dest(to, register_bytes, false, &d)) return false;
    Op& op = l.emit(&run_load_passed<decltype(m), decltype(r)>);
    op.a = passed.offset;
    op.c = passed.bytes;
    op.imm = at;
    op.d = d.offset;
    return true;
  });
}

bool store_passed(Lowering& l, const ptx::Operand& address, const Lowering::Passed& passed,
                  Source from, uint32_t register_bytes, int64_t skip) {
  const int64_t at = address.offset + skip;
  if (at < 0 || at + ptx::bytes_of(l.type()) > passed.bytes)
    return l.refuse("a write beyond the argument");
  return with_memory_types(l, register_bytes, [&](auto m, auto r) {
    Op& op = l.emit(&run_store_passed<decltype(m), decltype(r)>);
    op.a = passed.offset;
    op.c = passed.bytes;
    op.imm = at;
    op.b = from.offset;
    op.y = from.uniform;
    return true;
  });
}

}  // namespace kiln::engine
