// SPDX-License-Identifier: Apache-2.0
// How are powers of two, logarithms and sines of a float computed? In f64, to 44 bits, and rounded
// once. Only basic arithmetic is used, so the compiler turns a loop over lanes into vector code,
// and every CPU gives the same bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace kiln::engine {

// a * b + c, rounded once if the CPU has an instruction for it. power_of_two() gives the same float
// both ways: all 2^32 were compared.
[[gnu::always_inline]] inline double term_of(double a, double b, double c) {
#if defined(__FMA__) || defined(__aarch64__)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

// (2^r - 1) / r between -1/2 and 1/2, from the last term to the first: interpolated at the zeros of
// a Chebyshev polynomial.
constexpr double kPowerTerms[] = {0x1.b63880a30e9ffp-24, 0x1.63d136366db24p-20,
                                  0x1.ffcb9515a8016p-17, 0x1.4308ac85aa947p-13,
                                  0x1.5d87fe86fe88ep-10, 0x1.3b2ab7181b755p-7,
                                  0x1.c6b08d7047e52p-5,  0x1.ebfbdff823cedp-3,
                                  0x1.62e42fefa39efp-1,  1.0};

inline float power_of_two(float a) {
  // Beyond these the result is 0 or infinity; comparisons with a NaN are false.
  const double x = a < -200 ? -200.0 : a > 200 ? 200.0 : static_cast<double>(a);
  constexpr double kRound = 0x1.8p52;  // adding it leaves an integer in the low bits
  const double whole = x + kRound;
  const double r = x - (whole - kRound);
  // In pairs of terms that do not wait for each other; one term after the other takes twice as
  // long.
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

// The base-2 logarithm, in the same way, but each product and sum is rounded, so CPUs with and
// without fused ones agree. a is m * 2^k with m near 1, and the logarithm of m is twice the inverse
// hyperbolic tangent of (m - 1) / (m + 1).
inline float logarithm_of_two(float a) {
  const auto bits = std::bit_cast<uint64_t>(static_cast<double>(a));
  constexpr uint64_t kLeast = 0x3fe6a09e667f3bcd, kSign = uint64_t{1} << 63;  // sqrt(1/2)
  const uint64_t biased = (bits - kLeast + kSign) >> 52;                      // k + 2048
  const double k = std::bit_cast<double>(biased | 0x4330000000000000) - (0x1p52 + 2048);
  const double m = std::bit_cast<double>(bits - (biased << 52) + kSign);
  const double t = (m - 1) / (m + 1), t2 = t * t, t4 = t2 * t2;
  const double terms67 = t2 * (1.0 / 15) + 1.0 / 13, terms45 = t2 * (1.0 / 11) + 1.0 / 9;
  const double terms23 = t2 * (1.0 / 7) + 1.0 / 5, terms01 = t2 * (1.0 / 3) + 1.0;
  const double sum = ((terms67 * t4 + terms45) * t4 + terms23) * t4 + terms01;
  constexpr double kTwice = 0x1.71547652b82fep+1;  // 2 / ln 2
  const auto result = static_cast<float>(k + t * sum * kTwice);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float above = a < kInfinity ? result : a;  // for infinity and NaN
  return a > 0 || a != a ? above : a == 0 ? -kInfinity : std::numeric_limits<float>::quiet_NaN();
}
inline double logarithm_of_two(double a) { return std::log2(a); }

// Sines and cosines, in the same way, of angles for which the number of quarter turns times pi / 2
// is exact in f64.
constexpr float kNearAngles = 0x1p20f;
inline bool is_near_angle(float a) { return std::fabs(a) < kNearAngles; }

template <bool kCosine>
inline float near_wave(float a) {
  constexpr double kRound = 0x1.8p52;
  const double x = static_cast<double>(a), turns = x * 0x1.45f306dc9c883p-1 + kRound;  // 2 / pi
  const double n = turns - kRound;
  // pi / 2: 33 bits, and the rest.
  const double r = (x - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34;
  const double r2 = r * r;
  const double sine =
      r +
      r * r2 *
          ((((((1.0 / 6227020800) * r2 - 1.0 / 39916800) * r2 + 1.0 / 362880) * r2 - 1.0 / 5040) *
                r2 +
            1.0 / 120) *
               r2 -
           1.0 / 6);
  const double cosine =
      1 + r2 * (((((((-1.0 / 87178291200) * r2 + 1.0 / 479001600) * r2 - 1.0 / 3628800) * r2 +
                   1.0 / 40320) *
                      r2 -
                  1.0 / 720) *
                     r2 +
                 1.0 / 24) *
                    r2 -
                0.5);
  const uint64_t quarter = std::bit_cast<uint64_t>(turns) + (kCosine ? 1 : 0);
  const auto value = std::bit_cast<uint64_t>(quarter & 1 ? cosine : sine);
  const auto result = static_cast<float>(std::bit_cast<double>(value ^ (quarter & 2) << 62));
  return !kCosine && a == 0 ? a : result;
}

}  // namespace kiln::engine
