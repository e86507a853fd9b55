// SPDX-License-Identifier: Apache-2.0
// What do .rz, .rm and .rp compute? (PTX ISA 9.7.3)
#include "engine/instructions/float/rounded.h"

#include <cfenv>
#include <cmath>

#include "engine/decode/lanes.h"

namespace kiln::engine {

namespace {

// The rare directed roundings: the FPU does them. `volatile` keeps the compiler from computing on
// another side of fesetround.
template <class T, class Operation>
const Op* run_rounded(Warp& warp, const Op* op, Operation operation) {
  T result[kWarpSize];
  const T *a = warp.lanes<T>(op->a), *b = warp.lanes<T>(op->b), *c = warp.lanes<T>(op->c);
  std::fesetround(static_cast<int>(op->imm));
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    volatile T x = op->x ? flush(a[i]) : a[i], y = op->x ? flush(b[i]) : b[i],
               z = op->x ? flush(c[i]) : c[i];
    volatile T r = operation(x, y, z);
    result[i] = r;
  }
  std::fesetround(FE_TONEAREST);
  for (T& r : result) {
    if (op->x) r = flush(r);
    if (op->y) r = r > 0 ? (r < 1 ? r : T{1}) : T{0};  // .sat; a NaN becomes +0
  }
  warp.put(op->d, result);
  return op + 1;
}

template <class T>
Handler rounded_handler(std::string_view mnemonic) {
  if (mnemonic == "add")
    return [](Warp& w, const Op* o) {
      return run_rounded<T>(w, o, [](T a, T b, T) { return canonical(a + b, b, a); });
    };
  if (mnemonic == "sub")
    return [](Warp& w, const Op* o) {
      return run_rounded<T>(w, o, [](T a, T b, T) { return canonical(a - b, b, a); });
    };
  if (mnemonic == "mul")
    return [](Warp& w, const Op* o) {
      return run_rounded<T>(w, o, [](T a, T b, T) { return canonical(a * b, b, a); });
    };
  if (mnemonic == "div")
    return [](Warp& w, const Op* o) {
      return run_rounded<T>(w, o, [](T a, T b, T) { return canonical(a / b, a, b); });
    };
  if (mnemonic == "rcp")
    return [](Warp& w, const Op* o) {
      return run_rounded<T>(w, o, [](T a, T, T) { return canonical(T{1} / a, a); });
    };
  if (mnemonic == "sqrt") {
    return [](Warp& w, const Op* o) {
      return run_rounded<T>(w, o, [](T a, T, T) { return canonical(std::sqrt(a), a); });
    };
  }
  if (mnemonic == "fma" || mnemonic == "mad") {
    return [](Warp& w, const Op* o) {
      return run_rounded<T>(w, o,
                            [](T a, T b, T c) { return canonical(std::fma(a, b, c), b, c, a); });
    };
  }
  return nullptr;
}

}  // namespace

int rounding_of(Lowering& l) {
  return l.has("rz")   ? FE_TOWARDZERO
         : l.has("rm") ? FE_DOWNWARD
         : l.has("rp") ? FE_UPWARD
                       : FE_TONEAREST;
}

bool lower_rounded(Lowering& l, int rounding) {
  Handler handler = l.type() == ptx::Type::f32   ? rounded_handler<float>(l.ins().mnemonic)
                    : l.type() == ptx::Type::f64 ? rounded_handler<double>(l.ins().mnemonic)
                                                 : nullptr;
  if (!handler) return l.refuse("this rounding is not known for this type");
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

}  // namespace kiln::engine
