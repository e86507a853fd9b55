// SPDX-License-Identifier: Apache-2.0
// How do comparisons make predicates, and how do predicates select? (PTX ISA 9.7.6, 9.7.7)
#include "engine/affine.h"
#include "engine/control.h"
#include "engine/fuse.h"
#include "engine/lanes.h"
#include "engine/lowerings.h"

namespace kiln::engine {
namespace {

// X(name, unordered, expression): `unordered` is the result when an operand is NaN.
// clang-format off
#define KILN_COMPARISONS(X) \
  X(eq, false, a == b)      \
  X(ne, false, a != b)      \
  X(lt, false, a < b)       \
  X(le, false, a <= b)      \
  X(gt, false, a > b)       \
  X(ge, false, a >= b)      \
  X(equ, true, a == b)      \
  X(neu, true, a != b)      \
  X(ltu, true, a < b)       \
  X(leu, true, a <= b)      \
  X(gtu, true, a > b)       \
  X(geu, true, a >= b)      \
  X(num, false, true)       \
  X(nan, true, false)
// clang-format on

#define KILN_COMPARISON(name, unordered, expression)                                                 \
  struct Compare_##name {                                                                            \
    template <class T>                                                                               \
    static bool f(T a, T b) {                                                                        \
      if constexpr (std::is_floating_point_v<T>) {                                                   \
        return unordered ? !(a == a && b == b) || (expression) : (a == a && b == b) && (expression); \
      } else {                                                                                       \
        return expression;                                                                           \
      }                                                                                              \
    }                                                                                                \
  };
KILN_COMPARISONS(KILN_COMPARISON)
#undef KILN_COMPARISON

constexpr uint32_t kLaneBits[kWarpSize] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,  1u << 8,  1u << 9,  1u << 10,
    1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15, 1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21,
    1u << 22, 1u << 23, 1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

template <class T, bool kFlush>
auto comparable(T value) {
  if constexpr (SmallFloat<T>) {
    return static_cast<float>(kFlush ? flush(value) : value);
  } else if constexpr (kFlush && NativeFloat<T>) {
    return flush(value);
  } else {
    return value;
  }
}

template <class F, class T, bool kFlush, bool kLanesA, bool kLanesB>
const Op* run_compare(Warp& warp, const Op* op) {
  const T *a = warp.lanes<T>(op->a), *b = warp.lanes<T>(op->b);
  uint32_t result = 0;
  if constexpr (!kLanesA && !kLanesB) {
    result = F::f(comparable<T, kFlush>(a[0]), comparable<T, kFlush>(b[0])) ? kFullMask : 0;
  } else {
    const T a0 = a[0], b0 = b[0];
    for (uint32_t i = 0; i < kWarpSize; ++i) {
      result |= F::f(comparable<T, kFlush>(kLanesA ? a[i] : a0), comparable<T, kFlush>(kLanesB ? b[i] : b0))
                    ? kLaneBits[i]
                    : 0;
    }
  }
  warp.set_predicate(op->d, result);
  return op + 1;
}

template <class F, class T>
Handler compare_handler(bool flushes, Source a, Source b) {
  // The flushing forms are rare: one handler with both operands as lanes serves them.
  if constexpr (AnyFloat<T>) {
    if (flushes) return &run_compare<F, T, true, true, true>;
  }
  if (a.uniform && b.uniform) return &run_compare<F, T, false, false, false>;
  if (a.uniform) return &run_compare<F, T, false, false, true>;
  if (b.uniform) return &run_compare<F, T, false, true, false>;
  return &run_compare<F, T, false, true, true>;
}

template <class T>
Handler compare_named(std::string_view name, bool flushes, Source a, Source b) {
#define KILN_COMPARISON(known, unordered, expression) \
  if (name == #known) return compare_handler<Compare_##known, T>(flushes, a, b);
  KILN_COMPARISONS(KILN_COMPARISON)
#undef KILN_COMPARISON
  return nullptr;
}

// lo, ls, hi, hs are lt, le, gt, ge of unsigned numbers.
std::string_view plain_name(std::string_view name) {
  return name == "lo" ? "lt" : name == "ls" ? "le" : name == "hi" ? "gt" : name == "hs" ? "ge" : name;
}

// A value of base and step against a scalar: when the first and the last lane agree, all lanes do.
struct AffineCompare {
  AffineTerm a, b;
  Op on_lanes;
};

template <class F, class T>
const Op* run_compare_on_lanes(Warp& warp, const Op* op) {
  const AffineCompare& how = *static_cast<const AffineCompare*>(op->data);
  if (how.a.affine) materialize(warp, how.a.offset);
  if (how.b.affine) materialize(warp, how.b.offset);
  how.on_lanes.run(warp, &how.on_lanes);
  return op + 1;
}

// op->a and op->b: the terms, of which the first or the second is of base and step.
template <class F, class T, bool kFirst>
const Op* run_compare_affine(Warp& warp, const Op* op) {
  T first, last;
  if (!affine_ends<T>(affine_at(warp, kFirst ? op->a : op->b), &first, &last))
    return run_compare_on_lanes<F, T>(warp, op);
  const T other = *warp.lanes<T>(kFirst ? op->b : op->a);
  const bool holds = kFirst ? F::f(first, other) : F::f(other, first);
  if (holds != (kFirst ? F::f(last, other) : F::f(other, last))) return run_compare_on_lanes<F, T>(warp, op);
  warp.set_predicate(op->d, holds ? kFullMask : 0);
  if (!op->target) return op + 1;
  return holds == (op->y != 0) ? op->target : op + 2;  // the branch behind it, fused (fuse.h)
}

template <class T, bool kFirst>
Handler compare_affine_named(std::string_view name) {
  if (name == "lt") return &run_compare_affine<Compare_lt, T, kFirst>;
  if (name == "le") return &run_compare_affine<Compare_le, T, kFirst>;
  if (name == "gt") return &run_compare_affine<Compare_gt, T, kFirst>;
  if (name == "ge") return &run_compare_affine<Compare_ge, T, kFirst>;
  return nullptr;
}

template <class T>
bool is_compare_affine_of(Handler handler) {
  for (std::string_view name : {"lt", "le", "gt", "ge"}) {
    if (handler == compare_affine_named<T, true>(name) || handler == compare_affine_named<T, false>(name)) return true;
  }
  return false;
}

}  // namespace

bool is_compare_affine(Handler handler) {
  return is_compare_affine_of<int32_t>(handler) || is_compare_affine_of<uint32_t>(handler) ||
         is_compare_affine_of<int64_t>(handler) || is_compare_affine_of<uint64_t>(handler);
}

std::array<AffineTerm, 2> compared(const Op& op) {
  const AffineCompare& how = *static_cast<const AffineCompare*>(op.data);
  return {how.a, how.b};
}

namespace {

bool emit_compare_affine(Lowering& l, const ptx::Operand& a_operand, const ptx::Operand& b_operand, uint32_t to) {
  AffineCompare how;
  Source a, b;
  if (!l.rows_fill_warps() || !l.affine_term(a_operand, l.type(), &how.a, &a) ||
      !l.affine_term(b_operand, l.type(), &how.b, &b)) {
    return false;
  }
  if (how.a.affine == how.b.affine) return false;
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (Integer<T> && sizeof(T) >= 4) {
      std::string_view name = plain_name(l.ins().modifiers[0]);
      Handler handler = how.a.affine ? compare_affine_named<T, true>(name) : compare_affine_named<T, false>(name);
      if (!handler) return false;
      how.on_lanes.run = compare_named<T>(name, false, a, b);
      how.on_lanes.a = a.offset;
      how.on_lanes.b = b.offset;
      how.on_lanes.d = to;
      Op& op = l.emit(handler);
      op.a = how.a.offset;
      op.b = how.b.offset;
      op.d = to;
      op.data = l.own(how);
      return true;
    }
    return false;
  });
}

