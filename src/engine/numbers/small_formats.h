// SPDX-License-Identifier: Apache-2.0
// How is a number rounded to a binary format with fewer bits, in each of the four directions?
#pragma once

#include <cstdint>

namespace kiln::engine {

enum class Rounding : uint8_t { Near, Zero, Down, Up };

struct Format {
  int precision;     // bits of the significand, the hidden one too
  int min_exponent;  // of the smallest normal number
  double largest;
};
constexpr Format kFormatF32{24, -126, 3.4028234663852886e38};
constexpr Format kFormatF16{11, -14, 65504.0};
constexpr Format kFormatBf16{8, -126, 3.3895313892515355e38};

// Infinities where the format overflows in that direction; NaN and infinities stay.
double round_to(const Format& format, double value, Rounding rounding);

// Floats of 8, 6 and 4 bits, in the low bits of a byte. E5m2 alone has infinities; those of 6 and 4
// bits have no NaN.
enum class TinyFloat : uint8_t { E4m3, E5m2, E2m3, E3m2, E2m1 };

// To nearest even; what overflows becomes the largest finite number (.satfinite), as PTX has no
// other form. NaN where the format has none: the largest number.
uint8_t float_to_tiny(TinyFloat kind, float value);
float tiny_to_float(TinyFloat kind, uint8_t bits);
const float* tiny_floats(TinyFloat kind);  // of all 256 bytes

// ue8m0, a power of two: 2^(bits - 127), 0xff is NaN. The sign is lost; toward zero or up. Beyond
// 2^127: NaN, or with `saturate` 2^127.
uint8_t float_to_scale(float value, bool up, bool saturate);
float scale_to_float(uint8_t bits);

}  // namespace kiln::engine
