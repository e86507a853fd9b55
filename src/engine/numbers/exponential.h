// SPDX-License-Identifier: Apache-2.0
// What is 2 to the power of a float? Rounded once, from a value of f64 that is good to 44 bits, by
// additions and multiplications alone: the compiler turns a loop over lanes into vectors, and every
// CPU gives the same bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace kiln::engine {

// a * b + c, rounded once where the CPU has an instruction for it. Of power_of_two() both ways give
// the same float: all 2^32 were compared.
[[gnu::always_inline]] inline double term_of(double a, double b, double c) {
#if defined(__FMA__) || defined(__aarch64__)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

// (2^r - 1) / r between -1/2 and 1/2, from the last term to the first: through the zeros of a
// Chebyshev polynomial.
constexpr double kPowerTerms[] = {0x1.b63880a30e9ffp-24, 0x1.63d136366db24p-20,
                                  0x1.ffcb9515a8016p-17, 0x1.4308ac85aa947p-13,
                                  0x1.5d87fe86fe88ep-10, 0x1.3b2ab7181b755p-7,
                                  0x1.c6b08d7047e52p-5,  0x1.ebfbdff823cedp-3,
                                  0x1.62e42fefa39efp-1,  1.0};

inline float power_of_two(float a) {
  // Beyond these it is 0 or infinity; a NaN is neither less nor more.
  const double x = a < -200 ? -200.0 : a > 200 ? 200.0 : static_cast<double>(a);
  constexpr double kRound =
      0x1.8p52;  // what is added to it becomes a whole number, in its low bits
  const double whole = x + kRound;
  const double r = x - (whole - kRound);
  // In pairs of terms that do not wait for each other: one after the other takes twice as long.
  const double r2 = r * r, r4 = r2 * r2;
  const double terms89 = term_of(kPowerTerms[0], r, kPowerTerms[1]);
  const double terms67 = term_of(kPowerTerms[2], r, kPowerTerms[3]);
  const double terms45 = term_of(kPowerTerms[4], r, kPowerTerms[5]);
  const double terms23 = term_of(kPowerTerms[6], r, kPowerTerms[7]);
  const double terms01 = term_of(kPowerTerms[8], r, kPowerTerms[9]);
  const double high = term_of(terms89, r2, terms67), low = term_of(terms45, r2, terms23);
  const double sum = term_of(term_of(high, r4, low), r2, terms01);
  const uint64_t exponent = std::bit_cast<uint64_t>(whole) << 52;
  const float result =
      static_cast<float>(std::bit_cast<double>(std::bit_cast<uint64_t>(sum) + exponent));
  return a != a ? a : result;
}
inline double power_of_two(double a) { return std::exp2(a); }

}  // namespace kiln::engine
