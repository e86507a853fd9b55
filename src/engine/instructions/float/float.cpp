// SPDX-License-Identifier: Apache-2.0
// What do the floating-point instructions compute? (PTX ISA 9.7.3 to 9.7.5) IEEE operations are
// exact; .approx ones are more precise than the manual requires.
#include <cfenv>
#include <cmath>

#include "engine/decode/fuse.h"
#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/instructions/float/rounded.h"
#include "engine/instructions/lowerings.h"
#include "engine/machine/access.h"
#include "engine/numbers/exponential.h"

namespace kiln::engine {
namespace {

// f16 and bf16, computed in f32: its 24 bits are enough to round +, -, *, / and sqrt of 11 bits
// only once (24 >= 2 * 11 + 2).
template <SmallFloat T, class Operation>
T through_float(T a, T b, Operation operation) {
  return T::from(operation(static_cast<float>(a), static_cast<float>(b)));
}
template <SmallFloat T, class Operation>
T through_float(T a, Operation operation) {
  return T::from(operation(static_cast<float>(a)));
}

constexpr uint16_t kSmallSign = 0x8000;

template <NativeFloat T>
bool is_nan(T value) {
  return value != value;
}
template <SmallFloat T>
bool is_small_nan(T value) {
  return (value.bits & ~kSmallSign) > T::kInfinity;
}

// -0 is less than +0 in min and max.
template <NativeFloat T>
T smaller(T a, T b) {
  return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <NativeFloat T>
T larger(T a, T b) {
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

// Like canonical(), without a branch, so that a loop over lanes becomes vector code.
template <class... From>
float settled(float value, From...) {
  return canonical(value);
}
uint64_t all_if(bool condition) { return condition ? ~uint64_t{0} : 0; }
uint64_t nan_of() { return 0xfff8000000000000; }
template <class... Rest>
uint64_t nan_of(double first, Rest... rest) {
  constexpr uint64_t kQuiet = 0x0008000000000000;
  const uint64_t others = nan_of(rest...);
  return others ^ ((others ^ (std::bit_cast<uint64_t>(first) | kQuiet)) & all_if(first != first));
}
template <class... From>
double settled(double value, From... from) {
  const auto bits = std::bit_cast<uint64_t>(value);
  return std::bit_cast<double>(bits ^ ((bits ^ nan_of(from...)) & all_if(value != value)));
}

}  // namespace

// After the expression: the operands in the order in which the H200 returns the NaN of one of them
// (f64).
#define KILN_FLOAT_BINARY(Name, expression, ...)                                           \
  struct Name {                                                                            \
    template <NativeFloat T>                                                               \
    static T f(T a, T b) {                                                                 \
      return settled(static_cast<T>(expression), __VA_ARGS__);                             \
    }                                                                                      \
    template <SmallFloat T>                                                                \
    static T f(T x, T y) {                                                                 \
      return through_float(                                                                \
          x, y, [](float a, float b) -> float { return static_cast<float>(expression); }); \
    }                                                                                      \
  };
KILN_FLOAT_BINARY(FloatAdd, a + b, b, a)
KILN_FLOAT_BINARY(FloatSub, a - b, b, a)
KILN_FLOAT_BINARY(FloatMul, a* b, b, a)
KILN_FLOAT_BINARY(FloatDiv, a / b, a, b)
// Like a GPU: a * (1 / b), where the reciprocal of a b above 2^126 is flushed.
KILN_FLOAT_BINARY(DivApproximate,
                  std::fabs(b) > 0x1p126f ? a * std::copysign(decltype(b){0}, b) : a / b, a, b)
KILN_FLOAT_BINARY(FloatMin, is_nan(a) ? b : is_nan(b) ? a : smaller(a, b), b, a)
KILN_FLOAT_BINARY(FloatMax, is_nan(a) ? b : is_nan(b) ? a : larger(a, b), b, a)
KILN_FLOAT_BINARY(MinNan, is_nan(a) || is_nan(b) ? a + b : smaller(a, b), a, b)
KILN_FLOAT_BINARY(MaxNan, is_nan(a) || is_nan(b) ? a + b : larger(a, b), a, b)
#undef KILN_FLOAT_BINARY

struct Fma {
  template <NativeFloat T>
  static T f(T a, T b, T c) {
    return settled(std::fma(a, b, c), b, c, a);
  }
  template <SmallFloat T>
  [[gnu::always_inline]] static T f(T a, T b, T c) {
    // The product is exact in f64. The sum is rounded to odd, so that only the last rounding
    // counts.
    double product =
        static_cast<double>(static_cast<float>(a)) * static_cast<double>(static_cast<float>(b));
    return T::from(narrow_to_odd(add_to_odd(product, static_cast<double>(static_cast<float>(c)))));
  }
};

// A GPU adds -0 to |a| or -a, so a NaN is treated as in an addition.
struct FloatAbs {
  static float f(float a) { return canonical(as_float(as_bits(a) & 0x7fffffffu)); }
  static double f(double a) { return settled(std::fabs(a), a); }
  template <SmallFloat T>
  static T f(T a) {
    return {is_small_nan(a) ? T::kNan : static_cast<uint16_t>(a.bits & ~kSmallSign)};
  }
};
struct FloatNeg {
  static float f(float a) { return canonical(as_float(as_bits(a) ^ 0x80000000u)); }
  static double f(double a) { return settled(-a, a); }
  template <SmallFloat T>
  static T f(T a) {
    return {is_small_nan(a) ? T::kNan : static_cast<uint16_t>(a.bits ^ kSmallSign)};
  }
};

#define KILN_FLOAT_UNARY(Name, expression)                                                      \
  struct Name {                                                                                 \
    template <NativeFloat T>                                                                    \
    static T f(T a) {                                                                           \
      return settled(static_cast<T>(expression), a);                                            \
    }                                                                                           \
    template <SmallFloat T>                                                                     \
    static T f(T x) {                                                                           \
      return through_float(x, [](float a) -> float { return static_cast<float>(expression); }); \
    }                                                                                           \
  };
KILN_FLOAT_UNARY(Reciprocal, 1 / a)
KILN_FLOAT_UNARY(SquareRoot, std::sqrt(a))
KILN_FLOAT_UNARY(ReciprocalRoot, 1 / std::sqrt(static_cast<double>(a)))
KILN_FLOAT_UNARY(Log2, logarithm_of_two(a))
KILN_FLOAT_UNARY(Exp2, power_of_two(a))
KILN_FLOAT_UNARY(Tanh, std::tanh(a))
#undef KILN_FLOAT_UNARY

// sin.approx and cos.approx. Values far from 0 are left to the C library.
template <bool kCosine>
struct Wave {
  static float far(float a) { return canonical(kCosine ? std::cos(a) : std::sin(a)); }
  static float f(float a) { return is_near_angle(a) ? near_wave<kCosine>(a) : far(a); }
  template <SmallFloat T>
  static T f(T x) {
    return T::from(f(static_cast<float>(x)));
  }
};
struct Sine : Wave<false> {
  static float near(float a) { return near_wave<false>(a); }
};
struct Cosine : Wave<true> {
  static float near(float a) { return near_wave<true>(a); }
};

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64: read and write only the high word.
template <class F>
struct OfHighWord {
  static double f(double a) {
    const double result = F::f(of_high_word(a));
    return is_nan(result) ? std::bit_cast<double>(uint64_t{kFloatNan} << 32) : of_high_word(result);
  }
  static double of_high_word(double value) {
    const uint64_t high = std::bit_cast<uint64_t>(value) & 0xffffffff00000000;
    const bool subnormal = (high & 0x7ff0000000000000) == 0;
    return std::bit_cast<double>(subnormal ? high & 0x8000000000000000 : high);
  }
};

namespace {

template <class T>
T saturate(T value) {
  if constexpr (SmallFloat<T>) {
    return T::from(saturate(static_cast<float>(value)));
  } else {
    return value > 0 ? (value < 1 ? value : T{1}) : T{0};  // a NaN becomes +0
  }
}
template <class T>
T relu(T value) {
  if constexpr (SmallFloat<T>) {
    float wide = value;
    return wide != wide ? T{T::kNan} : wide > 0 ? value : T{0};
  } else {
    return value != value ? canonical(value) : value > 0 ? value : T{0};
  }
}

// Of what saturates, the compiler knows only products and fused multiply-adds (describe_float).
template <bool kRare>
struct Rarely {};
template <>
struct Rarely<true> {
  static constexpr bool kRare = true;
};

// F with .ftz, .sat and .relu, on single values and on pairs. With two or three operands, f64 has
// none of these, and only f16 and bf16 have .relu.
template <class F, bool kFlush, bool kSaturate, bool kRelu = false>
struct With : Rarely<kSaturate && !std::is_same_v<F, FloatMul> && !std::is_same_v<F, Fma>> {
  template <class T>
  static constexpr bool kHas = (!std::is_same_v<T, double> || (!kFlush && !kSaturate && !kRelu)) &&
                               (!std::is_same_v<T, float> || !kRelu);
  // Like flush(), without a branch.
  template <AnyFloat T>
  static T flushed(T value) {
    if constexpr (std::is_same_v<T, float>) {
      const uint32_t bits = as_bits(value);
      return as_float(bits & ((bits & 0x7f800000u) == 0 ? 0x80000000u : 0xffffffffu));
    } else {
      return flush(value);
    }
  }
  static constexpr bool kByParts = true;  // each element of a pair by itself
  template <AnyFloat T>
  static T finish(T value) {
    if constexpr (kFlush) value = flushed(value);
    if constexpr (kSaturate) value = saturate(value);
    if constexpr (kRelu) value = relu(value);
    return value;
  }
  template <AnyFloat T>
  static T ready(T value) {
    return kFlush ? flushed(value) : value;
  }
  template <AnyFloat T>
  requires UnaryOn<F, T>
  static T f(T a) { return finish(F::f(ready(a))); }
  template <AnyFloat T>
  requires BinaryOn<F, T> && kHas<T>
  static T f(T a, T b) { return finish(F::f(ready(a), ready(b))); }
  template <AnyFloat T>
  requires TernaryOn<F, T> && kHas<T>
  static T f(T a, T b, T c) { return finish(F::f(ready(a), ready(b), ready(c))); }
  template <SmallFloat T>
  requires UnaryOn<F, T>
  static Pair<T> f(Pair<T> a) { return {f(a.low), f(a.high)}; }
  template <SmallFloat T>
  requires BinaryOn<F, T>
  static Pair<T> f(Pair<T> a, Pair<T> b) { return {f(a.low, b.low), f(a.high, b.high)}; }
  template <SmallFloat T>
  requires TernaryOn<F, T>
  static Pair<T> f(Pair<T> a, Pair<T> b, Pair<T> c) {
    return {f(a.low, b.low, c.low), f(a.high, b.high, c.high)};
  }
};

}  // namespace

namespace {

template <class F>
concept HasNear = requires(float a) {
  F::near(a);
};

// Computes all lanes as if they were near 0, which is vector code, and the others once more.
template <class F, bool kFlush>
const Op* run_near(Warp& warp, const Op* op) {
  using G = With<F, kFlush, false>;
  const float* a = warp.lanes<float>(op->a);
  float* d = warp.lanes<float>(op->d);
  float from[kWarpSize];
  uint32_t is_far = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    from[i] = G::ready(a[i]);
    is_far |= is_near_angle(from[i]) ? 0u : 1u;
  }
  for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = G::finish(F::near(from[i]));
  for (uint32_t i = 0; is_far && i < kWarpSize; ++i) {
    if (!is_near_angle(from[i])) d[i] = G::finish(F::far(from[i]));
  }
  return op + 1;
}

template <HasNear F>
bool lower_near(Lowering& l) {
  Source a;
  if (!l.source(l.operand(1), ptx::Type::f32, &a)) return false;
  const bool flushes = l.has("ftz");
  const Handler handler = a.uniform ? flushes
                                          ? &run_unary<With<F, true, false>, float, float, false>
                                          : &run_unary<With<F, false, false>, float, float, false>
                          : flushes ? &run_near<F, true>
                                    : &run_near<F, false>;
  l.emit_value(l.operand(0), 4, a.uniform, handler, a);
  return true;
}

}  // namespace

template <class F>
bool unary_float(Lowering& l) {
  if constexpr (HasNear<F>) {
    if (l.type() == ptx::Type::f32) return lower_near<F>(l);
  }
  if (l.type() == ptx::Type::f64 && l.has("approx") && l.has("ftz"))
    return lower_unary_as<OfHighWord<F>>(l);
  if (int rounding = rounding_of(l); rounding != FE_TONEAREST) return lower_rounded<F>(l, rounding);
  return l.has("ftz") ? lower_unary_as<With<F, true, false>>(l)
                      : lower_unary_as<With<F, false, false>>(l);
}

template <class F>
bool binary_float(Lowering& l) {
  if constexpr (std::is_same_v<F, FloatDiv>) {
    if (l.has("approx")) return binary_float<DivApproximate>(l);
  }
  if (int rounding = rounding_of(l); rounding != FE_TONEAREST) return lower_rounded<F>(l, rounding);
  if (l.has("sat"))
    return l.has("ftz") ? lower_binary_as<With<F, true, true>>(l)
                        : lower_binary_as<With<F, false, true>>(l);
  return l.has("ftz") ? lower_binary_as<With<F, true, false>>(l)
                      : lower_binary_as<With<F, false, false>>(l);
}

template <class F>
bool ternary_float(Lowering& l) {
  if (int rounding = rounding_of(l); rounding != FE_TONEAREST) return lower_rounded<F>(l, rounding);
  if (l.has("relu")) {
    return l.has("ftz") ? lower_ternary_as<With<F, true, false, true>>(l)
                        : lower_ternary_as<With<F, false, false, true>>(l);
  }
  if (l.has("sat"))
    return l.has("ftz") ? lower_ternary_as<With<F, true, true>>(l)
                        : lower_ternary_as<With<F, false, true>>(l);
  return l.has("ftz") ? lower_ternary_as<With<F, true, false>>(l)
                      : lower_ternary_as<With<F, false, false>>(l);
}

namespace {

struct CopySign {
  // copysign d, a, b: the magnitude of b with the sign of a.
  static float f(float a, float b) {
    return as_float((as_bits(a) & 0x80000000u) | (as_bits(b) & 0x7fffffffu));
  }
  static double f(double a, double b) { return std::copysign(b, a); }
};

template <class T>
const Op* run_test_property(Warp& warp, const Op* op) {
  const T* a = warp.lanes<T>(op->a);
  uint32_t result = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    int kind = std::fpclassify(a[i]);
    bool holds = false;
    switch (op->x) {
      case 0:
        holds = kind != FP_NAN && kind != FP_INFINITE;
        break;
      case 1:
        holds = kind == FP_INFINITE;
        break;
      case 2:
        holds = kind != FP_NAN;
        break;
      case 3:
        holds = kind == FP_NAN;
        break;
      case 4:
        holds = kind == FP_NORMAL || kind == FP_ZERO;
        break;
      case 5:
        holds = kind == FP_SUBNORMAL;
        break;
    }
    result |= static_cast<uint32_t>(holds) << i;
  }
  warp.set_predicate(op->d, result);
  return op + 1;
}

}  // namespace

bool copy_sign(Lowering& l) { return lower_binary_as<CopySign>(l); }

bool test_property(Lowering& l) {
  constexpr std::string_view kProperties[] = {"finite",     "infinite", "number",
                                              "notanumber", "normal",   "subnormal"};
  uint32_t a, d;
  if (!l.lanes(l.operand(1), l.type(), &a) || !l.dest_predicate(l.operand(0), &d)) return false;
  Op& op =
      l.emit(l.type() == ptx::Type::f64 ? &run_test_property<double> : &run_test_property<float>);
  op.a = a;
  op.d = d;
  for (size_t i = 0; i < std::size(kProperties); ++i) {
    if (l.has(kProperties[i])) op.x = static_cast<uint8_t>(i);
  }
  return true;
}

template bool unary_float<FloatAbs>(Lowering&);
template bool unary_float<FloatNeg>(Lowering&);
template bool unary_float<Reciprocal>(Lowering&);
template bool unary_float<SquareRoot>(Lowering&);
template bool unary_float<ReciprocalRoot>(Lowering&);
template bool unary_float<Sine>(Lowering&);
template bool unary_float<Cosine>(Lowering&);
template bool unary_float<Log2>(Lowering&);
template bool unary_float<Exp2>(Lowering&);
template bool unary_float<Tanh>(Lowering&);
template bool binary_float<FloatAdd>(Lowering&);
template bool binary_float<FloatSub>(Lowering&);
template bool binary_float<FloatMul>(Lowering&);
template bool binary_float<FloatDiv>(Lowering&);
template bool binary_float<FloatMin>(Lowering&);
template bool binary_float<FloatMax>(Lowering&);
template bool binary_float<MinNan>(Lowering&);
template bool binary_float<MaxNan>(Lowering&);
template bool ternary_float<Fma>(Lowering&);

namespace {

enum class Where { Any, Shared, Global };

// Where the 32 neighbours are, or null.
template <Where kWhere>
[[gnu::always_inline]] inline const float* neighbours(Warp& warp, const Op* op) {
  if constexpr (kWhere == Where::Global)
    return reinterpret_cast<const float*>(global_neighbours<float, false>(warp, op));
  if constexpr (kWhere == Where::Shared)
    return reinterpret_cast<const float*>(shared_neighbours<float>(warp, op));
  std::byte* at;
  Shape shape = locate_at_once(warp, op, sizeof(float), false, &at);
  return shape == Shape::Contiguous ? reinterpret_cast<const float*>(at) : nullptr;
}

// The load at `op` and the next Op, whose operand kLoaded it is. The other factor is 32 lanes or a
// scalar.
template <class F, int kLoaded, bool kOtherLanes, Where kWhere>
const Op* run_load_ternary(Warp& warp, const Op* op) {
  const float* loaded = neighbours<kWhere>(warp, op);
  if (!loaded) return static_cast<const Op*>(op->data)->run(warp, op);
  const Op* reader = op + 1;
  const float* other = warp.lanes<float>(kLoaded == 0 ? reader->b : reader->a);
  const float* c = warp.lanes<float>(reader->c);
  float* d = warp.lanes<float>(reader->d);
  const float other0 = other[0];
#pragma GCC ivdep
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const float factor = kOtherLanes ? other[i] : other0;
    d[i] = kLoaded == 0 ? F::f(loaded[i], factor, c[i]) : F::f(factor, loaded[i], c[i]);
  }
  return reader + 1;
}

template <class F, int kLoaded, bool kOtherLanes, Where kWhere>
const Op* run_load_binary(Warp& warp, const Op* op) {
  const float* loaded = neighbours<kWhere>(warp, op);
  if (!loaded) return static_cast<const Op*>(op->data)->run(warp, op);
  const Op* reader = op + 1;
  const float* other = warp.lanes<float>(kLoaded == 0 ? reader->b : reader->a);
  float* d = warp.lanes<float>(reader->d);
  const float other0 = other[0];
#pragma GCC ivdep
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const float second = kOtherLanes ? other[i] : other0;
    d[i] = kLoaded == 0 ? F::f(loaded[i], second) : F::f(second, loaded[i]);
  }
  return reader + 1;
}

