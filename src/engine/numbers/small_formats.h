// SPDX-License-Identifier: Apache-2.0
// How is a number rounded to a binary format with fewer bits, in each of the four directions?
#pragma once

#include <cstdint>

namespace kiln::engine {

enum class Rounding : uint8_t { Near, Zero, Down, Up };

struct Format {
  int precision;     // bits of the significand, including the hidden one
  int min_exponent;  // of the smallest normal number
  double largest;
};
constexpr Format kFormatF32{24, -126, 3.4028234663852886e38};
constexpr Format kFormatF16{11, -14, 65504.0};
constexpr Format kFormatBf16{8, -126, 3.3895313892515355e38};

// Returns infinity if the format overflows in that direction; a NaN or an infinity stays.
double round_to(const Format& format, double value, Rounding rounding);

// Floats of 8, 6 and 4 bits, in the low bits of a byte. Only E5m2 has infinities; those of 6 and 4
// bits have no NaN.
enum class TinyFloat : uint8_t { E4m3, E5m2, E2m3, E3m2, E2m1 };

// Rounds to nearest even. On overflow the result is the largest finite number (.satfinite), because
// PTX has no other form. If the format has no NaN, a NaN becomes the largest number.
uint8_t float_to_tiny(TinyFloat kind, float value);
float tiny_to_float(TinyFloat kind, uint8_t bits);
const float* tiny_floats(TinyFloat kind);  // of all 256 bytes

// ue8m0, a power of two: 2^(bits - 127); 0xff is NaN. The sign is lost. Rounds toward zero or up.
// Above 2^127 the result is NaN, or 2^127 with `saturate`.
uint8_t float_to_scale(float value, bool up, bool saturate);
float scale_to_float(uint8_t bits);

}  // namespace kiln::engine
