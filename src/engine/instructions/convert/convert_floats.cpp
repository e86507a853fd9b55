// SPDX-License-Identifier: Apache-2.0
// How do floats become integers, and all numbers 16-bit floats? In steps over all lanes, each a
// loop that the compiler turns into vector code: read, round, write. The first step gives f32,
// rounded to odd, so that only the last rounding counts.
#include <cmath>
#include <limits>

#include "engine/decode/meanings.h"
#include "engine/instructions/convert/convert_common.h"
#include "engine/machine/warp.h"
#include "engine/numbers/convert_parts.h"

namespace kiln::engine {
namespace {

template <class S, class R>
void round_all(const S* a, R* out, Rounding rounding, uint32_t count) {
  switch (rounding) {
    case Rounding::Zero:
      for (uint32_t i = 0; i < count; ++i) out[i] = static_cast<R>(std::trunc(a[i]));
      return;
    case Rounding::Down:
      for (uint32_t i = 0; i < count; ++i) out[i] = static_cast<R>(std::floor(a[i]));
      return;
    case Rounding::Up:
      for (uint32_t i = 0; i < count; ++i) out[i] = static_cast<R>(std::ceil(a[i]));
      return;
    default:
      for (uint32_t i = 0; i < count; ++i) out[i] = static_cast<R>(std::nearbyint(a[i]));
  }
}

// Values out of range are clamped. NaN becomes 0, or the smallest number if either side has 64
// bits.
template <class D, bool kWide>
D to_integer(double value) {
  using Limits = std::numeric_limits<D>;
  constexpr double kBeyond = Limits::digits == 31   ? 0x1p31
                             : Limits::digits == 32 ? 0x1p32
                             : Limits::digits == 63 ? 0x1p63
                                                    : 0x1p64;
  constexpr double kLeast = std::is_signed_v<D> ? -kBeyond : 0;
  constexpr D kNan = !kWide                ? D{0}
                     : std::is_signed_v<D> ? Limits::min()
                                           : static_cast<D>(D{1} << (sizeof(D) * 8 - 1));
  const bool fits = value >= kLeast && value < kBeyond;
  const D inside = static_cast<D>(fits ? value : 0.0);
  const D outside = value != value ? kNan : value < kLeast ? Limits::min() : Limits::max();
  return fits ? inside : outside;
}

// One copy for all types that are read as S.
template <class S, class D>
[[gnu::noinline]] void write_integers(const S* a, D* d, Rounding rounding, uint32_t count) {
  double rounded[kWarpSize];
  round_all(a, rounded, rounding, count);
  for (uint32_t i = 0; i < count; ++i)
    d[i] = to_integer < D, sizeof(S) == 8 || sizeof(D) == 8 > (rounded[i]);
}

// 8-bit and 16-bit integers, in registers of type R.
template <class R>
[[gnu::noinline]] void write_small_integers(const float* a, R* d, const WideParts& how,
                                            uint32_t count) {
  float rounded[kWarpSize];
  round_all(a, rounded, how.rounding, count);
  const int32_t values = 1 << how.to_bits, least = how.to_signed ? -(values / 2) : 0;
  const float low = static_cast<float>(least), high = static_cast<float>(least + values - 1);
  for (uint32_t i = 0; i < count; ++i) {
    const float number = rounded[i] == rounded[i] ? rounded[i] : 0.0f;
    const float above = number < low ? low : number;
    d[i] = static_cast<R>(static_cast<int32_t>(above > high ? high : above));
  }
}

template <class S>
const float* read_floats(const S* a, float (&room)[kWarpSize], uint32_t count) {
  if constexpr (std::is_same_v<S, float>) return a;
  for (uint32_t i = 0; i < count; ++i) room[i] = static_cast<float>(a[i]);
  return room;
}

template <class S, class D>
const Op* run_to_integer(Warp& warp, const Op* op) {
  const WideParts how = WideParts::of(op->imm);
  const uint32_t count = how.uniform ? 1 : kWarpSize;
  const S* a = warp.lanes<S>(op->a);
  if constexpr (std::is_same_v<S, double>) {
    write_integers(a, warp.lanes<D>(op->d), how.rounding, count);
  } else {
    float room[kWarpSize];
    write_integers(read_floats(a, room, count), warp.lanes<D>(op->d), how.rounding, count);
  }
  return op + 1;
}

template <class S, class R>
const Op* run_to_small_integer(Warp& warp, const Op* op) {
  const WideParts how = WideParts::of(op->imm);
  const uint32_t count = how.uniform ? 1 : kWarpSize;
  float room[kWarpSize];
  write_small_integers(read_floats(warp.lanes<S>(op->a), room, count), warp.lanes<R>(op->d), how,
                       count);
  return op + 1;
}

// An integer as f32. If bits are lost, the last kept bit is set; f32 has more than enough bits for
// the rounding that follows.
float integer_to_odd(uint32_t value, bool is_negative) {
  const uint32_t magnitude = is_negative ? 0 - value : value;
  const uint32_t lost = (magnitude & 0xffu) != 0 ? 0x100u : 0;
  const uint32_t kept = magnitude < 1u << 24 ? magnitude : (magnitude & ~0xffu) | lost;
  const float result = static_cast<float>(kept);
  return is_negative ? -result : result;
}
float integer_to_odd(uint64_t value, bool is_negative) {
  const uint64_t magnitude = is_negative ? 0 - value : value;
  const uint64_t lost = (magnitude & 0x7ffu) != 0 ? 0x800u : 0;
  const uint64_t kept = magnitude < uint64_t{1} << 53 ? magnitude : (magnitude & ~0x7ffull) | lost;
  const float result = narrow_to_odd(static_cast<double>(kept));
  return is_negative ? -result : result;
}

template <class S>
void read_to_odd(const S* a, float* out, const WideParts& how, uint32_t count) {
  if constexpr (std::is_same_v<S, double>) {
    for (uint32_t i = 0; i < count; ++i) out[i] = narrow_to_odd(a[i]);
  } else if constexpr (std::is_same_v<S, float>) {
    for (uint32_t i = 0; i < count; ++i) out[i] = how.flush ? flush(a[i]) : a[i];
  } else if constexpr (SmallFloat<S>) {
    for (uint32_t i = 0; i < count; ++i) out[i] = static_cast<float>(a[i]);
  } else {
    using W = std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t>;
    const Extends<W> from(how.from_bits, how.from_signed);
    for (uint32_t i = 0; i < count; ++i) {
      const W value = from(static_cast<W>(a[i]));
      out[i] = integer_to_odd(value, how.from_signed && value >> (sizeof(W) * 8 - 1) != 0);
    }
  }
}

// Toward zero, or away from it if a bit is lost and `away` is 1.
uint16_t toward(Half, float value, uint32_t away) {
  const uint32_t bits = as_bits(value), magnitude = bits & 0x7fffffffu;
  const bool is_small = magnitude < 0x38800000u, is_large = magnitude >= 0x47800000u;
  const float units = (is_small ? as_float(magnitude) : 0.0f) * 0x1p24f;  // of the smallest number
  const auto whole = static_cast<int32_t>(units);
  const bool loses = static_cast<float>(whole) != units;
  const uint32_t cut = is_small   ? static_cast<uint32_t>(whole)
                       : is_large ? 0x7bffu
                                  : (magnitude - 0x38000000u) >> 13;
  const bool is_between = is_small ? loses : is_large || (magnitude & 0x1fffu) != 0;
  const uint32_t rounded = magnitude == 0x7f800000u ? 0x7c00u : cut + (is_between ? away : 0);
  const uint32_t result = rounded | (bits >> 16 & 0x8000u);
  return static_cast<uint16_t>(magnitude > 0x7f800000u ? kHalfNan : result);
}
uint16_t toward(Bf16, float value, uint32_t away) {
  const uint32_t bits = as_bits(value);
  const uint32_t result = (bits >> 16) + ((bits & 0xffffu) != 0 ? away : 0);
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? kHalfNan : result);
}

template <class D>
[[gnu::noinline]] void write_small_floats(float* a, D* d, const WideParts& how, uint32_t count) {
  if (how.integral) round_all(a, a, how.rounding, count);
  if (how.saturate) {
    for (uint32_t i = 0; i < count; ++i) a[i] = a[i] > 0 ? (a[i] < 1 ? a[i] : 1.0f) : 0.0f;
  }
  if (how.rounding == Rounding::Near) {
    for (uint32_t i = 0; i < count; ++i) d[i] = D::from(a[i]);
    return;
  }
  const uint32_t up = how.rounding == Rounding::Up ? 1 : 0;
  const uint32_t down = how.rounding == Rounding::Down ? 1 : 0;
  for (uint32_t i = 0; i < count; ++i)
    d[i] = D{toward(D{}, a[i], as_bits(a[i]) >> 31 != 0 ? down : up)};
}

template <class S, class D>
const Op* run_to_small_float(Warp& warp, const Op* op) {
  const WideParts how = WideParts::of(op->imm);
  const uint32_t count = how.uniform ? 1 : kWarpSize;
  float value[kWarpSize];
  read_to_odd(warp.lanes<S>(op->a), value, how, count);
  write_small_floats(value, warp.lanes<D>(op->d), how, count);
  return op + 1;
}

template <class S>
Handler to_integer_handler(ptx::Type to) {
  switch (to) {
    case ptx::Type::s32:
      return &run_to_integer<S, int32_t>;
    case ptx::Type::u32:
      return &run_to_integer<S, uint32_t>;
    case ptx::Type::s64:
      return &run_to_integer<S, int64_t>;
    case ptx::Type::u64:
      return &run_to_integer<S, uint64_t>;
    default:
      return nullptr;
  }
}

template <class S>
Handler integer_handler(const CommonConversion& how) {
  const uint32_t bytes = ptx::bytes_of(how.to);
  if constexpr (!std::is_same_v<S, double>) {
    if (bytes <= 2) {
      return how.to_register == 2   ? &run_to_small_integer<S, uint16_t>
             : how.to_register == 4 ? &run_to_small_integer<S, uint32_t>
                                    : nullptr;
    }
  }
  return how.to_register == bytes ? to_integer_handler<S>(how.to) : nullptr;
}

template <class D>
Handler small_float_handler(const CommonConversion& how) {
  if (how.to_register != 2) return nullptr;
  const bool fits = how.from_register == ptx::bytes_of(how.from);
  switch (how.from) {
    case ptx::Type::f64:
      return fits && !how.integral ? &run_to_small_float<double, D> : nullptr;
    case ptx::Type::f32:
      return fits && !how.integral ? &run_to_small_float<float, D> : nullptr;
    case ptx::Type::f16:
      return fits ? &run_to_small_float<Half, D> : nullptr;
    case ptx::Type::bf16:
      return fits ? &run_to_small_float<Bf16, D> : nullptr;
    default:
      break;
  }
  return how.from_register == 8   ? &run_to_small_float<uint64_t, D>
         : how.from_register == 4 ? &run_to_small_float<uint32_t, D>
         : how.from_register == 2 ? &run_to_small_float<uint16_t, D>
                                  : nullptr;
}

}  // namespace

