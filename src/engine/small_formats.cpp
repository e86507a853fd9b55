// SPDX-License-Identifier: Apache-2.0
// What are the bits of a number in f16, bf16, e4m3 and e5m2, whatever the rounding?
#include "engine/small_formats.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kiln::engine {

double round_to(const Format& format, double value, Rounding rounding) {
  if (value == 0 || value != value || std::isinf(value)) return value;
  int exponent = std::max(std::ilogb(value), format.min_exponent);
  int scale = exponent - (format.precision - 1);
  double quotient = std::ldexp(value, -scale);  // exact: a power of two
  switch (rounding) {
    case Rounding::Near:
      quotient = std::nearbyint(quotient);
      break;
    case Rounding::Zero:
      quotient = std::trunc(quotient);
      break;
    case Rounding::Down:
      quotient = std::floor(quotient);
      break;
    case Rounding::Up:
      quotient = std::ceil(quotient);
      break;
  }
  double result = std::ldexp(quotient, scale);
  if (result == 0) return std::copysign(0.0, value);
  if (std::fabs(result) <= format.largest) return result;
  bool to_infinity = rounding == Rounding::Near || (rounding == Rounding::Up && value > 0) ||
                     (rounding == Rounding::Down && value < 0);
  return std::copysign(to_infinity ? std::numeric_limits<double>::infinity() : format.largest, value);
}

namespace {

// The bits of a value that the format holds exactly.
uint8_t encode(double value, int exponent_bits, int mantissa_bits) {
  uint8_t sign = std::signbit(value) ? 0x80 : 0;
  double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  int bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = std::ilogb(magnitude);
  if (exponent < 1 - bias) {
    return static_cast<uint8_t>(sign | static_cast<uint8_t>(std::ldexp(magnitude, bias - 1 + mantissa_bits)));
  }
  int mantissa = static_cast<int>(std::ldexp(magnitude, mantissa_bits - exponent)) - (1 << mantissa_bits);
  return static_cast<uint8_t>(sign | ((exponent + bias) << mantissa_bits) | mantissa);
}

double decode(uint8_t bits, int exponent_bits, int mantissa_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = (bits & 0x7f) >> mantissa_bits;
  int mantissa = bits & ((1 << mantissa_bits) - 1);
  double magnitude = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                   : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return bits & 0x80 ? -magnitude : magnitude;
}

double saturated(const Format& format, float value) {
  double rounded = round_to(format, value, Rounding::Near);
  return std::clamp(rounded, -format.largest, format.largest);
}

}  // namespace

uint8_t float_to_e4m3(float value) { return value != value ? 0x7f : encode(saturated(kFormatE4m3, value), 4, 3); }
uint8_t float_to_e5m2(float value) { return value != value ? 0x7f : encode(saturated(kFormatE5m2, value), 5, 2); }

float e4m3_to_float(uint8_t bits) {
  if ((bits & 0x7f) == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(decode(bits, 4, 3));
}

float e5m2_to_float(uint8_t bits) {
  uint8_t magnitude = bits & 0x7f;
  if (magnitude > 0x7c) return std::numeric_limits<float>::quiet_NaN();
  if (magnitude == 0x7c)
    return bits & 0x80 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  return static_cast<float>(decode(bits, 5, 2));
}

}  // namespace kiln::engine
