// SPDX-License-Identifier: Apache-2.0
// Which comparisons exist, and what do they return for two numbers? (PTX ISA 9.7.6)
#pragma once

#include <cstdint>
#include <type_traits>

#include "engine/cuda/limits.h"

namespace kiln::engine {

// X(name, unordered, expression): `unordered` is the result if an operand is a NaN.
// clang-format off
#define KILN_COMPARISONS(X) \
  X(eq, false, a == b)      \
  X(ne, false, a != b)      \
  X(lt, false, a < b)       \
  X(le, false, a <= b)      \
  X(gt, false, a > b)       \
  X(ge, false, a >= b)      \
  X(equ, true, a == b)      \
  X(neu, true, a != b)      \
  X(ltu, true, a < b)       \
  X(leu, true, a <= b)      \
  X(gtu, true, a > b)       \
  X(geu, true, a >= b)      \
  X(num, false, true)       \
  X(nan, true, false)
// clang-format on

#define KILN_COMPARISON(name, unordered, expression)           \
  struct Compare_##name {                                      \
    template <class T>                                         \
    static bool f(T a, T b) {                                  \
      if constexpr (std::is_floating_point_v<T>) {             \
        return unordered ? !(a == a && b == b) || (expression) \
                         : (a == a && b == b) && (expression); \
      } else {                                                 \
        return expression;                                     \
      }                                                        \
    }                                                          \
  };
KILN_COMPARISONS(KILN_COMPARISON)
#undef KILN_COMPARISON

constexpr uint32_t kLaneBits[kWarpSize] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

}  // namespace kiln::engine