Handler float_handler_for(const CommonConversion& how) {
  if (how.to == ptx::Type::f16) return small_float_handler<Half>(how);
  if (how.to == ptx::Type::bf16) return small_float_handler<Bf16>(how);
  if (ptx::class_of(how.to) == 'f' || how.from_register != ptx::bytes_of(how.from)) return nullptr;
  // These two roundings turn subnormal values into 0 anyway.
  const bool flushes =
      how.flush && how.rounding != Rounding::Near && how.rounding != Rounding::Zero;
  switch (how.from) {
    case ptx::Type::f64:
      return flushes ? nullptr : integer_handler<double>(how);
    case ptx::Type::f32:
      return flushes ? nullptr : integer_handler<float>(how);
    case ptx::Type::f16:
      return integer_handler<Half>(how);
    case ptx::Type::bf16:
      return integer_handler<Bf16>(how);
    default:
      return nullptr;
  }
}

void describe_floats(Meanings& to) {
  const auto add = [&](Handler handler, Number type, Number from) {
    to.add(handler, {Does::Lanewise, type, from, 1, 1});
  };
  const auto words = [&](Handler handler, Number type, Number from) {
    to.add(handler, {from == Number::F32 ? Does::Whole : Does::Lanewise, type, from, 1, 1});
  };
  const auto integers = [&]<class S>(S) {
    words(&run_to_integer<S, int32_t>, Number::S32, number_of<S>());
    words(&run_to_integer<S, uint32_t>, Number::U32, number_of<S>());
    add(&run_to_integer<S, int64_t>, Number::S64, number_of<S>());
    add(&run_to_integer<S, uint64_t>, Number::U64, number_of<S>());
    if constexpr (!std::is_same_v<S, double>) {
      words(&run_to_small_integer<S, uint16_t>, Number::U16, number_of<S>());
      words(&run_to_small_integer<S, uint32_t>, Number::U32, number_of<S>());
    }
  };
  const auto small = [&]<class S>(S) {
    add(&run_to_small_float<S, Half>, Number::U16, number_of<S>());
    add(&run_to_small_float<S, Bf16>, Number::U16, number_of<S>());
  };
  const auto both = [&]<class S>(S s) {
    integers(s);
    small(s);
  };
  both(float{});
  both(double{});
  both(Half{});
  both(Bf16{});
  small(uint16_t{});
  small(uint32_t{});
  small(uint64_t{});
}

}  // namespace kiln::engine
