// SPDX-License-Identifier: Apache-2.0
// How are the integer instructions decoded? (PTX ISA 9.7.1, 9.7.8) Sums, products and shifts of
// base and step remain base and step.
#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/instructions/lowerings.h"
#include "engine/numbers/integer_operations.h"

namespace kiln::engine {

namespace {

// Sources that are scalars, or base and step. At least one is base and step, and products have a
// scalar factor.
struct AffineOperands {
  AffineTerm terms[3];
  Source lanes[3];
};

bool affine_operands(Lowering& l, const ptx::Type* types, size_t count, uint32_t result_bytes,
                     bool multiplies, AffineOperands* out) {
  if (!l.affine_dest(l.operand(0), result_bytes)) return false;
  bool any = false;
  for (size_t i = 0; i < count; ++i) {
    if (ptx::bytes_of(types[i]) < 4) return false;
    if (!l.affine_term(l.operand(i + 1), types[i], &out->terms[i], &out->lanes[i])) return false;
    any |= out->terms[i].affine;
  }
  if (multiplies && out->terms[0].affine && out->terms[1].affine) return false;
  return any;
}

template <class F>
constexpr bool kStaysAffine =
    std::is_same_v<F, Add> || std::is_same_v<F, Sub> || std::is_same_v<F, MulLow>;

}  // namespace

template <class F>
bool unary(Lowering& l) {
  return lower_unary_as<F>(l);
}

template <class F>
bool binary(Lowering& l) {
  if constexpr (kStaysAffine<F>) {
    AffineOperands operands;
    ptx::Type types[] = {l.type(), l.type()};
    uint32_t bytes = ptx::bytes_of(l.type());
    bool packed = ptx::class_of(l.type()) == 'x';
    if (!packed && affine_operands(l, types, 2, bytes, std::is_same_v<F, MulLow>, &operands)) {
      const Source &a = operands.lanes[0], &b = operands.lanes[1];
      Handler on_lanes = bytes == 8 ? binary_handler<F, uint64_t, uint64_t, uint64_t>(a, b)
                                    : binary_handler<F, uint32_t, uint32_t, uint32_t>(a, b);
      AffineKind kind = std::is_same_v<F, Add>   ? AffineKind::Add
                        : std::is_same_v<F, Sub> ? AffineKind::Sub
                                                 : AffineKind::Mul;
      return l.emit_affine(kind, bytes, bytes, operands.terms, on_lanes, operands.lanes);
    }
  }
  return lower_binary_as<F>(l);
}

template <class F>
bool ternary(Lowering& l) {
  if constexpr (std::is_same_v<F, MadLow>) {
    AffineOperands operands;
    ptx::Type types[] = {l.type(), l.type(), l.type()};
    uint32_t bytes = ptx::bytes_of(l.type());
    if (affine_operands(l, types, 3, bytes, true, &operands)) {
      const Source &a = operands.lanes[0], &b = operands.lanes[1], &c = operands.lanes[2];
      Handler on_lanes = bytes == 8 ? ternary_handler<F, uint64_t, uint64_t, uint64_t>(a, b, c)
                                    : ternary_handler<F, uint32_t, uint32_t, uint32_t>(a, b, c);
      return l.emit_affine(AffineKind::Mad, bytes, bytes, operands.terms, on_lanes, operands.lanes);
    }
  }
  return lower_ternary_as<F>(l);
}

template <class F>
bool count(Lowering& l) {
  Source a;
  if (!l.source(l.operand(1), l.type(), &a)) return false;
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (Integer<T>) {
      l.emit_value(l.operand(0), 4, a.uniform, unary_handler<F, uint32_t, T>(a), a);
      return true;
    }
    return false;
  });
}

