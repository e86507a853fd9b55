// SPDX-License-Identifier: Apache-2.0
// Which element types do matrix products read, and how does an element become a number to sum?
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "engine/numbers/numeric.h"
#include "engine/numbers/small_formats.h"

namespace kiln::engine {

enum class Element : uint8_t {
  F16,
  Bf16,
  Tf32,
  E4m3,
  E5m2,
  E3m2,
  E2m3,
  E2m1,
  S8,
  U8,
  S4,
  U4,
  B1,
  F64
};

inline bool element_named(std::string_view name, Element* out) {
  constexpr std::pair<std::string_view, Element> kNames[] = {
      {"f16", Element::F16},   {"bf16", Element::Bf16}, {"tf32", Element::Tf32},
      {"e4m3", Element::E4m3}, {"e5m2", Element::E5m2}, {"e3m2", Element::E3m2},
      {"e2m3", Element::E2m3}, {"e2m1", Element::E2m1}, {"s8", Element::S8},
      {"u8", Element::U8},     {"s4", Element::S4},     {"u4", Element::U4},
      {"b1", Element::B1},     {"f64", Element::F64}};
  for (auto [known, type] : kNames) {
    if (known == name) {
      *out = type;
      return true;
    }
  }
  return false;
}

inline uint32_t bits_of(Element type) {
  switch (type) {
    case Element::F16:
    case Element::Bf16:
      return 16;
    case Element::Tf32:
      return 32;
    case Element::F64:
      return 64;
    case Element::S4:
    case Element::U4:
      return 4;
    case Element::B1:
      return 1;
    default:
      return 8;
  }
}

inline bool is_integer(Element type) {
  return type == Element::S8 || type == Element::U8 || type == Element::S4 || type == Element::U4 ||
         type == Element::B1;
}

// Element e of a 32-bit word; the lowest bits are element 0.
template <class T>
T element(Element type, uint32_t word, uint32_t e) {
  switch (type) {
    case Element::F16:
      return static_cast<T>(half_to_float(static_cast<uint16_t>(word >> (16 * e))));
    case Element::Bf16:
      return static_cast<T>(bf16_to_float(static_cast<uint16_t>(word >> (16 * e))));
    case Element::Tf32:
      return static_cast<T>(as_float(word & ~0x1fffu));  // the hardware ignores the low bits
    case Element::E4m3:
      return static_cast<T>(tiny_to_float(TinyFloat::E4m3, static_cast<uint8_t>(word >> (8 * e))));
    case Element::E5m2:
      return static_cast<T>(tiny_to_float(TinyFloat::E5m2, static_cast<uint8_t>(word >> (8 * e))));
    case Element::E3m2:
      return static_cast<T>(tiny_to_float(TinyFloat::E3m2, static_cast<uint8_t>(word >> (8 * e))));
    case Element::E2m3:
      return static_cast<T>(tiny_to_float(TinyFloat::E2m3, static_cast<uint8_t>(word >> (8 * e))));
    case Element::E2m1:  // bits 2 to 5 of the byte
      return static_cast<T>(tiny_to_float(TinyFloat::E2m1, word >> (8 * e + 2) & 15));
    case Element::S8:
      return static_cast<T>(static_cast<int8_t>(word >> (8 * e)));
    case Element::S4:
      return static_cast<T>(static_cast<int32_t>(word << (28 - 4 * e)) >> 28);
    case Element::U4:
      return static_cast<T>(word >> (4 * e) & 15);
    case Element::B1:
      return static_cast<T>(word >> e & 1);
    default:
      return static_cast<T>(static_cast<uint8_t>(word >> (8 * e)));
  }
}

// Products of small floats are exact in f32, so rounding once or twice gives the same bits; this
// uses whatever is faster on the CPU.
inline float multiply_add(float a, float b, float c) {
#if defined(__FP_FAST_FMAF)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
inline double multiply_add(double a, double b, double c) { return std::fma(a, b, c); }

}  // namespace kiln::engine
