// SPDX-License-Identifier: Apache-2.0
// How is a number written in 16 or 8 bits (f16, bf16, f8e4m3, f8e5m2), and read back? Rounded once,
// to nearest even.
#pragma once

#include <cstdint>

namespace kiln::host {

// An IEEE-like format: one sign bit, then exponent, then mantissa.
struct SmallFloat {
  uint8_t exponent_bits;
  uint8_t mantissa_bits;  // stored ones
  bool has_infinity;  // e4m3fn has none: its greatest exponent holds numbers, all ones is the only
                      // NaN
};

inline constexpr SmallFloat kF16{5, 10, true};
inline constexpr SmallFloat kBF16{8, 7, true};
inline constexpr SmallFloat kF8E5M2{5, 2, true};
inline constexpr SmallFloat kF8E4M3{4, 3, false};

// Too large: infinity, or NaN where the format has no infinity (as torch does; nothing saturates).
// Rounds from double at once: by way of float it would round twice.
uint16_t encode(SmallFloat format, double value);
// Exact.
double decode(SmallFloat format, uint16_t bits);

}  // namespace kiln::host
