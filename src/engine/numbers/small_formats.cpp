// SPDX-License-Identifier: Apache-2.0
// What are the bits of a number in a format of at most 16 bits?
#include "engine/numbers/small_formats.h"

#include <algorithm>
#include <bit>
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
  return std::copysign(to_infinity ? std::numeric_limits<double>::infinity() : format.largest,
                       value);
}

namespace {

struct Layout {
  Format format;
  int exponent_bits, mantissa_bits;
  uint8_t nan;  // the bits of a NaN
};
constexpr Layout kLayouts[] = {{{4, -6, 448.0}, 4, 3, 0x7f},
                               {{3, -14, 57344.0}, 5, 2, 0x7f},
                               {{4, 0, 7.5}, 2, 3, 0x1f},
                               {{3, -2, 28.0}, 3, 2, 0x1f},
                               {{2, 0, 6.0}, 2, 1, 0x07}};

const Layout& layout_of(TinyFloat kind) { return kLayouts[static_cast<unsigned>(kind)]; }
int bias_of(const Layout& layout) { return (1 << (layout.exponent_bits - 1)) - 1; }
uint8_t sign_of(const Layout& layout) {
  return static_cast<uint8_t>(1 << (layout.exponent_bits + layout.mantissa_bits));
}

// The bits of a value that is exact in the format.
uint8_t encode(double value, const Layout& layout) {
  uint8_t sign = std::signbit(value) ? sign_of(layout) : 0;
  double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  int bias = bias_of(layout), exponent = std::ilogb(magnitude);
  if (exponent < 1 - bias) {
    return static_cast<uint8_t>(
        sign | static_cast<uint8_t>(std::ldexp(magnitude, bias - 1 + layout.mantissa_bits)));
  }
  int mantissa = static_cast<int>(std::ldexp(magnitude, layout.mantissa_bits - exponent)) -
                 (1 << layout.mantissa_bits);
  return static_cast<uint8_t>(sign | ((exponent + bias) << layout.mantissa_bits) | mantissa);
}

double decode(uint8_t bits, const Layout& layout) {
  int bias = bias_of(layout), mantissa_bits = layout.mantissa_bits;
  int exponent = (bits & (sign_of(layout) - 1)) >> mantissa_bits;
  int mantissa = bits & ((1 << mantissa_bits) - 1);
  double magnitude =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                    : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return bits & sign_of(layout) ? -magnitude : magnitude;
}

}  // namespace

uint8_t float_to_tiny(TinyFloat kind, float value) {
  const Layout& layout = layout_of(kind);
  if (value != value) return layout.nan;
  const double rounded = round_to(layout.format, value, Rounding::Near),
               largest = layout.format.largest;
  return encode(std::clamp(rounded, -largest, largest), layout);
}

float tiny_to_float(TinyFloat kind, uint8_t bits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const uint8_t magnitude = bits & 0x7f;
  if (kind == TinyFloat::E4m3 && magnitude == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  if (kind == TinyFloat::E5m2 && magnitude > 0x7c) return std::numeric_limits<float>::quiet_NaN();
  if (kind == TinyFloat::E5m2 && magnitude == 0x7c) return bits & 0x80 ? -kInfinity : kInfinity;
  return static_cast<float>(decode(bits, layout_of(kind)));
}

uint8_t float_to_scale(float value, bool up, bool saturate) {
  constexpr uint32_t kInfinity = 0x7f800000, kSmallest = 0x00400000;  // 2^-127 is a denormal of f32
  const uint32_t magnitude = std::bit_cast<uint32_t>(value) & 0x7fffffff;
  if (magnitude > kInfinity) return 0xff;
  const bool between =
      (magnitude & 0x007fffff) != 0 && magnitude > kSmallest && magnitude < kInfinity;
  const uint32_t exponent = (magnitude >> 23) + (up && between ? 1 : 0);
  return static_cast<uint8_t>(saturate ? std::min(exponent, 0xfeu) : exponent);
}

float scale_to_float(uint8_t bits) {
  return bits == 0xff ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0f, bits - 127);
}

}  // namespace kiln::engine
