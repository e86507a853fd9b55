// SPDX-License-Identifier: Apache-2.0
// How do comparisons compute predicates, or values? (PTX ISA 9.7.6)
#include <utility>

#include "engine/decode/fuse.h"
#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/instructions/compare/predicates.h"
#include "engine/instructions/lowerings.h"
#include "engine/machine/affine.h"
#include "engine/numbers/comparisons.h"

namespace kiln::engine {
namespace {

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
      result |= F::f(comparable<T, kFlush>(kLanesA ? a[i] : a0),
                     comparable<T, kFlush>(kLanesB ? b[i] : b0))
                    ? kLaneBits[i]
                    : 0;
    }
  }
  warp.set_predicate(op->d, result);
  return op + 1;
}

// Like run_binary_mixed (lanes.h).
template <class F, class T>
const Op* run_compare_mixed(Warp& warp, const Op* op) {
  T room_a[kWarpSize], room_b[kWarpSize];
  const T* a = spread(warp.lanes<T>(op->a), op->x & 1, room_a);
  const T* b = spread(warp.lanes<T>(op->b), op->x & 2, room_b);
  uint32_t result = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i)
    result |= F::f(comparable<T, false>(a[i]), comparable<T, false>(b[i])) ? kLaneBits[i] : 0;
  warp.set_predicate(op->d, result);
  return op + 1;
}

template <class F, class T>
Handler compare_handler(bool flushes, Source a, Source b) {
  // The flushing forms are rare: one handler with lanes for both operands does all.
  if constexpr (AnyFloat<T>) {
    if (flushes) return &run_compare<F, T, true, true, true>;
  }
  if (a.uniform && b.uniform) return &run_compare<F, T, false, false, false>;
  if constexpr (kIsRare<F, T>) {
    return &run_compare_mixed<F, T>;
  } else {
    if (a.uniform) return &run_compare<F, T, false, false, true>;
    if (b.uniform) return &run_compare<F, T, false, true, false>;
    return &run_compare<F, T, false, true, true>;
  }
}

