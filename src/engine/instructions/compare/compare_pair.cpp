// SPDX-License-Identifier: Apache-2.0
// How are pairs of f16 and bf16 compared? (PTX ISA 9.7.7)
#include "engine/decode/lanes.h"
#include "engine/instructions/compare/predicates.h"
#include "engine/instructions/lowerings.h"
#include "engine/numbers/comparisons.h"

namespace kiln::engine {
namespace {

template <class T>
bool compare_by_name(std::string_view name, float a, float b) {
  (void)sizeof(T);
#define KILN_COMPARISON(known, unordered, expression) \
  if (name == #known) return Compare_##known::f(a, b);
  KILN_COMPARISONS(KILN_COMPARISON)
#undef KILN_COMPARISON
  return false;
}

struct PairCompare {
  std::string_view name;
  bool flushes;
};

template <class T>
void compare_halves(Warp& warp, const Op* op, uint32_t* low, uint32_t* high) {
  const auto& how = *static_cast<const PairCompare*>(op->data);
  const Pair<T>*a = warp.lanes<Pair<T>>(op->a), *b = warp.lanes<Pair<T>>(op->b);
  auto ready = [&](T value) { return static_cast<float>(how.flushes ? flush(value) : value); };
  *low = *high = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    *low |= compare_by_name<T>(how.name, ready(a[i].low), ready(b[i].low)) ? 1u << i : 0;
    *high |= compare_by_name<T>(how.name, ready(a[i].high), ready(b[i].high)) ? 1u << i : 0;
  }
}

template <class T>
const Op* run_compare_pair(Warp& warp, const Op* op) {
  uint32_t low, high;
  compare_halves<T>(warp, op, &low, &high);
  warp.set_predicate(op->d, low);
  warp.set_predicate(op->c, high);
  return op + 1;
}

template <class T>
const Op* run_compare_set_pair(Warp& warp, const Op* op) {
  uint32_t low, high;
  compare_halves<T>(warp, op, &low, &high);
  uint32_t result[kWarpSize];
  const uint32_t one = op->x ? 0xffff : std::is_same_v<T, Half> ? 0x3c00 : 0x3f80;
  for (uint32_t i = 0; i < kWarpSize; ++i)
    result[i] = (low >> i & 1 ? one : 0) | (high >> i & 1 ? one << 16 : 0);
  warp.put(op->d, result);
  return op + 1;
}

}  // namespace

bool compare_pair(Lowering& l) {
  const auto& operands = l.ins().operands;
  uint32_t a, b, p, q;
  if (!l.lanes(operands[2], l.type(), &a) || !l.lanes(operands[3], l.type(), &b)) return false;
  if (!l.dest_predicate(operands[0], &p) || !l.dest_predicate(operands[1], &q)) return false;
  bool combined = operands.size() > 4;
  uint32_t c = 0;
  if (combined && !l.predicate(operands[4], &c)) return false;
  uint32_t low = combined ? l.temporary_predicate() : p,
           high = combined ? l.temporary_predicate() : q;
  Op& op = l.emit(l.type() == ptx::Type::f16x2 ? &run_compare_pair<Half> : &run_compare_pair<Bf16>);
  op.a = a;
  op.b = b;
  op.d = low;
  op.c = high;
  op.data = l.own(PairCompare{l.ins().modifiers[0], l.has("ftz")});
  if (combined) {
    emit_logic(l, logic_of(l), low, false, c, p);
    emit_logic(l, logic_of(l), high, false, c, q);
  }
  return true;
}

bool compare_set_pair(Lowering& l) {
  uint32_t a, b;
  Dest d;
  if (!l.lanes(l.operand(1), l.type(), &a) || !l.lanes(l.operand(2), l.type(), &b)) return false;
  if (!l.dest(l.operand(0), 4, false, &d)) return false;
  Op& op = l.emit(l.type() == ptx::Type::f16x2 ? &run_compare_set_pair<Half>
                                               : &run_compare_set_pair<Bf16>);
  op.x = l.other_type() == ptx::Type::u32 || l.other_type() == ptx::Type::s32;  // a mask
  op.a = a;
  op.b = b;
  op.d = d.offset;
  op.data = l.own(PairCompare{l.ins().modifiers[0], l.has("ftz")});
  return true;
}

}  // namespace kiln::engine