bool emit_compare(Lowering& l, const ptx::Operand& a_operand, const ptx::Operand& b_operand, uint32_t to) {
  if (emit_compare_affine(l, a_operand, b_operand, to)) return true;
  Source a, b;
  bool flushes = l.has("ftz");
  if (flushes) {
    if (!l.lanes(a_operand, l.type(), &a.offset) || !l.lanes(b_operand, l.type(), &b.offset)) return false;
  } else if (!l.source(a_operand, l.type(), &a) || !l.source(b_operand, l.type(), &b)) {
    return false;
  }
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr ((Integer<T> && sizeof(T) > 1) || AnyFloat<T>) {
      Handler handler = compare_named<T>(plain_name(l.ins().modifiers[0]), flushes, a, b);
      if (!handler) return l.refuse("this comparison is not known");
      Op& op = l.emit(handler);
      op.a = a.offset;
      op.b = b.offset;
      op.d = to;
      return true;
    }
    return false;
  });
}

enum Logic : uint8_t { kAnd, kOr, kXor };

const Op* run_logic(Warp& warp, const Op* op) {
  uint32_t a = warp.predicate(op->a) ^ (op->y ? kFullMask : 0), b = warp.predicate(op->b);
  warp.set_predicate(op->d, op->x == kAnd ? (a & b) : op->x == kOr ? (a | b) : (a ^ b));
  return op + 1;
}

