// SPDX-License-Identifier: Apache-2.0
// Which number types do lanes hold, and how are the small floats converted? With the same bits as
// on a GPU.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace kiln::engine {

inline float as_float(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t as_bits(float value) { return std::bit_cast<uint32_t>(value); }

// f16 to f32, which is exact.
inline float half_to_float(uint16_t h) {
#if defined(__aarch64__)
  return static_cast<float>(std::bit_cast<__fp16>(h));
#else
  uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  uint32_t rest = static_cast<uint32_t>(h & 0x7fffu) << 13;
  uint32_t exponent = rest & 0x0f800000u;
  uint32_t normal = rest + 0x38000000u;
  uint32_t special = rest + 0x70000000u;  // infinity and NaN
  uint32_t subnormal = as_bits(as_float(rest + 0x38800000u) - as_float(0x38800000u));
  uint32_t bits = exponent == 0x0f800000u ? special : exponent == 0 ? subnormal : normal;
  return as_float(sign | bits);
#endif
}

// The NaN that conversions to small floats return on NVIDIA GPUs.
constexpr uint16_t kHalfNan = 0x7fff;
constexpr uint32_t kFloatNan = 0x7fffffff;

// Rounds to nearest even.
inline uint16_t float_to_half(float value) {
  const uint32_t bits = as_bits(value), magnitude = bits & 0x7fffffffu;
#if defined(__aarch64__)
  const uint32_t result = std::bit_cast<uint16_t>(static_cast<__fp16>(value));
#else
  // Without a branch, so that a loop over lanes becomes vector code. Below the smallest normal
  // number, adding 0.5 leaves the mantissa of the result, rounded by the FPU, in the low bits.
  const uint32_t subnormal = as_bits(as_float(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  const uint32_t rounded = magnitude < 0x38800000u    ? subnormal
                           : magnitude >= 0x477ff000u ? 0x7c00u  // 65520 and above
                                                      : normal;
  const uint32_t result = rounded | (bits >> 16 & 0x8000u);
#endif
  return static_cast<uint16_t>(magnitude > 0x7f800000u ? kHalfNan : result);
}

inline float bf16_to_float(uint16_t b) { return as_float(static_cast<uint32_t>(b) << 16); }

inline uint16_t float_to_bf16(float value) {
  const uint32_t bits = as_bits(value);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? kHalfNan : rounded);
}

// A sum of f64, rounded to odd: a second rounding, to a format of at most 51 bits, then gives the
// same result as rounding once. Without a branch, as above.
[[gnu::always_inline]] inline double add_to_odd(double a, double b) {
  const double sum = a + b;
  const double b_seen = sum - a;
  const double error = (a - (sum - b_seen)) + (b - b_seen);
  const uint64_t bits = std::bit_cast<uint64_t>(sum);
  const uint64_t up = error > 0 ? 1 : 0, down = error < 0 ? 1 : 0;  // infinity: a NaN
  const uint64_t is_negative = bits >> 63, is_even = ~bits & 1;
  const uint64_t away = is_negative ? down : up, back = is_negative ? up : down;
  return std::bit_cast<double>(bits + (away & is_even) - (back & is_even));
}

// f64 to f32, rounded to odd, so that the conversion to 16 bits rounds only once.
[[gnu::always_inline]] inline float narrow_to_odd(double value) {
  const float narrow = static_cast<float>(value);
  const double back = static_cast<double>(narrow);
  const uint32_t bits = as_bits(narrow), sign = bits & 0x80000000u;
  const double far = std::fabs(value), near = std::fabs(back);
  const uint32_t is_even = ~bits & 1;
  const uint32_t up = near < far ? is_even : 0, down = near > far ? is_even : 0;
  // If a finite value becomes infinity, the result is the largest number, which is odd.
  const bool is_beyond = (bits & 0x7fffffffu) == 0x7f800000u && near > far;
  return as_float(is_beyond ? sign | 0x7f7fffffu : bits + up - down);
}

struct Half {
  uint16_t bits;
  operator float() const { return half_to_float(bits); }
  [[gnu::always_inline]] static Half from(float value) { return {float_to_half(value)}; }
  static constexpr uint16_t kInfinity = 0x7c00;
  static constexpr uint16_t kNan = kHalfNan;
};

struct Bf16 {
  uint16_t bits;
  operator float() const { return bf16_to_float(bits); }
  [[gnu::always_inline]] static Bf16 from(float value) { return {float_to_bf16(value)}; }
  static constexpr uint16_t kInfinity = 0x7f80;
  static constexpr uint16_t kNan = kHalfNan;
};

// f16x2 and bf16x2: `low` is in the low half of the register.
template <class T>
struct Pair {
  T low, high;
};
using HalfPair = Pair<Half>;
using Bf16Pair = Pair<Bf16>;
using U16Pair = Pair<uint16_t>;
using S16Pair = Pair<int16_t>;

template <class T>
concept SmallFloat = std::is_same_v<T, Half> || std::is_same_v<T, Bf16>;
template <class T>
concept NativeFloat = std::is_same_v<T, float> || std::is_same_v<T, double>;
template <class T>
concept AnyFloat = SmallFloat<T> || NativeFloat<T>;
template <class T>
concept Packed = requires(T p) {
  p.low;
  p.high;
};
template <class T>
concept Integer = std::is_integral_v<T>;

inline float flush(float value) {
  uint32_t bits = as_bits(value);
  return (bits & 0x7f800000u) == 0 ? as_float(bits & 0x80000000u) : value;
}
inline double flush(double value) { return value; }
inline Half flush(Half value) {
  return (value.bits & 0x7c00u) == 0 ? Half{static_cast<uint16_t>(value.bits & 0x8000u)} : value;
}
inline Bf16 flush(Bf16 value) { return value; }

inline double quieted(double value) {
  constexpr uint64_t kQuiet = 0x0008000000000000;
  return value != value ? std::bit_cast<double>(std::bit_cast<uint64_t>(value) | kQuiet) : value;
}

// The NaN of a result, the same on every CPU. On NVIDIA GPUs f32 has only one NaN. In f64 the
// result is the NaN of an operand, the first one's if there are two; an invalid operation returns
// the negative one.
template <class... From>
float canonical(float value, From...) {
  return value != value ? as_float(kFloatNan) : value;
}
template <class... From>
double canonical(double value, From... from) {
  double nan = std::bit_cast<double>(uint64_t{0xfff8000000000000});
  bool found = false;
  ((nan = !found && from != from ? quieted(from) : nan, found |= from != from), ...);
  return value != value ? nan : value;
}

}  // namespace kiln::engine
