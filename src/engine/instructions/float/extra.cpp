// SPDX-License-Identifier: Apache-2.0
// What do the newer arithmetic forms compute: with the sign of both operands, three operands, pairs
// of f32, mixed widths?
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings.h"
#include "engine/instructions/lowerings_more.h"
#include "engine/instructions/warp/groups.h"

namespace kiln::engine {
namespace {

float wide(float a) { return a; }
template <SmallFloat T>
float wide(T a) {
  return a;
}
template <class T>
T narrowed(float a) {
  if constexpr (SmallFloat<T>) {
    return T::from(a);
  } else {
    return canonical(a);
  }
}

template <bool kMax>
float pick(float a, float b) {
  const bool first =
      kMax ? a > b || (a == b && !std::signbit(a)) : a < b || (a == b && std::signbit(a));
  return first ? a : b;
}

// If an operand is a NaN: .NaN returns a NaN, otherwise the result is the other operand.
template <bool kMax, bool kNan>
float extreme(float a, float b) {
  if (a != a || b != b) return kNan ? as_float(kFloatNan) : a != a ? b : a;
  return pick<kMax>(a, b);
}

// min.xorsign.abs: the smaller magnitude, with the sign of the product.
template <bool kMax, bool kNan, bool kFlush>
struct SignOfBoth {
  static constexpr bool kRare = true;
  template <class T>
  requires std::is_same_v<T, float> || SmallFloat<T>
  static T f(T a, T b) {
    if (kFlush) a = flush(a), b = flush(b);
    const float x = wide(a), y = wide(b);
    const float result = extreme<kMax, kNan>(std::fabs(x), std::fabs(y));
    if (result != result) return narrowed<T>(result);
    return narrowed<T>(std::signbit(x) != std::signbit(y) ? -result : result);
  }
  template <SmallFloat T>
  static Pair<T> f(Pair<T> a, Pair<T> b) {
    return {f(a.low, b.low), f(a.high, b.high)};
  }
};

template <bool kMax, bool kNan, bool kFlush, bool kAbs>
struct OfThree {
  static constexpr bool kRare = true;
  static float f(float a, float b, float c) {
    auto ready = [](float x) {
      return kAbs ? std::fabs(kFlush ? flush(x) : x) : kFlush ? flush(x) : x;
    };
    return canonical(extreme<kMax, kNan>(extreme<kMax, kNan>(ready(a), ready(b)), ready(c)));
  }
};

template <bool kMax>
struct IntegerRelu {
  static constexpr bool kRare = true;
  static int32_t f(int32_t a, int32_t b) {
    return std::max(kMax ? std::max(a, b) : std::min(a, b), 0);
  }
  static int16_t one(int16_t a, int16_t b) {
    return std::max<int16_t>(kMax ? std::max(a, b) : std::min(a, b), 0);
  }
  static S16Pair f(S16Pair a, S16Pair b) { return {one(a.low, b.low), one(a.high, b.high)}; }
};

struct FloatPair {
  float low, high;
};

template <int kWhat, bool kFlush>  // 0 add, 1 sub, 2 mul, 3 fma
struct OnPairs {
  static float one(float a, float b, float c) {
    if (kFlush) a = flush(a), b = flush(b), c = flush(c);
    float r = kWhat == 0 ? a + b : kWhat == 1 ? a - b : kWhat == 2 ? a * b : std::fma(a, b, c);
    r = canonical(r);
    return kFlush ? flush(r) : r;
  }
  static uint64_t f(uint64_t a, uint64_t b, uint64_t c) {
    const auto x = std::bit_cast<FloatPair>(a), y = std::bit_cast<FloatPair>(b),
               z = std::bit_cast<FloatPair>(c);
    return std::bit_cast<uint64_t>(
        FloatPair{one(x.low, y.low, z.low), one(x.high, y.high, z.high)});
  }
};

}  // namespace

template <class F>
bool sign_of_both(Lowering& l) {
  constexpr bool kMax = std::is_same_v<F, Max>;
  if (l.has("NaN"))
    return l.has("ftz") ? lower_binary_as<SignOfBoth<kMax, true, true>>(l)
                        : lower_binary_as<SignOfBoth<kMax, true, false>>(l);
  return l.has("ftz") ? lower_binary_as<SignOfBoth<kMax, false, true>>(l)
                      : lower_binary_as<SignOfBoth<kMax, false, false>>(l);
}
template bool sign_of_both<Min>(Lowering&);
template bool sign_of_both<Max>(Lowering&);

namespace {

template <bool kMax, bool kNan>
bool of_three_as(Lowering& l) {
  if (l.has("abs")) {
    return l.has("ftz") ? lower_ternary_as<OfThree<kMax, kNan, true, true>>(l)
                        : lower_ternary_as<OfThree<kMax, kNan, false, true>>(l);
  }
  return l.has("ftz") ? lower_ternary_as<OfThree<kMax, kNan, true, false>>(l)
                      : lower_ternary_as<OfThree<kMax, kNan, false, false>>(l);
}

}  // namespace

template <class F>
bool of_three(Lowering& l) {
  constexpr bool kMax = std::is_same_v<F, Max>;
  return l.has("NaN") ? of_three_as<kMax, true>(l) : of_three_as<kMax, false>(l);
}
template bool of_three<Min>(Lowering&);
template bool of_three<Max>(Lowering&);

template <class F>
bool integer_relu(Lowering& l) {
  return lower_binary_as<IntegerRelu<std::is_same_v<F, Max>>>(l);
}
template bool integer_relu<Min>(Lowering&);
template bool integer_relu<Max>(Lowering&);

template <class F>
bool packed_float(Lowering& l) {
  if (l.has("rz") || l.has("rm") || l.has("rp"))
    return l.refuse("unsupported rounding for this type");
  constexpr int kWhat = std::is_same_v<F, FloatAdd>   ? 0
                        : std::is_same_v<F, FloatSub> ? 1
                        : std::is_same_v<F, FloatMul> ? 2
                                                      : 3;
  Source sources[3];
  bool uniform = true;
  for (size_t i = 0; i < 3; ++i) {
    const ptx::Operand& operand = l.operand(i + 1 < l.ins().operands.size() ? i + 1 : 1);
    uint32_t slot;
    if (!l.lanes(operand, ptx::Type::b64, &slot)) return false;
    sources[i] = {slot, false};
    uniform = false;
  }
  constexpr Handler kHandlers[2] = {
      &run_ternary<OnPairs<kWhat, false>, uint64_t, uint64_t, uint64_t, true, true, true>,
      &run_ternary<OnPairs<kWhat, true>, uint64_t, uint64_t, uint64_t, true, true, true>};
  l.emit_value(l.operand(0), 8, uniform, kHandlers[l.has("ftz")], sources[0], sources[1],
               sources[2]);
  return true;
}
template bool packed_float<FloatAdd>(Lowering&);
template bool packed_float<FloatSub>(Lowering&);
template bool packed_float<FloatMul>(Lowering&);
template bool packed_float<Fma>(Lowering&);

namespace {

// add.f32.f16: the small operands are widened, which is exact; the rest is ordinary f32 arithmetic.
struct Mixed {
  uint32_t a = 0, b = 0, c = 0;
  bool brain = false, saturate = false, fused = false, subtract = false;
};

const Op* run_mixed(Warp& warp, const Op* op) {
  const Mixed& how = *static_cast<const Mixed*>(op->data);
  auto small = [&](uint32_t slot, uint32_t i) {
    const uint16_t bits = warp.lanes<uint16_t>(slot)[i];
    return how.brain ? bf16_to_float(bits) : half_to_float(bits);
  };
  float result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const float c = warp.lanes<float>(how.c)[i], a = small(how.a, i);
    float r = how.fused ? std::fma(a, small(how.b, i), c) : how.subtract ? a - c : a + c;
    r = canonical(r);
    if (how.saturate) r = r > 0 ? (r < 1 ? r : 1.0f) : 0.0f;
    result[i] = r;
  }
  warp.put(op->d, result);
  return op + 1;
}

}  // namespace

