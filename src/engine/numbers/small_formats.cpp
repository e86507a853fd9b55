// SPDX-License-Identifier: Apache-2.0
// What are the bits of a number in a format of at most 16 bits?
#include "engine/numbers/small_formats.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
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

constexpr const Layout& layout_of(TinyFloat kind) { return kLayouts[static_cast<unsigned>(kind)]; }
constexpr int bias_of(const Layout& layout) { return (1 << (layout.exponent_bits - 1)) - 1; }
constexpr uint8_t sign_of(const Layout& layout) {
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

constexpr float power_of_two(int exponent) {  // of a normal number
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

constexpr float decode(TinyFloat kind, uint8_t bits) {
  using Limits = std::numeric_limits<float>;
  const int magnitude_bits = bits & 0x7f;
  if (kind == TinyFloat::E4m3 && magnitude_bits == 0x7f) return Limits::quiet_NaN();
  if (kind == TinyFloat::E5m2 && magnitude_bits > 0x7c) return Limits::quiet_NaN();
  if (kind == TinyFloat::E5m2 && magnitude_bits == 0x7c)
    return bits & 0x80 ? -Limits::infinity() : Limits::infinity();
  const Layout& layout = layout_of(kind);
  const int bias = bias_of(layout), mantissa_bits = layout.mantissa_bits;
  const int exponent = (bits & (sign_of(layout) - 1)) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int significand = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  const float magnitude =
      static_cast<float>(significand) * power_of_two(std::max(exponent, 1) - bias - mantissa_bits);
  return bits & sign_of(layout) ? -magnitude : magnitude;
}

constexpr auto kTinyFloats = [] {
  std::array<std::array<float, 256>, std::size(kLayouts)> out{};
  for (size_t kind = 0; kind < out.size(); ++kind) {
    for (uint32_t bits = 0; bits < 256; ++bits)
      out[kind][bits] = decode(static_cast<TinyFloat>(kind), static_cast<uint8_t>(bits));
  }
  return out;
}();

}  // namespace

uint8_t float_to_tiny(TinyFloat kind, float value) {
  const Layout& layout = layout_of(kind);
  if (value != value) return layout.nan;
  const double rounded = round_to(layout.format, value, Rounding::Near),
               largest = layout.format.largest;
  return encode(std::clamp(rounded, -largest, largest), layout);
}

float tiny_to_float(TinyFloat kind, uint8_t bits) { return tiny_floats(kind)[bits]; }

const float* tiny_floats(TinyFloat kind) { return kTinyFloats[static_cast<size_t>(kind)].data(); }

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
