// SPDX-License-Identifier: Apache-2.0
// How does one operation run on 32 lanes? Templates that make handlers from a function of single
// values.
//
// A handler exists for each mix of scalar and lane operands; when all are scalar it computes once.
// Lanes are written in full: under a mask the warp blends them (Effect::Lanes*).
#pragma once

#include <concepts>

#include "engine/decode/lowering.h"
#include "engine/machine/warp.h"
#include "engine/numbers/numeric.h"

namespace kiln::engine {

template <class F, class T>
concept UnaryOn = requires(T a) {
  { F::f(a) } -> std::same_as<T>;
};
template <class F, class T>
concept BinaryOn = requires(T a, T b) {
  { F::f(a, b) } -> std::same_as<T>;
};
template <class F, class T>
concept TernaryOn = requires(T a, T b, T c) {
  { F::f(a, b, c) } -> std::same_as<T>;
};

// Operands either are the very register written or do not overlap it, hence ivdep.
template <class F, class D, class A, bool kLanes>
const Op* run_unary(Warp& warp, const Op* op) {
  D* d = warp.lanes<D>(op->d);
  const A* a = warp.lanes<A>(op->a);
#pragma GCC ivdep
  for (uint32_t i = 0; i < (kLanes ? kWarpSize : 1); ++i) d[i] = F::f(a[i]);
  return op + 1;
}

template <class F, class D, class A, class B, bool kLanesA, bool kLanesB>
const Op* run_binary(Warp& warp, const Op* op) {
  D* d = warp.lanes<D>(op->d);
  const A* a = warp.lanes<A>(op->a);
  const B* b = warp.lanes<B>(op->b);
  if constexpr (!kLanesA && !kLanesB) {
    d[0] = F::f(a[0], b[0]);
  } else if constexpr (!kLanesB) {
    const B b0 = b[0];
#pragma GCC ivdep
    for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = F::f(a[i], b0);
  } else if constexpr (!kLanesA) {
    const A a0 = a[0];
#pragma GCC ivdep
    for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = F::f(a0, b[i]);
  } else {
#pragma GCC ivdep
    for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = F::f(a[i], b[i]);
  }
  return op + 1;
}

template <class F, class D, class A, class C, bool kLanesA, bool kLanesB, bool kLanesC>
const Op* run_ternary(Warp& warp, const Op* op) {
  D* d = warp.lanes<D>(op->d);
  const A* a = warp.lanes<A>(op->a);
  const A* b = warp.lanes<A>(op->b);
  const C* c = warp.lanes<C>(op->c);
  const A a0 = a[0], b0 = b[0];
  const C c0 = c[0];
#pragma GCC ivdep
  for (uint32_t i = 0; i < (kLanesA || kLanesB || kLanesC ? kWarpSize : 1); ++i) {
    d[i] = F::f(kLanesA ? a[i] : a0, kLanesB ? b[i] : b0, kLanesC ? c[i] : c0);
  }
  return op + 1;
}

template <class F, class D, class A>
Handler unary_handler(Source a) {
  return a.uniform ? &run_unary<F, D, A, false> : &run_unary<F, D, A, true>;
}

template <class F, class D, class A, class B>
Handler binary_handler(Source a, Source b) {
  if (a.uniform && b.uniform) return &run_binary<F, D, A, B, false, false>;
  if (a.uniform) return &run_binary<F, D, A, B, false, true>;
  if (b.uniform) return &run_binary<F, D, A, B, true, false>;
  return &run_binary<F, D, A, B, true, true>;
}

template <class F, class D, class A, class C>
Handler ternary_handler(Source a, Source b, Source c) {
  constexpr Handler kTable[8] = {
      &run_ternary<F, D, A, C, false, false, false>, &run_ternary<F, D, A, C, false, false, true>,
      &run_ternary<F, D, A, C, false, true, false>,  &run_ternary<F, D, A, C, false, true, true>,
      &run_ternary<F, D, A, C, true, false, false>,  &run_ternary<F, D, A, C, true, false, true>,
      &run_ternary<F, D, A, C, true, true, false>,   &run_ternary<F, D, A, C, true, true, true>};
  return kTable[(a.uniform ? 0 : 4) + (b.uniform ? 0 : 2) + (c.uniform ? 0 : 1)];
}

// Calls `then` with a value of the C++ type that holds `type`; false when there is none.
template <class Then>
bool with_type(ptx::Type type, Then then) {
  switch (type) {
    case ptx::Type::b8:
    case ptx::Type::u8:
      return then(uint8_t{});
    case ptx::Type::b16:
    case ptx::Type::u16:
      return then(uint16_t{});
    case ptx::Type::b32:
    case ptx::Type::u32:
      return then(uint32_t{});
    case ptx::Type::b64:
    case ptx::Type::u64:
      return then(uint64_t{});
    case ptx::Type::s8:
      return then(int8_t{});
    case ptx::Type::s16:
      return then(int16_t{});
    case ptx::Type::s32:
      return then(int32_t{});
    case ptx::Type::s64:
      return then(int64_t{});
    case ptx::Type::f16:
      return then(Half{});
    case ptx::Type::bf16:
      return then(Bf16{});
    case ptx::Type::f32:
      return then(float{});
    case ptx::Type::f64:
      return then(double{});
    case ptx::Type::f16x2:
      return then(HalfPair{});
    case ptx::Type::bf16x2:
      return then(Bf16Pair{});
    case ptx::Type::u16x2:
      return then(U16Pair{});
    case ptx::Type::s16x2:
      return then(S16Pair{});
    default:
      return false;
  }
}

// d = F(a), d = F(a, b), d = F(a, b, c), all of the instruction's type.
template <class F>
bool lower_unary_as(Lowering& l) {
  Source a;
  if (!l.source(l.operand(1), l.type(), &a)) return false;
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (UnaryOn<F, T>) {
      l.emit_value(l.operand(0), sizeof(T), a.uniform, unary_handler<F, T, T>(a), a);
      return true;
    } else {
      return l.refuse("no such type for this instruction");
    }
  });
}

template <class F>
bool lower_binary_as(Lowering& l) {
  Source a, b;
  if (!l.source(l.operand(1), l.type(), &a) || !l.source(l.operand(2), l.type(), &b)) return false;
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (BinaryOn<F, T>) {
      l.emit_value(l.operand(0), sizeof(T), a.uniform && b.uniform,
                   binary_handler<F, T, T, T>(a, b), a, b);
      return true;
    } else {
      return l.refuse("no such type for this instruction");
    }
  });
}

template <class F>
bool lower_ternary_as(Lowering& l) {
  Source a, b, c;
  if (!l.source(l.operand(1), l.type(), &a) || !l.source(l.operand(2), l.type(), &b) ||
      !l.source(l.operand(3), l.type(), &c)) {
    return false;
  }
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (TernaryOn<F, T>) {
      bool uniform = a.uniform && b.uniform && c.uniform;
      l.emit_value(l.operand(0), sizeof(T), uniform, ternary_handler<F, T, T, T>(a, b, c), a, b, c);
      return true;
    } else {
      return l.refuse("no such type for this instruction");
    }
  });
}

}  // namespace kiln::engine