// The reader has lanes as the loaded operand, and lanes or a scalar as the other one.
template <class F, int kLoaded, bool kOther>
constexpr LoadFusion kTernary = {
    &run_ternary<F, float, float, float, kLoaded == 0 || kOther, kLoaded == 1 || kOther, true>,
    kLoaded, &run_load_ternary<F, kLoaded, kOther, Where::Any>,
    &run_load_ternary<F, kLoaded, kOther, Where::Shared>,
    &run_load_ternary<F, kLoaded, kOther, Where::Global>};
template <class F, int kLoaded, bool kOther>
constexpr LoadFusion kBinary = {
    &run_binary<F, float, float, float, kLoaded == 0 || kOther, kLoaded == 1 || kOther>, kLoaded,
    &run_load_binary<F, kLoaded, kOther, Where::Any>,
    &run_load_binary<F, kLoaded, kOther, Where::Shared>,
    &run_load_binary<F, kLoaded, kOther, Where::Global>};
template <class F>
constexpr LoadFusion kTernaryFusions[4] = {kTernary<F, 0, true>, kTernary<F, 1, true>,
                                           kTernary<F, 0, false>, kTernary<F, 1, false>};
template <class F>
constexpr LoadFusion kBinaryFusions[4] = {kBinary<F, 0, true>, kBinary<F, 1, true>,
                                          kBinary<F, 0, false>, kBinary<F, 1, false>};

}  // namespace