const Op* run_copy_predicate(Warp& warp, const Op* op) {
  warp.set_predicate(op->d, warp.predicate(op->a) ^ (op->y ? kFullMask : 0));
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

template <class T>
const Op* run_select(Warp& warp, const Op* op) {
  T* d = warp.lanes<T>(op->d);
  const T *a = warp.lanes<T>(op->a), *b = warp.lanes<T>(op->b);
  uint32_t p = warp.predicate(op->c);
  const uint32_t a_step = op->x ? 0 : 1, b_step = op->y ? 0 : 1;
  if (a_step && b_step) {
#pragma GCC ivdep
    for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = (p & kLaneBits[i]) ? a[i] : b[i];
  } else {
#pragma GCC ivdep
    for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = (p & kLaneBits[i]) ? a[i * a_step] : b[i * b_step];
  }
  return op + 1;
}

}  // namespace

const Op* run_predicate_invert(Warp& warp, const Op* op) {
  warp.predicate(op->d) = ~warp.predicate(op->a);
  return op + 1;
}

bool compare(Lowering& l) {
  const auto& operands = l.ins().operands;
  bool two = operands.size() > 1 &&
             (operands[1].kind == ptx::OperandKind::Predicate || operands[1].kind == ptx::OperandKind::Sink);
  size_t first = two ? 2 : 1;
  if (operands.size() < first + 2) return l.refuse("it needs two operands");
  bool combined = operands.size() > first + 2;
  uint32_t p = 0, q = 0, c = 0;
  if (!l.dest_predicate(operands[0], &p) || (two && !l.dest_predicate(operands[1], &q))) return false;
  if (!two && !combined) return emit_compare(l, operands[first], operands[first + 1], p);
  uint32_t result = l.temporary_predicate();
  if (combined && !l.predicate(operands[first + 2], &c)) return false;
  if (!emit_compare(l, operands[first], operands[first + 1], result)) return false;
  Logic logic = combined ? logic_of(l) : kAnd;
  if (!combined) c = l.constant_predicate(true);
  if (two && p == c) {  // p is read for q after it was written for p: keep its old value
    uint32_t kept = l.temporary_predicate();
    Op& copy = l.emit(&run_copy_predicate);
    copy.a = c;
    copy.d = kept;
    c = kept;
  }
  emit_logic(l, logic, result, false, c, p);
  if (two) emit_logic(l, logic, result, true, c, q);
  return true;
}

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
  for (uint32_t i = 0; i < kWarpSize; ++i) result[i] = (low >> i & 1 ? one : 0) | (high >> i & 1 ? one << 16 : 0);
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
  uint32_t low = combined ? l.temporary_predicate() : p, high = combined ? l.temporary_predicate() : q;
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
  Op& op = l.emit(l.type() == ptx::Type::f16x2 ? &run_compare_set_pair<Half> : &run_compare_set_pair<Bf16>);
  op.x = l.other_type() == ptx::Type::u32 || l.other_type() == ptx::Type::s32;  // a mask
  op.a = a;
  op.b = b;
  op.d = d.offset;
  op.data = l.own(PairCompare{l.ins().modifiers[0], l.has("ftz")});
  return true;
}

