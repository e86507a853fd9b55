// SPDX-License-Identifier: Apache-2.0
// What do the integer instructions compute, on one lane? (PTX ISA 9.7.1, 9.7.8)
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/numbers/numeric.h"

namespace kiln::engine {

// Unsigned arithmetic of at least 32 bits. It wraps like the hardware, and the compiler may not
// assume otherwise.
template <Integer T>
using Wrap = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
template <Integer T>
using Wider = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
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
  static constexpr bool kRare = true;  // lanes.h
  static int32_t f(int32_t a, int32_t b) { return clamp_to<int32_t>(int64_t{a} + b); }
};
struct SubSaturating {
  static constexpr bool kRare = true;  // lanes.h
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
  static constexpr bool kRare = true;  // lanes.h
  static int32_t f(int32_t a, int32_t b, int32_t c) {
    return AddSaturating::f(MulHigh::f(a, b), c);
  }
};
// The low 24 bits of each operand, sign-extended for s32.
template <class T>
int64_t low24(T a) {
  uint32_t low = static_cast<uint32_t>(a) & 0xffffffu;
  return std::is_signed_v<T> && (low & 0x800000u) ? int64_t{low} - 0x1000000 : int64_t{low};
}
struct Mul24Low {
  static constexpr bool kRare = true;  // lanes.h
  template <Integer T>
  requires(sizeof(T) == 4) static T f(T a, T b) { return static_cast<T>(low24(a) * low24(b)); }
};
struct Mul24High {
  static constexpr bool kRare = true;  // lanes.h
  template <Integer T>
  requires(sizeof(T) == 4) static T f(T a, T b) {
    return static_cast<T>((low24(a) * low24(b)) >> 16);
  }
};
struct Mad24Low {
  static constexpr bool kRare = true;  // lanes.h
  template <Integer T>
  requires(sizeof(T) == 4) static T f(T a, T b, T c) { return Add::f(Mul24Low::f(a, b), c); }
};
struct Sad {
  template <Integer T>
  static T f(T a, T b, T c) {
    return Add::f(c, a < b ? Sub::f(b, a) : Sub::f(a, b));
  }
};
// The quotient of 32-bit numbers in f64 is so close to the exact one that no integer lies between
// them. CPUs divide vectors of f64, but not of integers. Above 2^52 the low bits of an f64 are an
// integer.
template <Integer T>
uint32_t quotient_of(T a, T b) {
  const double whole = std::trunc(static_cast<double>(a) / static_cast<double>(b));
  return static_cast<uint32_t>(std::bit_cast<uint64_t>(whole + 0x1.8p52));
}
// Division by zero and its remainder return all ones, as on a GPU; nothing traps.
struct Div {
  template <Integer T>
  static T f(T a, T b) {
    if constexpr (sizeof(T) == 4) {
      const uint32_t none = b == 0 ? ~uint32_t{0} : 0;
      return static_cast<T>(quotient_of(a, b) | none);
    } else {
      if (b == 0) return static_cast<T>(-1);
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Sub::f(T{0}, a);
      return static_cast<T>(a / b);
    }
  }
};
struct Rem {
  template <Integer T>
  static T f(T a, T b) {
    if constexpr (sizeof(T) == 4) {
      const uint32_t none = b == 0 ? ~uint32_t{0} : 0;
      const uint32_t times = quotient_of(a, b) * static_cast<uint32_t>(b);
      return static_cast<T>((static_cast<uint32_t>(a) - times) | none);
    } else {
      if (b == 0) return static_cast<T>(-1);
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
      return static_cast<T>(a % b);
    }
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
// The most significant bit that differs from the sign; 0xffffffff if there is none.
struct FindMost {
  template <Integer T>
  static uint32_t f(T a) {
    using U = std::make_unsigned_t<T>;
    U v = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
    return v == 0 ? ~0u
                  : static_cast<uint32_t>(sizeof(T) * 8 - 1) -
                        static_cast<uint32_t>(std::countl_zero(v));
  }
};
struct FindMostShift {
  template <Integer T>
  static uint32_t f(T a) {
    uint32_t at = FindMost::f(a);
    return at == ~0u ? at : static_cast<uint32_t>(sizeof(T) * 8 - 1) - at;
  }
};
// Counts of the width or more clear the register, or fill it with the sign.
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

}  // namespace kiln::engine
