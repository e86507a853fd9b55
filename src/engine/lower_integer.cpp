// SPDX-License-Identifier: Apache-2.0
// What do the integer instructions compute? (PTX ISA 9.7.1, 9.7.8)
#include <bit>

#include "engine/lanes.h"
#include "engine/lowerings.h"

namespace kiln::engine {

// Unsigned arithmetic of at least 32 bits: wraps as the hardware does, and the compiler may not assume otherwise.
template <Integer T>
using Wrap = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <Integer T>
using Wider =
    std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
                       std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                                          std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

struct Add {
  template <Integer T>
  static T f(T a, T b) {
    return static_cast<T>(static_cast<Wrap<T>>(a) + static_cast<Wrap<T>>(b));
  }
  static U16Pair f(U16Pair a, U16Pair b) { return {f(a.low, b.low), f(a.high, b.high)}; }
  static S16Pair f(S16Pair a, S16Pair b) { return {f(a.low, b.low), f(a.high, b.high)}; }
};
struct Sub {
  template <Integer T>
  static T f(T a, T b) {
    return static_cast<T>(static_cast<Wrap<T>>(a) - static_cast<Wrap<T>>(b));
  }
};
template <class T>
T clamp_to(int64_t value) {
  constexpr int64_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return static_cast<T>(value < low ? low : value > high ? high : value);
}
struct AddSaturating {
  static int32_t f(int32_t a, int32_t b) { return clamp_to<int32_t>(int64_t{a} + b); }
};
struct SubSaturating {
  static int32_t f(int32_t a, int32_t b) { return clamp_to<int32_t>(int64_t{a} - b); }
};
struct MulLow {
  template <Integer T>
  static T f(T a, T b) {
    return static_cast<T>(static_cast<Wrap<T>>(a) * static_cast<Wrap<T>>(b));
  }
};
struct MulHigh {
  template <Integer T>
  static T f(T a, T b) {
    return static_cast<T>((static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b)) >> (sizeof(T) * 8));
  }
};
struct MulWide {
  template <Integer T>
  static Wider<T> f(T a, T b) {
    return static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b);
  }
};
struct MadWide {
  template <Integer T>
  static Wider<T> f(T a, T b, Wider<T> c) {
    return Add::f(static_cast<Wider<T>>(static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b)), c);
  }
};
struct MadLow {
  template <Integer T>
  static T f(T a, T b, T c) {
    return Add::f(MulLow::f(a, b), c);
  }
};
struct MadHigh {
  template <Integer T>
  static T f(T a, T b, T c) {
    return Add::f(MulHigh::f(a, b), c);
  }
};
struct MadHighSaturating {
  static int32_t f(int32_t a, int32_t b, int32_t c) { return AddSaturating::f(MulHigh::f(a, b), c); }
};
// The low 24 bits of each operand; sign-extended for s32.
template <class T>
int64_t low24(T a) {
  uint32_t low = static_cast<uint32_t>(a) & 0xffffffu;
  return std::is_signed_v<T> && (low & 0x800000u) ? int64_t{low} - 0x1000000 : int64_t{low};
}
struct Mul24Low {
  template <Integer T>
  requires(sizeof(T) == 4) static T f(T a, T b) { return static_cast<T>(low24(a) * low24(b)); }
};
struct Mul24High {
  template <Integer T>
  requires(sizeof(T) == 4) static T f(T a, T b) { return static_cast<T>((low24(a) * low24(b)) >> 16); }
};
struct Mad24Low {
  template <Integer T>
  requires(sizeof(T) == 4) static T f(T a, T b, T c) { return Add::f(Mul24Low::f(a, b), c); }
};
struct Sad {
  template <Integer T>
  static T f(T a, T b, T c) {
    return Add::f(c, a < b ? Sub::f(b, a) : Sub::f(a, b));
  }
};
// Division by zero and its remainder give all ones, as on a GPU; nothing traps.
struct Div {
  template <Integer T>
  static T f(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Sub::f(T{0}, a);
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <Integer T>
  static T f(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct Abs {
  template <Integer T>
  static T f(T a) {
    return a < 0 ? Sub::f(T{0}, a) : a;
  }
};
struct Neg {
  template <Integer T>
  static T f(T a) {
    return Sub::f(T{0}, a);
  }
};
struct Min {
  template <Integer T>
  static T f(T a, T b) {
    return a < b ? a : b;
  }
  static U16Pair f(U16Pair a, U16Pair b) { return {f(a.low, b.low), f(a.high, b.high)}; }
  static S16Pair f(S16Pair a, S16Pair b) { return {f(a.low, b.low), f(a.high, b.high)}; }
};
struct Max {
  template <Integer T>
  static T f(T a, T b) {
    return a > b ? a : b;
  }
  static U16Pair f(U16Pair a, U16Pair b) { return {f(a.low, b.low), f(a.high, b.high)}; }
  static S16Pair f(S16Pair a, S16Pair b) { return {f(a.low, b.low), f(a.high, b.high)}; }
};
struct And {
  template <Integer T>
  static T f(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <Integer T>
  static T f(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <Integer T>
  static T f(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <Integer T>
  static T f(T a) {
    return static_cast<T>(~a);
  }
};
struct LogicalNot {
  template <Integer T>
  static T f(T a) {
    return a == 0;
  }
};
struct ReverseBits {
  template <Integer T>
  requires(sizeof(T) >= 4) static T f(T a) {
    uint64_t v = static_cast<uint64_t>(a);
    v = ((v >> 1) & 0x5555555555555555u) | ((v & 0x5555555555555555u) << 1);
    v = ((v >> 2) & 0x3333333333333333u) | ((v & 0x3333333333333333u) << 2);
    v = ((v >> 4) & 0x0f0f0f0f0f0f0f0fu) | ((v & 0x0f0f0f0f0f0f0f0fu) << 4);
    v = __builtin_bswap64(v);
    return static_cast<T>(sizeof(T) == 4 ? v >> 32 : v);
  }
};
struct PopCount {
  template <Integer T>
  static uint32_t f(T a) {
    return static_cast<uint32_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(a)));
  }
};
struct LeadingZeros {
  template <Integer T>
  static uint32_t f(T a) {
    return static_cast<uint32_t>(std::countl_zero(static_cast<std::make_unsigned_t<T>>(a)));
  }
};
// The most significant bit that differs from the sign; 0xffffffff when there is none.
struct FindMost {
  template <Integer T>
  static uint32_t f(T a) {
    using U = std::make_unsigned_t<T>;
    U v = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
    return v == 0 ? ~0u : static_cast<uint32_t>(sizeof(T) * 8 - 1) - static_cast<uint32_t>(std::countl_zero(v));
  }
};
struct FindMostShift {
  template <Integer T>
  static uint32_t f(T a) {
    uint32_t at = FindMost::f(a);
    return at == ~0u ? at : static_cast<uint32_t>(sizeof(T) * 8 - 1) - at;
  }
};
// Counts of the width or more empty the register (or fill it with the sign).
struct ShiftLeft {
  template <Integer T>
  static T f(T a, uint32_t by) {
    return by >= sizeof(T) * 8 ? T{0} : static_cast<T>(static_cast<Wrap<T>>(a) << by);
  }
};
struct ShiftRight {
  template <Integer T>
  static T f(T a, uint32_t by) {
    uint32_t most = sizeof(T) * 8 - 1;
    if (std::is_signed_v<T>) return static_cast<T>(a >> (by > most ? most : by));
    return by > most ? T{0} : static_cast<T>(a >> by);
  }
};

namespace {

// Sources that are scalars or of base and step; at least one is the latter, and products have a scalar factor.
struct AffineOperands {
  AffineTerm terms[3];
  Source lanes[3];
};

bool affine_operands(Lowering& l, const ptx::Type* types, size_t count, uint32_t result_bytes, bool multiplies,
                     AffineOperands* out) {
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
constexpr bool kStaysAffine = std::is_same_v<F, Add> || std::is_same_v<F, Sub> || std::is_same_v<F, MulLow>;

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
      return l.emit_affine(AffineKind::ShiftLeft, bytes, bytes, operands.terms, on_lanes, operands.lanes);
    }
  }
  Source a, by;
  if (!l.source(l.operand(1), l.type(), &a) || !l.source(l.operand(2), ptx::Type::u32, &by)) return false;
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (Integer<T>) {
      l.emit_value(l.operand(0), sizeof(T), a.uniform && by.uniform, binary_handler<F, T, T, uint32_t>(a, by), a, by);
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
    return l.emit_affine(is_signed_type ? AffineKind::MulWideSigned : AffineKind::MulWideUnsigned, 4, 8, operands.terms,
                         on_lanes, operands.lanes);
  }
  Source a, b;
  if (!l.source(l.operand(1), l.type(), &a) || !l.source(l.operand(2), l.type(), &b)) return false;
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (Integer<T> && (sizeof(T) == 2 || sizeof(T) == 4)) {
      l.emit_value(l.operand(0), sizeof(T) * 2, a.uniform && b.uniform, binary_handler<MulWide, Wider<T>, T, T>(a, b),
                   a, b);
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
    Handler on_lanes = is_signed_type ? ternary_handler<MadWide, int64_t, int32_t, int64_t>(x, y, z)
                                      : ternary_handler<MadWide, uint64_t, uint32_t, uint64_t>(x, y, z);
    return l.emit_affine(is_signed_type ? AffineKind::MadWideSigned : AffineKind::MadWideUnsigned, 4, 8, operands.terms,
                         on_lanes, operands.lanes);
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

namespace {

// The carry of each lane is a bit of Warp::carry. op->x: reads it; op->y: writes it.
template <class T, bool kSubtract>
const Op* run_carry(Warp& warp, const Op* op) {
  const T *a = warp.lanes<T>(op->a), *b = warp.lanes<T>(op->b);
  T result[kWarpSize];
  uint32_t carry = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    unsigned __int128 in = op->x ? warp.carry >> i & 1 : 0;
    unsigned __int128 wide =
        kSubtract ? static_cast<unsigned __int128>(a[i]) - b[i] - in : static_cast<unsigned __int128>(a[i]) + b[i] + in;
    result[i] = static_cast<T>(wide);
    carry |= static_cast<uint32_t>(wide >> (sizeof(T) * 8) & 1) << i;
  }
  warp.put(op->d, result);
  if (op->y) warp.carry = (warp.carry & ~warp.mask) | (carry & warp.mask);
  return op + 1;
}

template <class T, bool kHigh>
const Op* run_mad_carry(Warp& warp, const Op* op) {
  using U = std::make_unsigned_t<T>;
  const T *a = warp.lanes<T>(op->a), *b = warp.lanes<T>(op->b);
  const U* c = warp.lanes<U>(op->c);
  U result[kWarpSize];
  uint32_t carry = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    U product = static_cast<U>(kHigh ? MulHigh::f(a[i], b[i]) : MulLow::f(a[i], b[i]));
    unsigned __int128 wide = static_cast<unsigned __int128>(product) + c[i] + (op->x ? warp.carry >> i & 1 : 0);
    result[i] = static_cast<U>(wide);
    carry |= static_cast<uint32_t>(wide >> (sizeof(T) * 8) & 1) << i;
  }
  warp.put(op->d, result);
  if (op->y) warp.carry = (warp.carry & ~warp.mask) | (carry & warp.mask);
  return op + 1;
}

bool lower_carry(Lowering& l, bool subtract) {
  uint32_t a, b;
  Dest d;
  uint32_t bytes = ptx::bytes_of(l.type());
  if (!l.lanes(l.operand(1), l.type(), &a) || !l.lanes(l.operand(2), l.type(), &b)) return false;
  if (!l.dest(l.operand(0), bytes, false, &d)) return false;
  Op& op = l.emit(bytes == 8 ? (subtract ? &run_carry<uint64_t, true> : &run_carry<uint64_t, false>)
                             : (subtract ? &run_carry<uint32_t, true> : &run_carry<uint32_t, false>));
  op.a = a;
  op.b = b;
  op.d = d.offset;
  op.x = l.ins().mnemonic.back() == 'c';
  op.y = l.has("cc");
  return true;
}

}  // namespace

bool add_carry(Lowering& l) { return lower_carry(l, false); }
bool sub_carry(Lowering& l) { return lower_carry(l, true); }

bool mad_carry(Lowering& l) {
  uint32_t a, b, c;
  Dest d;
  if (!l.lanes(l.operand(1), l.type(), &a) || !l.lanes(l.operand(2), l.type(), &b) ||
      !l.lanes(l.operand(3), l.type(), &c)) {
    return false;
  }
  if (!l.dest(l.operand(0), ptx::bytes_of(l.type()), false, &d)) return false;
  bool high = l.has("hi");
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (Integer<T> && sizeof(T) >= 4) {
      Op& op = l.emit(high ? &run_mad_carry<T, true> : &run_mad_carry<T, false>);
      op.a = a;
      op.b = b;
      op.c = c;
      op.d = d.offset;
      op.x = l.ins().mnemonic == "madc";
      op.y = l.has("cc");
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

}  // namespace kiln::engine
