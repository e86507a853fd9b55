// SPDX-License-Identifier: Apache-2.0
// How does one operation run on 32 lanes? Templates make the handlers from a function of single
// values.
//
// There is one handler for each mix of scalar and lane operands; if all are scalars, it computes
// one value. All lanes are written: under a mask, the warp blends them (Effect::Lanes*).
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

// Operands either equal the register that is written or do not overlap it, hence ivdep.
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

// Handlers for each mix of scalars and lanes would be most of the library for small floats, small
// integers and functions that few kernels call. These have one handler for all mixes: Op::x says
// which operands are scalars, and it spreads these first.
template <class F, class T>
constexpr bool kIsRare = sizeof(T) <= 2 || Packed<T> || requires {
  F::kRare;
};

template <class T>
const T* spread(const T* at, bool is_scalar, T (&room)[kWarpSize]) {
  if (!is_scalar) return at;
  const T value = at[0];
  for (T& each : room) each = value;
  return room;
}

// A vector of pairs of small floats is 64 floats in a row. A loop over these becomes vector code; a
// loop over pairs would not.
template <class F, class D, class A>
constexpr bool kByParts = Packed<D>&& std::is_same_v<D, A>&& requires {
  F::kByParts;
};

template <class F, class D>
void run_parts(D* d, const D* a, const D* b) {
  using T = decltype(D::low);
  const auto* x = reinterpret_cast<const T*>(a);
  const auto* y = reinterpret_cast<const T*>(b);
  auto* to = reinterpret_cast<T*>(d);
#pragma GCC ivdep
  for (uint32_t i = 0; i < 2 * kWarpSize; ++i) to[i] = F::f(x[i], y[i]);
}

template <class F, class D>
void run_parts(D* d, const D* a, const D* b, const D* c) {
  using T = decltype(D::low);
  const auto* x = reinterpret_cast<const T*>(a);
  const auto* y = reinterpret_cast<const T*>(b);
  const auto* z = reinterpret_cast<const T*>(c);
  auto* to = reinterpret_cast<T*>(d);
#pragma GCC ivdep
  for (uint32_t i = 0; i < 2 * kWarpSize; ++i) to[i] = F::f(x[i], y[i], z[i]);
}

template <class F, class D, class A, class B>
const Op* run_binary_mixed(Warp& warp, const Op* op) {
  A room_a[kWarpSize];
  B room_b[kWarpSize];
  const A* a = spread(warp.lanes<A>(op->a), op->x & 1, room_a);
  const B* b = spread(warp.lanes<B>(op->b), op->x & 2, room_b);
  D* d = warp.lanes<D>(op->d);
  if constexpr (kByParts<F, D, A> && std::is_same_v<A, B>) {
    run_parts<F>(d, a, b);
  } else {
#pragma GCC ivdep
    for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = F::f(a[i], b[i]);
  }
  return op + 1;
}

template <class F, class D, class A, class C>
const Op* run_ternary_mixed(Warp& warp, const Op* op) {
  A room_a[kWarpSize], room_b[kWarpSize];
  C room_c[kWarpSize];
  const A* a = spread(warp.lanes<A>(op->a), op->x & 1, room_a);
  const A* b = spread(warp.lanes<A>(op->b), op->x & 2, room_b);
  const C* c = spread(warp.lanes<C>(op->c), op->x & 4, room_c);
  D* d = warp.lanes<D>(op->d);
  if constexpr (kByParts<F, D, A> && std::is_same_v<A, C>) {
    run_parts<F>(d, a, b, c);
  } else {
#pragma GCC ivdep
    for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = F::f(a[i], b[i], c[i]);
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
  if constexpr (kIsRare<F, A>) {
    return &run_binary_mixed<F, D, A, B>;
  } else {
    if (a.uniform) return &run_binary<F, D, A, B, false, true>;
    if (b.uniform) return &run_binary<F, D, A, B, true, false>;
    return &run_binary<F, D, A, B, true, true>;
  }
}

template <class F, class D, class A, class C>
Handler ternary_handler(Source a, Source b, Source c) {
  if constexpr (kIsRare<F, A>) {
    const bool uniform = a.uniform && b.uniform && c.uniform;
    return uniform ? &run_ternary<F, D, A, C, false, false, false> : &run_ternary_mixed<F, D, A, C>;
  } else {
    constexpr Handler kTable[8] = {
        &run_ternary<F, D, A, C, false, false, false>, &run_ternary<F, D, A, C, false, false, true>,
        &run_ternary<F, D, A, C, false, true, false>,  &run_ternary<F, D, A, C, false, true, true>,
        &run_ternary<F, D, A, C, true, false, false>,  &run_ternary<F, D, A, C, true, false, true>,
        &run_ternary<F, D, A, C, true, true, false>,   &run_ternary<F, D, A, C, true, true, true>};
    return kTable[(a.uniform ? 0 : 4) + (b.uniform ? 0 : 2) + (c.uniform ? 0 : 1)];
  }
}

// Calls `then` with a value of the C++ type that holds `type`. Returns false if there is none.
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

// The handler of F for this type; null: F has none.
template <class F>
Handler unary_of(ptx::Type type, Source a) {
  Handler found = nullptr;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    if constexpr (UnaryOn<F, T>) found = unary_handler<F, T, T>(a);
    return true;
  });
  return found;
}
template <class F>
Handler binary_of(ptx::Type type, Source a, Source b) {
  Handler found = nullptr;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    if constexpr (BinaryOn<F, T>) found = binary_handler<F, T, T, T>(a, b);
    return true;
  });
  return found;
}
template <class F>
Handler ternary_of(ptx::Type type, Source a, Source b, Source c) {
  Handler found = nullptr;
  with_type(type, [&](auto t) {
    using T = decltype(t);
    if constexpr (TernaryOn<F, T>) found = ternary_handler<F, T, T, T>(a, b, c);
    return true;
  });
  return found;
}

// d = F(a), d = F(a, b), d = F(a, b, c), all of the instruction's type.
template <class F>
bool lower_unary_as(Lowering& l) {
  return l.lower_unary(&unary_of<F>);
}
template <class F>
bool lower_binary_as(Lowering& l) {
  return l.lower_binary(&binary_of<F>);
}
template <class F>
bool lower_ternary_as(Lowering& l) {
  return l.lower_ternary(&ternary_of<F>);
}

}  // namespace kiln::engine
