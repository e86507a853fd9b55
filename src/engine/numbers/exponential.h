// SPDX-License-Identifier: Apache-2.0
// What is 2 to the power of a float? Rounded once, from a value of f64 that is good to 44 bits, by
// additions and multiplications alone: the compiler turns a loop over lanes into vectors, and every
// CPU gives the same bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace kiln::engine {

inline float power_of_two(float a) {
  // Beyond these it is 0 or infinity; a NaN is neither less nor more.
  const double x = a < -200 ? -200.0 : a > 200 ? 200.0 : static_cast<double>(a);
  constexpr double kRound =
      0x1.8p52;  // what is added to it becomes a whole number, in its low bits
  const double whole = x + kRound;
  const double r = x - (whole - kRound);
  // (2^r - 1) / r between -1/2 and 1/2: through the zeros of a Chebyshev polynomial.
  double sum = 0x1.b63880a30e9ffp-24;
  sum = sum * r + 0x1.63d136366db24p-20;
  sum = sum * r + 0x1.ffcb9515a8016p-17;
  sum = sum * r + 0x1.4308ac85aa947p-13;
  sum = sum * r + 0x1.5d87fe86fe88ep-10;
  sum = sum * r + 0x1.3b2ab7181b755p-7;
  sum = sum * r + 0x1.c6b08d7047e52p-5;
  sum = sum * r + 0x1.ebfbdff823cedp-3;
  sum = sum * r + 0x1.62e42fefa39efp-1;
  sum = sum * r + 1.0;
  const uint64_t exponent = std::bit_cast<uint64_t>(whole) << 52;
  const float result =
      static_cast<float>(std::bit_cast<double>(std::bit_cast<uint64_t>(sum) + exponent));
  return a != a ? a : result;
}
inline double power_of_two(double a) { return std::exp2(a); }

}  // namespace kiln::engine