std::span<const LoadFusion> float_load_fusions() {
  static const std::vector<LoadFusion> kRows = [] {
    std::vector<LoadFusion> rows;
    rows.reserve(24);
    auto add = [&](const LoadFusion(&some)[4]) {
      rows.insert(rows.end(), std::begin(some), std::end(some));
    };
    add(kTernaryFusions<With<Fma, false, false>>);
    add(kTernaryFusions<With<Fma, true, false>>);
    add(kBinaryFusions<With<FloatAdd, false, false>>);
    add(kBinaryFusions<With<FloatAdd, true, false>>);
    add(kBinaryFusions<With<FloatMul, false, false>>);
    add(kBinaryFusions<With<FloatMul, true, false>>);
    return rows;
  }();
  return kRows;
}

namespace {

void describe_double(Meanings& to) {
  to.binary<With<FloatAdd, false, false>, double>(Does::Add);
  to.binary<With<FloatSub, false, false>, double>(Does::Sub);
  to.binary<With<FloatMul, false, false>, double>(Does::Mul);
  to.binary<With<FloatDiv, false, false>, double>(Does::Divide);
  to.binary<With<FloatMin, false, false>, double>(Does::Min);
  to.binary<With<FloatMax, false, false>, double>(Does::Max);
  to.ternary<With<Fma, false, false>, double>(Does::Mad);
  to.unary<With<FloatAbs, false, false>, double>(Does::Absolute);
  to.unary<With<FloatNeg, false, false>, double>(Does::Negate);
  to.unary<With<Reciprocal, false, false>, double>(Does::Reciprocal);
  to.unary<With<SquareRoot, false, false>, double>(Does::Root);
  to.unary<With<ReciprocalRoot, false, false>, double>(Does::Lanewise);
  to.unary<OfHighWord<Reciprocal>, double>(Does::Lanewise);
  to.unary<OfHighWord<ReciprocalRoot>, double>(Does::Lanewise);
  to.binary<CopySign, double>(Does::Lanewise);
}

// For single values and pairs.
template <class T>
void describe_small(Meanings& to, Small one, Small two) {
  const auto both = [&]<class F>(F, Does does) {
    to.binary<F, T>(Does::Small, {does, one});
    to.binary<F, Pair<T>>(Does::Small, {does, two});
  };
  both(With<FloatAdd, false, false>{}, Does::Add);
  both(With<FloatSub, false, false>{}, Does::Sub);
  both(With<FloatMul, false, false>{}, Does::Mul);
  both(With<FloatMin, false, false>{}, Does::Min);
  both(With<FloatMax, false, false>{}, Does::Max);
  to.ternary<With<Fma, false, false>, T>(Does::Small, {Does::Mad, one});
  to.ternary<With<Fma, false, false>, Pair<T>>(Does::Small, {Does::Mad, two});
  to.unary<With<FloatNeg, false, false>, T>(Does::Small, {Does::Negate, one});
  to.unary<With<FloatNeg, false, false>, Pair<T>>(Does::Small, {Does::Negate, two});
  to.unary<With<FloatAbs, false, false>, T>(Does::Small, {Does::Absolute, one});
  to.unary<With<FloatAbs, false, false>, Pair<T>>(Does::Small, {Does::Absolute, two});
}

template <bool kFlush>
void describe_single(Meanings& to) {
  const OfFloats how{.flushes = kFlush};
  to.binary<With<FloatAdd, kFlush, false>, float>(Does::Add, how);
  to.binary<With<FloatSub, kFlush, false>, float>(Does::Sub, how);
  to.binary<With<FloatMul, kFlush, false>, float>(Does::Mul, how);
  to.binary<With<FloatDiv, kFlush, false>, float>(Does::Divide, how);
  to.binary<With<FloatMin, kFlush, false>, float>(Does::Min, how);
  to.binary<With<FloatMax, kFlush, false>, float>(Does::Max, how);
  to.binary<With<DivApproximate, kFlush, false>, float>(Does::DivideNearly, how);
  to.ternary<With<Fma, kFlush, false>, float>(Does::Mad, how);
  to.unary<With<FloatAbs, kFlush, false>, float>(Does::Absolute, how);
  to.unary<With<FloatNeg, kFlush, false>, float>(Does::Negate, how);
  to.unary<With<Reciprocal, kFlush, false>, float>(Does::Reciprocal, how);
  to.unary<With<SquareRoot, kFlush, false>, float>(Does::Root, how);
  to.unary<With<ReciprocalRoot, kFlush, false>, float>(Does::ReciprocalRoot, how);
  to.unary<With<Exp2, kFlush, false>, float>(Does::PowerOfTwo, how);
  to.unary<With<Log2, kFlush, false>, float>(Does::Lanewise);
  to.unary<With<Sine, kFlush, false>, float>(Does::Lanewise);
  to.unary<With<Cosine, kFlush, false>, float>(Does::Lanewise);
  to.add(&run_near<Sine, kFlush>, {Does::Lanewise, Number::F32, Number::F32, 1, 1});
  to.add(&run_near<Cosine, kFlush>, {Does::Lanewise, Number::F32, Number::F32, 1, 1});
  to.unary<With<Tanh, kFlush, false>, float>(Does::Lanewise);
  const OfFloats saturating{.flushes = kFlush, .saturates = true};
  to.binary<With<FloatAdd, kFlush, true>, float>(Does::Add, saturating);
  to.binary<With<FloatMul, kFlush, true>, float>(Does::Mul, saturating);
  to.ternary<With<Fma, kFlush, true>, float>(Does::Mad, saturating);
}

}  // namespace

void describe_float(Meanings& to) {
  describe_single<false>(to);
  describe_single<true>(to);
  describe_small<Half>(to, Small::F16, Small::F16x2);
  describe_small<Bf16>(to, Small::Bf16, Small::Bf16x2);
  to.binary<CopySign, float>(Does::CopySign);
  describe_double(to);
  for (const LoadFusion& row : float_load_fusions()) {
    for (Handler both : {row.both, row.both_shared, row.both_global})
      to.add(both, {Does::LoadFused});
  }
}

}  // namespace kiln::engine