template <class F>
bool mixed_float(Lowering& l) {
  if (l.has("rz") || l.has("rm") || l.has("rp"))
    return l.refuse("unsupported rounding for mixed types");
  Mixed how;
  how.brain = l.has("bf16");
  how.saturate = l.has("sat");
  how.fused = std::is_same_v<F, Fma>;
  how.subtract = std::is_same_v<F, FloatSub>;
  const auto& operands = l.ins().operands;
  if (operands.size() != (how.fused ? 4u : 3u)) return l.refuse("wrong number of operands");
  if (!l.lanes(operands[1], ptx::Type::b16, &how.a) ||
      !l.lanes(operands.back(), ptx::Type::f32, &how.c))
    return false;
  if (how.fused && !l.lanes(operands[2], ptx::Type::b16, &how.b)) return false;
  Dest d;
  if (!l.dest(operands[0], 4, false, &d)) return false;
  Op& op = l.emit(&run_mixed);
  op.d = d.offset;
  op.data = l.own(how);
  return true;
}
template bool mixed_float<FloatAdd>(Lowering&);
template bool mixed_float<FloatSub>(Lowering&);
template bool mixed_float<Fma>(Lowering&);

namespace {

struct Lookup {
  uint32_t a, b, c, d, predicate, into;
  uint8_t table;
  bool either;  // .or; otherwise .and
  bool writes;
};

const Op* run_lop3_predicate(Warp& warp, const Op* op) {
  const Lookup& how = *static_cast<const Lookup*>(op->data);
  const uint32_t *a = warp.lanes<uint32_t>(how.a), *b = warp.lanes<uint32_t>(how.b),
                 *c = warp.lanes<uint32_t>(how.c);
  uint32_t result[kWarpSize], some = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    uint32_t r = 0;
    for (uint32_t row = 0; row < 8; ++row) {
      if (!(how.table >> row & 1)) continue;
      r |= (row & 4 ? a[i] : ~a[i]) & (row & 2 ? b[i] : ~b[i]) & (row & 1 ? c[i] : ~c[i]);
    }
    result[i] = r;
    some |= r ? 1u << i : 0;
  }
  const uint32_t q = warp.predicate(how.predicate);
  if (how.writes) warp.put(how.d, result);
  warp.set_predicate(how.into, how.either ? some | q : some & q);
  return op + 1;
}

}  // namespace