template <class T>
Handler compare_named(std::string_view name, bool flushes, Source a, Source b) {
#define KILN_COMPARISON(known, unordered, expression) \
  if (name == #known) return compare_handler<Compare_##known, T>(flushes, a, b);
  KILN_COMPARISONS(KILN_COMPARISON)
#undef KILN_COMPARISON
  return nullptr;
}

// lo, ls, hi, hs are lt, le, gt, ge for unsigned numbers.
std::string_view plain_name(std::string_view name) {
  return name == "lo"   ? "lt"
         : name == "ls" ? "le"
         : name == "hi" ? "gt"
         : name == "hs" ? "ge"
                        : name;
}

// Base and step compared with a scalar: if the first and the last lane agree, all lanes do.
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

// op->a and op->b: the terms. One of them is base and step: the first if kFirst.
template <class F, class T, bool kFirst, bool kRows>
const Op* run_compare_affine(Warp& warp, const Op* op) {
  T first, last;
  const Affine& value = affine_at(warp, kFirst ? op->a : op->b);
  if (kRows ? !affine_bounds<T>(value, &first, &last) : !affine_ends<T>(value, &first, &last))
    return run_compare_on_lanes<F, T>(warp, op);
  const T other = *warp.lanes<T>(kFirst ? op->b : op->a);
  const bool holds = kFirst ? F::f(first, other) : F::f(other, first);
  if (holds != (kFirst ? F::f(last, other) : F::f(other, last)))
    return run_compare_on_lanes<F, T>(warp, op);
  warp.set_predicate(op->d, holds ? kFullMask : 0);
  if (!op->target) return op + 1;
  return holds == (op->y != 0) ? op->target : op + 2;  // the next Op is the branch, fused (fuse.h)
}

template <class T, bool kFirst, bool kRows>
Handler compare_affine_named(std::string_view name) {
  if (name == "lt") return &run_compare_affine<Compare_lt, T, kFirst, kRows>;
  if (name == "le") return &run_compare_affine<Compare_le, T, kFirst, kRows>;
  if (name == "gt") return &run_compare_affine<Compare_gt, T, kFirst, kRows>;
  if (name == "ge") return &run_compare_affine<Compare_ge, T, kFirst, kRows>;
  return nullptr;
}
template <class T>
Handler compare_affine_named(std::string_view name, bool first, bool rows) {
  if (rows)
    return first ? compare_affine_named<T, true, true>(name)
                 : compare_affine_named<T, false, true>(name);
  return first ? compare_affine_named<T, true, false>(name)
               : compare_affine_named<T, false, false>(name);
}

template <class T>
bool is_compare_affine_of(Handler handler) {
  for (std::string_view name : {"lt", "le", "gt", "ge"}) {
    for (bool rows : {false, true}) {
      if (handler == compare_affine_named<T>(name, true, rows) ||
          handler == compare_affine_named<T>(name, false, rows))
        return true;
    }
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

bool emit_compare_affine(Lowering& l, const ptx::Operand& a_operand, const ptx::Operand& b_operand,
                         uint32_t to) {
  AffineCompare how;
  Source a, b;
  if (!l.keeps_steps() || !l.affine_term(a_operand, l.type(), &how.a, &a) ||
      !l.affine_term(b_operand, l.type(), &how.b, &b)) {
    return false;
  }
  if (how.a.affine == how.b.affine) return false;
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (Integer<T> && sizeof(T) >= 4) {
      std::string_view name = plain_name(l.ins().modifiers[0]);
      Handler handler = compare_affine_named<T>(name, how.a.affine, l.variant().narrow_rows());
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

bool emit_compare(Lowering& l, const ptx::Operand& a_operand, const ptx::Operand& b_operand,
                  uint32_t to) {
  if (emit_compare_affine(l, a_operand, b_operand, to)) return true;
  Source a, b;
  bool flushes = l.has("ftz");
  if (flushes) {
    if (!l.lanes(a_operand, l.type(), &a.offset) || !l.lanes(b_operand, l.type(), &b.offset))
      return false;
  } else if (!l.source(a_operand, l.type(), &a) || !l.source(b_operand, l.type(), &b)) {
    return false;
  }
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr ((Integer<T> && sizeof(T) > 1) || AnyFloat<T>) {
      Handler handler = compare_named<T>(plain_name(l.ins().modifiers[0]), flushes, a, b);
      if (!handler) return l.refuse("unknown comparison");
      Op& op = l.emit(handler);
      op.a = a.offset;
      op.b = b.offset;
      op.d = to;
      op.x = static_cast<uint8_t>((a.uniform ? 1 : 0) | (b.uniform ? 2 : 0));
      return true;
    }
    return false;
  });
}

}  // namespace

bool compare(Lowering& l) {
  const auto& operands = l.ins().operands;
  bool two = operands.size() > 1 && (operands[1].kind == ptx::OperandKind::Predicate ||
                                     operands[1].kind == ptx::OperandKind::Sink);
  size_t first = two ? 2 : 1;
  if (operands.size() < first + 2) return l.refuse("it needs two operands");
  bool combined = operands.size() > first + 2;
  uint32_t p = 0, q = 0, c = 0;
  if (!l.dest_predicate(operands[0], &p) || (two && !l.dest_predicate(operands[1], &q)))
    return false;
  if (!two && !combined) return emit_compare(l, operands[first], operands[first + 1], p);
  uint32_t result = l.temporary_predicate();
  if (combined && !l.predicate(operands[first + 2], &c)) return false;
  if (!emit_compare(l, operands[first], operands[first + 1], result)) return false;
  Logic logic = combined ? logic_of(l) : kAnd;
  if (!combined) c = l.constant_predicate(true);
  if (two && p == c) {  // p is written before it is read for q, so keep its old value
    uint32_t kept = l.temporary_predicate();
    emit_copy_predicate(l, c, kept, false);
    c = kept;
  }
  emit_logic(l, logic, result, false, c, p);
  if (two) emit_logic(l, logic, result, true, c, q);
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

namespace {

template <class T>
void describe_comparisons(Meanings& to) {
  for (uint8_t lanes = 0; lanes < 4; ++lanes) {
    const Source a{0, !(lanes & 1)}, b{0, !(lanes & 2)};
    uint8_t comparison = 0;
#define KILN_COMPARISON(name, unordered, expression)               \
  to.add(compare_handler<Compare_##name, T>(false, a, b),          \
         {Does::Compare, number_of<T>(), number_of<T>(), 2, lanes, \
          static_cast<Comparison>(comparison++)});
    KILN_COMPARISONS(KILN_COMPARISON)
#undef KILN_COMPARISON
  }
}

// setp.ftz of f32.
void describe_flushing_comparisons(Meanings& to) {
  uint8_t comparison = 0;
#define KILN_COMPARISON(name, unordered, expression)                                             \
  to.add(compare_handler<Compare_##name, float>(true, {}, {}),                                   \
         {Does::Compare, Number::F32, Number::F32, 2, 3, static_cast<Comparison>(comparison++)}, \
         {.flushes = true});
  KILN_COMPARISONS(KILN_COMPARISON)
#undef KILN_COMPARISON
}

// With 16 bits.
template <class T>
void describe_small_comparisons(Meanings& to) {
  for (uint8_t lanes : {uint8_t{0}, kMixedLanes}) {
    const Source each{0, lanes == 0};
    uint8_t comparison = 0;
#define KILN_COMPARISON(name, unordered, expression)               \
  to.add(compare_handler<Compare_##name, T>(false, each, each),    \
         {Does::Compare, number_of<T>(), number_of<T>(), 2, lanes, \
          static_cast<Comparison>(comparison++)});
    KILN_COMPARISONS(KILN_COMPARISON)
#undef KILN_COMPARISON
  }
}

template <class T>
void describe_affine_comparisons(Meanings& to) {
  constexpr std::pair<std::string_view, Comparison> kKnown[] = {{"lt", Comparison::Lt},
                                                                {"le", Comparison::Le},
                                                                {"gt", Comparison::Gt},
                                                                {"ge", Comparison::Ge}};
  for (const auto& [name, comparison] : kKnown) {
    for (bool first : {false, true}) {
      Meaning meaning{Does::Compare, number_of<T>(), number_of<T>(), 2, 0, comparison};
      meaning.headers = first ? 1 : 2;
      for (bool rows : {false, true}) to.add(compare_affine_named<T>(name, first, rows), meaning);
    }
  }
}

}  // namespace

void describe_compare(Meanings& to) {
  describe_flushing_comparisons(to);
  describe_small_comparisons<uint16_t>(to);
  describe_small_comparisons<int16_t>(to);
  describe_comparisons<uint32_t>(to);
  describe_comparisons<int32_t>(to);
  describe_comparisons<uint64_t>(to);
  describe_comparisons<int64_t>(to);
  describe_comparisons<float>(to);
  describe_comparisons<double>(to);
  describe_affine_comparisons<uint32_t>(to);
  describe_affine_comparisons<int32_t>(to);
  describe_affine_comparisons<uint64_t>(to);
  describe_affine_comparisons<int64_t>(to);
}

}  // namespace kiln::engine
