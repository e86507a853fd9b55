// SPDX-License-Identifier: Apache-2.0
#include "host/small_float.h"

#include <bit>
#include <cmath>
#include <limits>

namespace kiln::host {
namespace {

constexpr int kDoubleMantissa = 52;
constexpr uint64_t kDoubleMantissaMask = (uint64_t{1} << kDoubleMantissa) - 1;

int bias(SmallFloat format) { return (1 << (format.exponent_bits - 1)) - 1; }

// The first magnitude past the finite ones: infinity where there is one, else the NaN.
uint32_t overflow_bits(SmallFloat format) {
  const uint32_t all_ones = (1u << (format.exponent_bits + format.mantissa_bits)) - 1;
  return format.has_infinity ? all_ones & ~((1u << format.mantissa_bits) - 1) : all_ones;
}

uint32_t nan_bits(SmallFloat format) {
  if (!format.has_infinity) return overflow_bits(format);
  return overflow_bits(format) | (1u << (format.mantissa_bits - 1));
}

uint64_t shift_right_to_nearest_even(uint64_t value, int bits) {
  if (bits > kDoubleMantissa + 1) return 0;  // below half of the last place
  const uint64_t quotient = value >> bits;
  const uint64_t rest = value & ((uint64_t{1} << bits) - 1);
  const uint64_t half = uint64_t{1} << (bits - 1);
  return quotient + (rest > half || (rest == half && (quotient & 1)));
}

}  // namespace

uint16_t encode(SmallFloat format, double value) {
  const uint64_t raw = std::bit_cast<uint64_t>(value);
  const uint32_t sign = static_cast<uint32_t>(raw >> 63)
                        << (format.exponent_bits + format.mantissa_bits);
  if (std::isnan(value)) return static_cast<uint16_t>(sign | nan_bits(format));
  if (std::isinf(value)) return static_cast<uint16_t>(sign | overflow_bits(format));
  const int raw_exponent = static_cast<int>(raw >> kDoubleMantissa) & 0x7ff;
  if (raw_exponent == 0)
    return static_cast<uint16_t>(sign);  // a subnormal double is zero in all of these

  const int exponent = raw_exponent - 1023;
  const int least = 1 - bias(format);
  const uint64_t significand = (raw & kDoubleMantissaMask) | (uint64_t{1} << kDoubleMantissa);
  const int below_normal = exponent < least ? least - exponent : 0;
  const uint64_t rounded = shift_right_to_nearest_even(
      significand, kDoubleMantissa - format.mantissa_bits + below_normal);
  // Without its hidden one a normal number is exponent and mantissa side by side: a carry out of
  // the mantissa lands in the exponent, where it belongs. A subnormal has exponent field 0 and no
  // hidden one.
  uint64_t magnitude = rounded;
  if (!below_normal)
    magnitude += (static_cast<uint64_t>(exponent + bias(format)) - 1) << format.mantissa_bits;
  if (magnitude > overflow_bits(format)) magnitude = overflow_bits(format);
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(magnitude));
}

double decode(SmallFloat format, uint16_t bits) {
  const uint32_t magnitude_mask = (1u << (format.exponent_bits + format.mantissa_bits)) - 1;
  const uint32_t magnitude = bits & magnitude_mask;
  const bool negative = bits & (magnitude_mask + 1);
  double value;
  if (magnitude > overflow_bits(format) ||
      (magnitude == overflow_bits(format) && !format.has_infinity)) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (magnitude == overflow_bits(format)) {
    value = std::numeric_limits<double>::infinity();
  } else {
    const int field = static_cast<int>(magnitude >> format.mantissa_bits);
    const uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
    const int exponent = (field ? field : 1) - bias(format) - format.mantissa_bits;
    value = std::ldexp(static_cast<double>(mantissa + (field ? 1u << format.mantissa_bits : 0)),
                       exponent);
  }
  return negative ? -value : value;
}

}  // namespace kiln::host