namespace {

template <class T>
const Op* run_set(Warp& warp, const Op* op) {
  T result[kWarpSize];
  uint32_t p = warp.predicate(op->a);
  for (uint32_t i = 0; i < kWarpSize; ++i) result[i] = p >> i & 1 ? static_cast<T>(op->imm) : T{0};
  warp.put(op->d, result);
  return op + 1;
}

}  // namespace

bool compare_set(Lowering& l) {
  uint32_t result = l.temporary_predicate();
  const auto& operands = l.ins().operands;
  uint32_t c = 0;
  bool combined = operands.size() > 3;
  if (combined && !l.predicate(operands[3], &c)) return false;
  if (!emit_compare(l, operands[1], operands[2], result)) return false;
  if (combined) emit_logic(l, logic_of(l), result, false, c, result);
  uint32_t bytes = ptx::bytes_of(l.other_type());
  Dest d;
  if (!l.dest(operands[0], bytes, false, &d)) return false;
  Op& op = l.emit(bytes == 4 ? &run_set<uint32_t> : &run_set<uint16_t>);
  op.a = result;
  op.d = d.offset;
  switch (l.other_type()) {  // true is 1.0, or all ones
    case ptx::Type::f32:
      op.imm = 0x3f800000;
      break;
    case ptx::Type::f16:
      op.imm = 0x3c00;
      break;
    case ptx::Type::bf16:
      op.imm = 0x3f80;
      break;
    default:
      op.imm = -1;
  }
  return true;
}

bool select(Lowering& l) {
  Source a, b;
  uint32_t p;
  uint32_t bytes = ptx::bytes_of(l.type());
  if (!l.source(l.operand(1), l.type(), &a) || !l.source(l.operand(2), l.type(), &b)) return false;
  if (!l.predicate(l.operand(3), &p)) return false;
  Handler handler = bytes == 8 ? &run_select<uint64_t> : bytes == 4 ? &run_select<uint32_t> : &run_select<uint16_t>;
  l.emit_value(l.operand(0), bytes, false, handler, a, b, {p, false});
  Op& op = l.program().ops.back();
  op.x = a.uniform;
  op.y = b.uniform;
  return true;
}

bool select_by_sign(Lowering& l) {
  Source a, b;
  uint32_t c;
  uint32_t bytes = ptx::bytes_of(l.type());
  if (!l.source(l.operand(1), l.type(), &a) || !l.source(l.operand(2), l.type(), &b)) return false;
  if (!l.lanes(l.operand(3), l.other_type(), &c)) return false;
  uint32_t zero = 0;
  ptx::Operand zero_operand;
  zero_operand.kind = ptx::OperandKind::Integer;
  if (!l.lanes(zero_operand, l.other_type(), &zero)) return false;
  uint32_t p = l.temporary_predicate();
  Op& test = l.emit(l.other_type() == ptx::Type::f32 ? &run_compare<Compare_ge, float, true, true, true>
                                                     : &run_compare<Compare_ge, int32_t, false, true, true>);
  test.a = c;
  test.b = zero;
  test.d = p;
  Handler handler = bytes == 8 ? &run_select<uint64_t> : bytes == 4 ? &run_select<uint32_t> : &run_select<uint16_t>;
  l.emit_value(l.operand(0), bytes, false, handler, a, b, {p, false});
  Op& op = l.program().ops.back();
  op.x = a.uniform;
  op.y = b.uniform;
  return true;
}

bool predicate_logic(Lowering& l) {
  uint32_t a, b, d;
  if (!l.predicate(l.operand(1), &a) || !l.predicate(l.operand(2), &b) || !l.dest_predicate(l.operand(0), &d))
    return false;
  emit_logic(l, l.ins().mnemonic == "and" ? kAnd : l.ins().mnemonic == "or" ? kOr : kXor, a, false, b, d);
  return true;
}

bool predicate_not(Lowering& l) {
  uint32_t a, d;
  if (!l.predicate(l.operand(1), &a) || !l.dest_predicate(l.operand(0), &d)) return false;
  Op& op = l.emit(&run_copy_predicate);
  op.a = a;
  op.d = d;
  op.y = l.ins().mnemonic == "not";
  return true;
}

}  // namespace kiln::engine
