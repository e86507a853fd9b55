// SPDX-License-Identifier: Apache-2.0
// What do .rz, .rm and .rp compute? (PTX ISA 9.7.3)
#include "engine/instructions/float/rounded.h"

#include <cfenv>
#include <cmath>
#include <cstring>

#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"

namespace kiln::engine {

namespace {

// No read, computation or write moves across it. The result is named, for the compiler
// to know that somebody may look at it.
template <class T>
void stay_on_this_side(T* result) {
  asm volatile("" : : "r"(result) : "memory");
}

// As it is in every exp() of nvcc's: of all lanes, and nothing to flush or to saturate.
template <class T, T (*operation)(T, T, T)>
void compute_plain(Warp& warp, const Op* op) {
  T result[kWarpSize];
  const T *a = warp.lanes<T>(op->a), *b = warp.lanes<T>(op->b), *c = warp.lanes<T>(op->c);
  std::fesetround(static_cast<int>(op->imm));
  stay_on_this_side(result);
  for (uint32_t i = 0; i < kWarpSize; ++i) result[i] = operation(a[i], b[i], c[i]);
  stay_on_this_side(result);
  std::fesetround(FE_TONEAREST);
  std::memcpy(warp.lanes<T>(op->d), result, sizeof result);
}

// The rare directed roundings: the FPU does them.
template <class T, T (*operation)(T, T, T)>
const Op* run_rounded(Warp& warp, const Op* op) {
  if (warp.mask == kFullMask && !op->x && !op->y) {
    compute_plain<T, operation>(warp, op);
    return op + 1;
  }
  T result[kWarpSize];
  const T *a = warp.lanes<T>(op->a), *b = warp.lanes<T>(op->b), *c = warp.lanes<T>(op->c);
  const bool flushes = op->x;
  std::fesetround(static_cast<int>(op->imm));
  stay_on_this_side(result);
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const T x = flushes ? flush(a[i]) : a[i], y = flushes ? flush(b[i]) : b[i],
            z = flushes ? flush(c[i]) : c[i];
    result[i] = operation(x, y, z);
  }
  stay_on_this_side(result);
  std::fesetround(FE_TONEAREST);
  for (T& r : result) {
    if (op->x) r = flush(r);
    if (op->y) r = r > 0 ? (r < 1 ? r : T{1}) : T{0};  // .sat; a NaN becomes +0
  }
  warp.put(op->d, result);
  return op + 1;
}

template <class F, class T>
struct Rounded;  // f: what the FPU computes

template <class T>
struct Rounded<FloatAdd, T> {
  static T f(T a, T b, T) { return canonical(a + b, b, a); }
};
template <class T>
struct Rounded<FloatSub, T> {
  static T f(T a, T b, T) { return canonical(a - b, b, a); }
};
template <class T>
struct Rounded<FloatMul, T> {
  static T f(T a, T b, T) { return canonical(a * b, b, a); }
};
template <class T>
struct Rounded<FloatDiv, T> {
  static T f(T a, T b, T) { return canonical(a / b, a, b); }
};
template <class T>
struct Rounded<Reciprocal, T> {
  static T f(T a, T, T) { return canonical(T{1} / a, a); }
};
template <class T>
struct Rounded<SquareRoot, T> {
  static T f(T a, T, T) { return canonical(std::sqrt(a), a); }
};
template <class T>
struct Rounded<Fma, T> {
  static T f(T a, T b, T c) { return canonical(std::fma(a, b, c), b, c, a); }
};

template <class F, class T>
Handler rounded_handler() {
  return &run_rounded<T, Rounded<F, T>::f>;
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
  const Meaning lanes{Does::Lanewise, Number::F32, Number::F32, 3, 7};
  to.add(rounded_handler<FloatAdd, float>(), lanes);
  to.add(rounded_handler<FloatMul, float>(), lanes);
  to.add(rounded_handler<Fma, float>(), lanes);
}

template bool lower_rounded<FloatAdd>(Lowering&, int);
template bool lower_rounded<FloatSub>(Lowering&, int);
template bool lower_rounded<FloatMul>(Lowering&, int);
template bool lower_rounded<FloatDiv>(Lowering&, int);
template bool lower_rounded<Reciprocal>(Lowering&, int);
template bool lower_rounded<SquareRoot>(Lowering&, int);
template bool lower_rounded<Fma>(Lowering&, int);

}  // namespace kiln::engine
