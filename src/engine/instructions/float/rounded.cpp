// SPDX-License-Identifier: Apache-2.0
// What do .rz, .rm and .rp compute? (PTX ISA 9.7.3)
#include "engine/instructions/float/rounded.h"

#include <cfenv>
#include <cmath>

#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"

#if defined(__FMA__)
#include <immintrin.h>
#endif

namespace kiln::engine {

namespace {

// The operation on the FPU, and the operands whose NaN is the result.
template <class F, class T>
struct Rounded;

template <class T>
struct Rounded<FloatAdd, T> {
  static T f(T a, T b, T) { return a + b; }
  static T settle(T value, T a, T b, T) { return canonical(value, b, a); }
};
template <class T>
struct Rounded<FloatSub, T> {
  static T f(T a, T b, T) { return a - b; }
  static T settle(T value, T a, T b, T) { return canonical(value, b, a); }
};
template <class T>
struct Rounded<FloatMul, T> {
  static T f(T a, T b, T) { return a * b; }
  static T settle(T value, T a, T b, T) { return canonical(value, b, a); }
};
template <class T>
struct Rounded<FloatDiv, T> {
  static T f(T a, T b, T) { return a / b; }
  static T settle(T value, T a, T b, T) { return canonical(value, a, b); }
};
template <class T>
struct Rounded<Reciprocal, T> {
  static T f(T a, T, T) { return T{1} / a; }
  static T settle(T value, T a, T, T) { return canonical(value, a); }
};
template <class T>
struct Rounded<SquareRoot, T> {
  static T f(T a, T, T) { return std::sqrt(a); }
  static T settle(T value, T a, T, T) { return canonical(value, a); }
};
template <class T>
struct Rounded<Fma, T> {
  static T f(T a, T b, T c) { return std::fma(a, b, c); }
  static T settle(T value, T a, T b, T c) { return canonical(value, b, c, a); }
};

#if defined(__AVX512F__)
// Instructions with their own rounding mode, because changing that of the FPU waits for all running
// instructions. With a mask of all lanes, because the compiler warns about the undefined values of
// the forms without a mask.
#define KILN_ROUNDED_VECTORS(T, V, s, all)                                             \
  template <int kHow>                                                                  \
  V in_vectors(FloatAdd*, V a, V b, V) {                                               \
    return _mm512_maskz_add_round_##s(all, a, b, kHow);                                \
  }                                                                                    \
  template <int kHow>                                                                  \
  V in_vectors(FloatSub*, V a, V b, V) {                                               \
    return _mm512_maskz_sub_round_##s(all, a, b, kHow);                                \
  }                                                                                    \
  template <int kHow>                                                                  \
  V in_vectors(FloatMul*, V a, V b, V) {                                               \
    return _mm512_maskz_mul_round_##s(all, a, b, kHow);                                \
  }                                                                                    \
  template <int kHow>                                                                  \
  V in_vectors(FloatDiv*, V a, V b, V) {                                               \
    return _mm512_maskz_div_round_##s(all, a, b, kHow);                                \
  }                                                                                    \
  template <int kHow>                                                                  \
  V in_vectors(Reciprocal*, V a, V, V) {                                               \
    return _mm512_maskz_div_round_##s(all, _mm512_set1_##s(1), a, kHow);               \
  }                                                                                    \
  template <int kHow>                                                                  \
  V in_vectors(SquareRoot*, V a, V, V) {                                               \
    return _mm512_maskz_sqrt_round_##s(all, a, kHow);                                  \
  }                                                                                    \
  template <int kHow>                                                                  \
  V in_vectors(Fma*, V a, V b, V c) {                                                  \
    return _mm512_fmadd_round_##s(a, b, c, kHow);                                      \
  }                                                                                    \
  template <int kHow, class F>                                                         \
  void in_vectors(const T* a, const T* b, const T* c, T* result) {                     \
    for (uint32_t i = 0; i < kWarpSize; i += sizeof(V) / sizeof(T)) {                  \
      const V of = in_vectors<kHow>(static_cast<F*>(nullptr), _mm512_loadu_##s(a + i), \
                                    _mm512_loadu_##s(b + i), _mm512_loadu_##s(c + i)); \
      _mm512_storeu_##s(result + i, of);                                               \
    }                                                                                  \
  }
KILN_ROUNDED_VECTORS(float, __m512, ps, 0xffff)
KILN_ROUNDED_VECTORS(double, __m512d, pd, 0xff)
#undef KILN_ROUNDED_VECTORS

template <class F, class T>
void compute(int rounding, const T* a, const T* b, const T* c, T* result) {
  if (rounding == FE_TOWARDZERO)
    in_vectors<_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC, F>(a, b, c, result);
  else if (rounding == FE_DOWNWARD)
    in_vectors<_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC, F>(a, b, c, result);
  else
    in_vectors<_MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC, F>(a, b, c, result);
}
#else
// Keeps reads, computations and writes from moving across it. The result is an operand so that the
// compiler must assume that it is observed.
template <class T>
void stay_on_this_side(T* result) {
  asm volatile("" : : "r"(result) : "memory");
}

// The FPU's rounding mode from here to the end of the scope. fesetround() would also set that of
// x87, which takes longer and is not used here. Without FMA the C library does multiply-adds, and
// may ask for the rounding mode.
class RoundingMode {
 public:
  explicit RoundingMode(int rounding) {
#if defined(__FMA__)
    before_ = _mm_getcsr();
    _mm_setcsr((before_ & ~0x6000u) | static_cast<uint32_t>(rounding) << 3);
#else
    std::fesetround(rounding);
#endif
  }
  ~RoundingMode() {
#if defined(__FMA__)
    _mm_setcsr(before_);
#else
    std::fesetround(FE_TONEAREST);
#endif
  }
  RoundingMode(const RoundingMode&) = delete;
  RoundingMode& operator=(const RoundingMode&) = delete;

 private:
  uint32_t before_ = 0;
};

template <class F, class T>
void compute(int rounding, const T* a, const T* b, const T* c, T* result) {
  const RoundingMode mode(rounding);
  stay_on_this_side(result);
  for (uint32_t i = 0; i < kWarpSize; ++i) result[i] = Rounded<F, T>::f(a[i], b[i], c[i]);
  stay_on_this_side(result);
}
#endif

// The rare directed roundings. Op::x: flushes; Op::y: saturates.
template <class F, class T>
const Op* run_rounded(Warp& warp, const Op* op) {
  T result[kWarpSize], ready[3][kWarpSize];
  const T* from[3] = {warp.lanes<T>(op->a), warp.lanes<T>(op->b), warp.lanes<T>(op->c)};
  if (op->x) {
    for (uint32_t k = 0; k < 3; ++k) {
      for (uint32_t i = 0; i < kWarpSize; ++i) ready[k][i] = flush(from[k][i]);
      from[k] = ready[k];
    }
  }
  const T *a = from[0], *b = from[1], *c = from[2];
  compute<F, T>(static_cast<int>(op->imm), a, b, c, result);
  for (uint32_t i = 0; i < kWarpSize; ++i)
    result[i] = Rounded<F, T>::settle(result[i], a[i], b[i], c[i]);
  if (op->x || op->y) {
    for (T& r : result) {
      if (op->x) r = flush(r);
      if (op->y) r = r > 0 ? (r < 1 ? r : T{1}) : T{0};  // .sat; a NaN becomes +0
    }
  }
  warp.put(op->d, result);
  return op + 1;
}

template <class F, class T>
Handler rounded_handler() {
  return &run_rounded<F, T>;
}

}  // namespace

int rounding_of(Lowering& l) {
  return l.has("rz")   ? FE_TOWARDZERO
         : l.has("rm") ? FE_DOWNWARD
         : l.has("rp") ? FE_UPWARD
                       : FE_TONEAREST;
}

template <class F>
requires kRoundsAsAsked<F>
bool lower_rounded(Lowering& l, int rounding) {
  Handler handler = l.type() == ptx::Type::f32   ? rounded_handler<F, float>()
                    : l.type() == ptx::Type::f64 ? rounded_handler<F, double>()
                                                 : nullptr;
  if (!handler) return l.refuse("unsupported rounding for this type");
  uint32_t slots[3] = {0, 0, 0};
  size_t sources = l.ins().operands.size() - 1;
  for (size_t i = 0; i < sources; ++i) {
    if (!l.lanes(l.operand(i + 1), l.type(), &slots[i])) return false;
  }
  for (size_t i = sources; i < 3; ++i) slots[i] = slots[0];
  Dest d;
  if (!l.dest(l.operand(0), ptx::bytes_of(l.type()), false, &d)) return false;
  Op& op = l.emit(handler);
  op.a = slots[0];
  op.b = slots[1];
  op.c = slots[2];
  op.d = d.offset;
  op.imm = rounding;
  op.x = l.has("ftz");
  op.y = l.has("sat");
  return true;
}

void describe_rounded(Meanings& to) {
  const Meaning lanes{Does::Rounded, Number::F32, Number::F32, 3, 7};
  to.add(rounded_handler<FloatAdd, float>(), lanes, {Does::Add});
  to.add(rounded_handler<FloatMul, float>(), lanes, {Does::Mul});
  to.add(rounded_handler<Fma, float>(), lanes, {Does::Mad});
}

template bool lower_rounded<FloatAdd>(Lowering&, int);
template bool lower_rounded<FloatSub>(Lowering&, int);
template bool lower_rounded<FloatMul>(Lowering&, int);
template bool lower_rounded<FloatDiv>(Lowering&, int);
template bool lower_rounded<Reciprocal>(Lowering&, int);
template bool lower_rounded<SquareRoot>(Lowering&, int);
template bool lower_rounded<Fma>(Lowering&, int);

}  // namespace kiln::engine
