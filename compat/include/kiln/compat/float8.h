// SPDX-License-Identifier: Apache-2.0
// What are torch's 8-bit floats? One byte of storage, arithmetic in float. e4m3fn has no infinity:
// what is too large becomes NaN in torch up to 2.12, and 448, the largest value, from 2.13 on.
#pragma once

#include <kiln/compat/types.h>
#if __has_include(<torch/headeronly/version.h>)
#include <torch/headeronly/version.h>
#endif

namespace c10 {
inline namespace kc {
namespace kiln_detail {

// The rounding adds half of the last kept bit, and one more where that bit is odd. Subnormals are
// rounded by an addition, which shifts them to the bottom of a float's mantissa.
inline C10_HOST_DEVICE uint8_t float8_from(float value, uint32_t too_large, uint32_t least_normal,
                                           uint32_t subnormal, int mantissa_bits, uint32_t bias,
                                           uint8_t overflow, uint8_t of_nan) {
  uint32_t bits = float_to_bits(value);
  const uint32_t sign = bits & 0x80000000u;
  bits ^= sign;
  uint8_t result;
  if (bits >= too_large) {
    result = bits > 0x7F800000u ? of_nan : overflow;
  } else if (bits < least_normal) {
    bits = float_to_bits(bits_to_float(bits) + bits_to_float(subnormal));
    result = static_cast<uint8_t>(bits - subnormal);
  } else {
    const int shift = 23 - mantissa_bits;
    const uint32_t odd = (bits >> shift) & 1u;
    bits += ((bias - 127u) << 23) + ((1u << (shift - 1)) - 1u) + odd;
    result = static_cast<uint8_t>(bits >> shift);
  }
  return static_cast<uint8_t>(result | (sign >> 24));
}

#if defined(TORCH_VERSION_MINOR) && TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR >= 213
inline C10_HOST_DEVICE uint8_t float8_e4m3fn_from(float value) {
  const uint8_t x = float8_from(value, 1087u << 20, 121u << 23, 141u << 23, 3, 7, 0x7E, 0x7F);
  // Rounding may reach the bits of NaN.
  const bool is_nan = (float_to_bits(value) & 0x7FFFFFFFu) > 0x7F800000u;
  return !is_nan && (x & 0x7Fu) == 0x7Fu ? static_cast<uint8_t>(x - 1) : x;
}
#else
inline C10_HOST_DEVICE uint8_t float8_e4m3fn_from(float value) {
  return float8_from(value, 1087u << 20, 121u << 23, 141u << 23, 3, 7, 0x7F, 0x7F);
}
#endif

inline C10_HOST_DEVICE float float8_e4m3fn_to_float(uint8_t x) {
  const uint32_t sign = static_cast<uint32_t>(x & 0x80u) << 24, magnitude = x & 0x7Fu;
  if (magnitude == 0x7Fu) return bits_to_float(sign | 0x7FF00000u);
  if (magnitude < 8u) {
    const float small = static_cast<float>(magnitude) * 0.001953125f;  // 2^-9
    return bits_to_float(sign | float_to_bits(small));
  }
  return bits_to_float(sign | ((magnitude << 20) + (120u << 23)));
}

}  // namespace kiln_detail

inline C10_HOST_DEVICE Float8_e4m3fn::Float8_e4m3fn(float value)
    : x(kiln_detail::float8_e4m3fn_from(value)) {}
inline C10_HOST_DEVICE Float8_e4m3fn::operator float() const {
  return kiln_detail::float8_e4m3fn_to_float(x);
}
inline C10_HOST_DEVICE Float8_e5m2::Float8_e5m2(float value)
    : x(kiln_detail::float8_from(value, 143u << 23, 113u << 23, 134u << 23, 2, 15, 0x7C, 0x7F)) {}
inline C10_HOST_DEVICE Float8_e5m2::operator float() const {
  return kiln_detail::half_to_float(
      static_cast<unsigned short>(static_cast<unsigned short>(x) << 8));
}

}  // namespace kc
}  // namespace c10
