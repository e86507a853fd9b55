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
constexpr Format kFormatE4m3{4, -6, 448.0};
constexpr Format kFormatE5m2{3, -14, 57344.0};

// Infinities where the format overflows in that direction; NaN and infinities stay.
double round_to(const Format& format, double value, Rounding rounding);

// To nearest even; what overflows becomes the largest finite number (.satfinite), as PTX has no other form.
uint8_t float_to_e4m3(float value);
uint8_t float_to_e5m2(float value);
float e4m3_to_float(uint8_t bits);
float e5m2_to_float(uint8_t bits);

}  // namespace kiln::engine