bool lop3_predicate(Lowering& l) {
  const auto& o = l.ins().operands;
  Lookup how{};
  how.table = static_cast<uint8_t>(o[5].bits);
  how.either = l.has("or");
  how.writes = o[0].kind == ptx::OperandKind::Register;
  Dest d;
  if (!l.lanes(o[2], ptx::Type::b32, &how.a) || !l.lanes(o[3], ptx::Type::b32, &how.b) ||
      !l.lanes(o[4], ptx::Type::b32, &how.c) || !l.predicate(o[6], &how.predicate) ||
      !l.dest_predicate(o[1], &how.into)) {
    return false;
  }
  if (how.writes && !l.dest(o[0], 4, false, &d)) return false;
  how.d = d.offset;
  l.emit(&run_lop3_predicate).data = l.own(how);
  return true;
}

namespace {

struct PackConvert {
  uint32_t a, b, c;
  uint32_t bits;
  int64_t least, most;
  bool of_signed, has_c;
};

// cvt.pack: a is above b; the low part of c is above both if the parts have fewer than 16 bits.
const Op* run_convert_pack(Warp& warp, const Op* op) {
  const PackConvert& how = *static_cast<const PackConvert*>(op->data);
  uint32_t result[kWarpSize];
  const uint32_t mask = how.bits == 32 ? ~0u : (1u << how.bits) - 1;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    auto clamped = [&](uint32_t slot) {
      const uint32_t word = warp.lanes<uint32_t>(slot)[i];
      const int64_t value = how.of_signed ? int64_t{static_cast<int32_t>(word)} : int64_t{word};
      return static_cast<uint32_t>(std::clamp(value, how.least, how.most)) & mask;
    };
    result[i] = clamped(how.a) << how.bits | clamped(how.b);
    if (how.has_c) result[i] |= warp.lanes<uint32_t>(how.c)[i] << (2 * how.bits);
  }
  warp.put(op->d, result);
  return op + 1;
}

}  // namespace