template <class F>
bool shift(Lowering& l) {
  if constexpr (std::is_same_v<F, ShiftLeft>) {
    AffineOperands operands;
    ptx::Type types[] = {l.type(), ptx::Type::u32};
    uint32_t bytes = ptx::bytes_of(l.type());
    if (affine_operands(l, types, 2, bytes, true, &operands) && !operands.terms[1].affine) {
      const Source &value = operands.lanes[0], &count = operands.lanes[1];
      Handler on_lanes = bytes == 8 ? binary_handler<F, uint64_t, uint64_t, uint32_t>(value, count)
                                    : binary_handler<F, uint32_t, uint32_t, uint32_t>(value, count);
      return l.emit_affine(AffineKind::ShiftLeft, bytes, bytes, operands.terms, on_lanes,
                           operands.lanes);
    }
  }
  Source a, by;
  if (!l.source(l.operand(1), l.type(), &a) || !l.source(l.operand(2), ptx::Type::u32, &by))
    return false;
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (Integer<T>) {
      l.emit_value(l.operand(0), sizeof(T), a.uniform && by.uniform,
                   binary_handler<F, T, T, uint32_t>(a, by), a, by);
      return true;
    }
    return false;
  });
}

bool mul_wide(Lowering& l) {
  AffineOperands operands;
  ptx::Type types[] = {l.type(), l.type()};
  if (affine_operands(l, types, 2, 8, true, &operands)) {
    const Source &x = operands.lanes[0], &y = operands.lanes[1];
    bool is_signed_type = ptx::is_signed(l.type());
    Handler on_lanes = is_signed_type ? binary_handler<MulWide, int64_t, int32_t, int32_t>(x, y)
                                      : binary_handler<MulWide, uint64_t, uint32_t, uint32_t>(x, y);
    return l.emit_affine(is_signed_type ? AffineKind::MulWideSigned : AffineKind::MulWideUnsigned,
                         4, 8, operands.terms, on_lanes, operands.lanes);
  }
  Source a, b;
  if (!l.source(l.operand(1), l.type(), &a) || !l.source(l.operand(2), l.type(), &b)) return false;
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (Integer<T> && (sizeof(T) == 2 || sizeof(T) == 4)) {
      l.emit_value(l.operand(0), sizeof(T) * 2, a.uniform && b.uniform,
                   binary_handler<MulWide, Wider<T>, T, T>(a, b), a, b);
      return true;
    }
    return false;
  });
}

bool mad_wide(Lowering& l) {
  Source a, b, c;
  ptx::Type wide = ptx::bytes_of(l.type()) == 2 ? ptx::Type::b32 : ptx::Type::b64;
  AffineOperands operands;
  ptx::Type types[] = {l.type(), l.type(), wide};
  if (affine_operands(l, types, 3, 8, true, &operands)) {
    const Source &x = operands.lanes[0], &y = operands.lanes[1], &z = operands.lanes[2];
    bool is_signed_type = ptx::is_signed(l.type());
    Handler on_lanes = is_signed_type
                           ? ternary_handler<MadWide, int64_t, int32_t, int64_t>(x, y, z)
                           : ternary_handler<MadWide, uint64_t, uint32_t, uint64_t>(x, y, z);
    return l.emit_affine(is_signed_type ? AffineKind::MadWideSigned : AffineKind::MadWideUnsigned,
                         4, 8, operands.terms, on_lanes, operands.lanes);
  }
  if (!l.source(l.operand(1), l.type(), &a) || !l.source(l.operand(2), l.type(), &b) ||
      !l.source(l.operand(3), wide, &c)) {
    return false;
  }
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (Integer<T> && (sizeof(T) == 2 || sizeof(T) == 4)) {
      l.emit_value(l.operand(0), sizeof(T) * 2, a.uniform && b.uniform && c.uniform,
                   ternary_handler<MadWide, Wider<T>, T, Wider<T>>(a, b, c), a, b, c);
      return true;
    }
    return false;
  });
}

