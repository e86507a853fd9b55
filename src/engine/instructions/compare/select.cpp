// SPDX-License-Identifier: Apache-2.0
// How do predicates select, and how are they combined? (PTX ISA 9.7.6, 9.7.8)
#include "engine/decode/control.h"
#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/instructions/compare/predicates.h"
#include "engine/instructions/lowerings.h"
#include "engine/machine/lane_masks.h"
#include "engine/numbers/comparisons.h"

namespace kiln::engine {
namespace {

const Op* run_logic(Warp& warp, const Op* op) {
  uint32_t a = warp.predicate(op->a) ^ (op->y ? kFullMask : 0), b = warp.predicate(op->b);
  warp.set_predicate(op->d, op->x == kAnd ? (a & b) : op->x == kOr ? (a | b) : (a ^ b));
  return op + 1;
}

const Op* run_copy_predicate(Warp& warp, const Op* op) {
  warp.set_predicate(op->d, warp.predicate(op->a) ^ (op->y ? kFullMask : 0));
  return op + 1;
}

template <class T>
const Op* run_select(Warp& warp, const Op* op) {
  T* d = warp.lanes<T>(op->d);
  const T *a = warp.lanes<T>(op->a), *b = warp.lanes<T>(op->b);
  uint32_t p = warp.predicate(op->c);
  if (op->x)
    op->y ? select_lanes<T, true, true>(d, a, b, p) : select_lanes<T, true, false>(d, a, b, p);
  else
    op->y ? select_lanes<T, false, true>(d, a, b, p) : select_lanes<T, false, false>(d, a, b, p);
  return op + 1;
}

// A NaN counts as negative.
template <class T, bool kFlush>
const Op* run_not_negative(Warp& warp, const Op* op) {
  const T* a = warp.lanes<T>(op->a);
  uint32_t result = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    T value = a[i];
    if constexpr (kFlush) value = flush(value);
    result |= value >= 0 ? kLaneBits[i] : 0;
  }
  warp.set_predicate(op->d, result);
  return op + 1;
}

}  // namespace

const Op* run_predicate_invert(Warp& warp, const Op* op) {
  warp.predicate(op->d) = ~warp.predicate(op->a);
  return op + 1;
}

Logic logic_of(Lowering& l) { return l.has("or") ? kOr : l.has("xor") ? kXor : kAnd; }

void emit_logic(Lowering& l, Logic logic, uint32_t a, bool invert_a, uint32_t b, uint32_t d) {
  Op& op = l.emit(&run_logic);
  op.x = logic;
  op.y = invert_a;
  op.a = a;
  op.b = b;
  op.d = d;
}

void emit_copy_predicate(Lowering& l, uint32_t from, uint32_t to, bool invert) {
  Op& op = l.emit(&run_copy_predicate);
  op.a = from;
  op.d = to;
  op.y = invert;
}

// d = p ? a : b.
void emit_select(Lowering& l, const Source& a, const Source& b, uint32_t p) {
  const uint32_t bytes = ptx::bytes_of(l.type());
  Handler handler = bytes == 8   ? &run_select<uint64_t>
                    : bytes == 4 ? &run_select<uint32_t>
                                 : &run_select<uint16_t>;
  l.emit_value(l.operand(0), bytes, false, handler, a, b, {p, false});
  Op& op = l.program().ops.back();
  op.x = a.uniform;
  op.y = b.uniform;
}

bool select(Lowering& l) {
  Source a, b;
  uint32_t p;
  if (!l.source(l.operand(1), l.type(), &a) || !l.source(l.operand(2), l.type(), &b)) return false;
  if (!l.predicate(l.operand(3), &p)) return false;
  emit_select(l, a, b, p);
  return true;
}

bool select_by_sign(Lowering& l) {
  Source a, b;
  uint32_t c;
  if (!l.source(l.operand(1), l.type(), &a) || !l.source(l.operand(2), l.type(), &b)) return false;
  if (!l.lanes(l.operand(3), l.other_type(), &c)) return false;
  uint32_t p = l.temporary_predicate();
  Op& test = l.emit(l.other_type() == ptx::Type::s32 ? &run_not_negative<int32_t, false>
                    : l.has("ftz")                   ? &run_not_negative<float, true>
                                                     : &run_not_negative<float, false>);
  test.a = c;
  test.d = p;
  emit_select(l, a, b, p);
  return true;
}

template <class F>
bool predicate_logic(Lowering& l) {
  uint32_t a, b, d;
  if (!l.predicate(l.operand(1), &a) || !l.predicate(l.operand(2), &b) ||
      !l.dest_predicate(l.operand(0), &d))
    return false;
  emit_logic(l, std::is_same_v<F, And> ? kAnd : std::is_same_v<F, Or> ? kOr : kXor, a, false, b, d);
  return true;
}

template bool predicate_logic<And>(Lowering&);
template bool predicate_logic<Or>(Lowering&);
template bool predicate_logic<Xor>(Lowering&);

namespace {

bool lower_predicate_copy(Lowering& l, bool negate) {
  uint32_t a, d;
  if (!l.predicate(l.operand(1), &a) || !l.dest_predicate(l.operand(0), &d)) return false;
  emit_copy_predicate(l, a, d, negate);
  return true;
}

}  // namespace

bool predicate_not(Lowering& l) { return lower_predicate_copy(l, true); }
bool predicate_move(Lowering& l) { return lower_predicate_copy(l, false); }

void describe_select(Meanings& to) {
  to.add(&run_select<uint32_t>, {Does::Select, Number::U32, Number::U32, 3});
  to.add(&run_select<uint16_t>, {Does::Select, Number::U16, Number::U16, 3});
  to.add(&run_select<uint64_t>, {Does::Select, Number::U64, Number::U64, 3});
  to.add(&run_logic, {Does::Logic});
  to.add(&run_copy_predicate, {Does::CopyPredicate});
  to.add(&run_predicate_invert, {Does::InvertPredicate});
}

}  // namespace kiln::engine