bool convert_pack(Lowering& l) {
  const auto& o = l.ins().operands;
  PackConvert how{};
  const std::string_view to = l.ins().modifiers[2];
  how.bits = to.ends_with("16") ? 16 : to.ends_with("8") ? 8 : to.ends_with("4") ? 4 : 2;
  const bool is_signed = to[0] == 's';
  how.least = is_signed ? -(int64_t{1} << (how.bits - 1)) : 0;
  how.most = is_signed ? (int64_t{1} << (how.bits - 1)) - 1 : (int64_t{1} << how.bits) - 1;
  how.of_signed = l.ins().modifiers[3] == "s32";
  how.has_c = o.size() > 3;
  if (!l.lanes(o[1], ptx::Type::b32, &how.a) || !l.lanes(o[2], ptx::Type::b32, &how.b))
    return false;
  if (how.has_c && !l.lanes(o[3], ptx::Type::b32, &how.c)) return false;
  Dest d;
  if (!l.dest(o[0], 4, false, &d)) return false;
  Op& op = l.emit(&run_convert_pack);
  op.d = d.offset;
  op.data = l.own(how);
  return true;
}

namespace {

template <bool kMax, bool kNan>
const Op* run_reduce_floats(Warp& warp, const Op* op) {
  float value[kWarpSize];
  std::memcpy(value, warp.lanes<float>(op->a), sizeof value);
  const auto ready = [&](uint32_t lane) { return op->x ? std::fabs(value[lane]) : value[lane]; };
  const auto reduce = [&](uint32_t group, uint32_t members) {
    float total = ready(first_member(members));
    for (uint32_t rest = members & (members - 1); rest; rest &= rest - 1)
      total = extreme<kMax, kNan>(total, ready(first_member(rest)));
    for (uint32_t i = 0; i < kWarpSize; ++i) {
      if (group >> i & 1) warp.lanes<float>(op->d)[i] = canonical(total);
    }
  };
  return run_groups(warp, op, value, sizeof(float), reduce);
}

}  // namespace

bool reduce_floats(Lowering& l) {
  uint32_t a, members;
  Dest d;
  if (!l.lanes(l.operand(1), ptx::Type::f32, &a) ||
      !l.lanes(l.operand(2), ptx::Type::b32, &members))
    return false;
  if (!l.dest(l.operand(0), 4, false, &d)) return false;
  const bool max = l.has("max"), nan = l.has("NaN");
  Op& op = l.emit(max ? (nan ? &run_reduce_floats<true, true> : &run_reduce_floats<true, false>)
                      : (nan ? &run_reduce_floats<false, true> : &run_reduce_floats<false, false>));
  op.a = a;
  op.b = members;
  op.d = d.offset;
  op.x = l.has("abs");
  return true;
}

// A policy is a hint, and the engine ignores hints: any value will do.
bool make_policy(Lowering& l) {
  struct None {
    static uint64_t f(uint64_t) { return 0; }
  };
  Source zero{l.constant(0), true};
  l.emit_value(l.operand(0), 8, true, unary_handler<None, uint64_t, uint64_t>(zero), zero);
  return true;
}

namespace {

template <bool kSigned, bool kSaturate>
struct Mad24High {
  static constexpr bool kRare = true;
  static uint32_t f(uint32_t a, uint32_t b, uint32_t c) {
    auto low24 = [](uint32_t x) {
      return kSigned ? int64_t{static_cast<int32_t>(x << 8) >> 8}
                     : static_cast<int64_t>(x & 0xffffff);
    };
    const int64_t high = low24(a) * low24(b) >> 16;
    if (!kSaturate) return static_cast<uint32_t>(high) + c;
    using Limits = std::numeric_limits<int32_t>;
    const int64_t sum = int64_t{static_cast<int32_t>(high)} + static_cast<int32_t>(c);
    return static_cast<uint32_t>(std::clamp<int64_t>(sum, Limits::min(), Limits::max()));
  }
};

}  // namespace

bool mad24_high(Lowering& l) {
  Source s[3];
  for (size_t i = 0; i < 3; ++i) {
    if (!l.source(l.operand(i + 1), l.type(), &s[i])) return false;
  }
  const bool is_signed = ptx::is_signed(l.type());
  Handler handler =
      l.has("sat")
          ? ternary_handler<Mad24High<true, true>, uint32_t, uint32_t, uint32_t>(s[0], s[1], s[2])
      : is_signed
          ? ternary_handler<Mad24High<true, false>, uint32_t, uint32_t, uint32_t>(s[0], s[1], s[2])
          : ternary_handler<Mad24High<false, false>, uint32_t, uint32_t, uint32_t>(s[0], s[1],
                                                                                   s[2]);
  l.emit_value(l.operand(0), 4, s[0].uniform && s[1].uniform && s[2].uniform, handler, s[0], s[1],
               s[2]);
  return true;
}

}  // namespace kiln::engine