template bool unary<Abs>(Lowering&);
template bool unary<Neg>(Lowering&);
template bool unary<Not>(Lowering&);
template bool unary<LogicalNot>(Lowering&);
template bool unary<ReverseBits>(Lowering&);
template bool count<PopCount>(Lowering&);
template bool count<LeadingZeros>(Lowering&);
template bool count<FindMost>(Lowering&);
template bool count<FindMostShift>(Lowering&);
template bool binary<Add>(Lowering&);
template bool binary<AddSaturating>(Lowering&);
template bool binary<Sub>(Lowering&);
template bool binary<SubSaturating>(Lowering&);
template bool binary<MulLow>(Lowering&);
template bool binary<MulHigh>(Lowering&);
template bool binary<Mul24Low>(Lowering&);
template bool binary<Mul24High>(Lowering&);
template bool binary<Div>(Lowering&);
template bool binary<Rem>(Lowering&);
template bool binary<Min>(Lowering&);
template bool binary<Max>(Lowering&);
template bool binary<And>(Lowering&);
template bool binary<Or>(Lowering&);
template bool binary<Xor>(Lowering&);
template bool ternary<MadLow>(Lowering&);
template bool ternary<MadHigh>(Lowering&);
template bool ternary<MadHighSaturating>(Lowering&);
template bool ternary<Mad24Low>(Lowering&);
template bool ternary<Sad>(Lowering&);
template bool shift<ShiftLeft>(Lowering&);
template bool shift<ShiftRight>(Lowering&);

namespace {

// Operations whose handlers the compiler may call.
template <class T>
void describe_others(Meanings& to) {
  const auto of_words = [](Does does) { return sizeof(T) == 4 ? does : Does::Lanewise; };
  to.binary<MulHigh, T>(of_words(Does::MulHigh));
  to.binary<Div, T>(of_words(Does::Divide));
  to.binary<Rem, T>(of_words(Does::Remainder));
  to.ternary<MadHigh, T>(Does::Lanewise);
  to.unary<ReverseBits, T>(of_words(Does::ReverseBits));
  to.unary<PopCount, uint32_t, T>(of_words(Does::PopCount));
  to.unary<LeadingZeros, uint32_t, T>(of_words(Does::LeadingZeros));
  to.unary<FindMost, uint32_t, T>(Does::Lanewise);
  to.unary<FindMostShift, uint32_t, T>(Does::Lanewise);
  to.ternary<Sad, T>(Does::Lanewise);
  if constexpr (std::is_signed_v<T>) to.unary<Abs, T>(of_words(Does::Absolute));
}

template <class T>
void describe_arithmetic(Meanings& to) {
  to.binary<Add, T>(Does::Add);
  to.binary<Sub, T>(Does::Sub);
  to.binary<MulLow, T>(Does::Mul);
  to.ternary<MadLow, T>(Does::Mad);
  to.binary<And, T>(Does::And);
  to.binary<Or, T>(Does::Or);
  to.binary<Xor, T>(Does::Xor);
  to.binary<Min, T>(Does::Min);
  to.binary<Max, T>(Does::Max);
  to.unary<Not, T>(Does::Not);
  to.unary<Neg, T>(Does::Negate);
  to.binary<ShiftLeft, T, T, uint32_t>(Does::ShiftLeft);
  to.binary<ShiftRight, T, T, uint32_t>(Does::ShiftRight);
}

template <class T>
void describe_words(Meanings& to) {
  describe_others<T>(to);
  describe_arithmetic<T>(to);
}

// With 16 bits.
template <class T>
void describe_halves(Meanings& to) {
  describe_arithmetic<T>(to);
  to.binary<MulWide, Wider<T>, T, T>(Does::MulWide);
}

}  // namespace

void describe_integer(Meanings& to) {
  describe_halves<uint16_t>(to);
  describe_halves<int16_t>(to);
  describe_words<uint32_t>(to);
  describe_words<int32_t>(to);
  describe_words<uint64_t>(to);
  describe_words<int64_t>(to);
  to.binary<MulWide, uint64_t, uint32_t, uint32_t>(Does::MulWide);
  to.binary<MulWide, int64_t, int32_t, int32_t>(Does::MulWide);
  to.ternary<MadWide, uint64_t, uint32_t, uint64_t>(Does::MadWide);
  to.ternary<MadWide, int64_t, int32_t, int64_t>(Does::MadWide);
}

}  // namespace kiln::engine
