// SPDX-License-Identifier: Apache-2.0
// How do numbers change their type? (PTX ISA 9.7.9.21, cvt) The common conversions have their own
// handlers; one function with every rounding and saturation does all others.
#include <cmath>
#include <cstring>

#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/instructions/convert/convert_common.h"
#include "engine/instructions/lowerings.h"
#include "engine/numbers/small_formats.h"

namespace kiln::engine {
namespace {

Rounding rounding_of(Lowering& l) {
  if (l.has("rz") || l.has("rzi")) return Rounding::Zero;
  if (l.has("rm") || l.has("rmi")) return Rounding::Down;
  if (l.has("rp") || l.has("rpi")) return Rounding::Up;
  return Rounding::Near;
}

// The conversion, for the general handler.
struct Conversion {
  ptx::Type from, to;
  uint32_t from_register_bytes, to_register_bytes;
  Rounding rounding;
  bool to_integral_value, saturate, flush;
};

bool is_float(ptx::Type type) { return ptx::class_of(type) == 'f'; }

double read_float(ptx::Type type, const std::byte* at) {
  switch (type) {
    case ptx::Type::f64: {
      double v;
      std::memcpy(&v, at, 8);
      return v;
    }
    case ptx::Type::f32: {
      float v;
      std::memcpy(&v, at, 4);
      return v;
    }
    default: {
      uint16_t bits;
      std::memcpy(&bits, at, 2);
      return type == ptx::Type::f16 ? half_to_float(bits) : bf16_to_float(bits);
    }
  }
}

uint64_t write_float(ptx::Type type, double value, Rounding rounding) {
  switch (type) {
    case ptx::Type::f64:
      return std::bit_cast<uint64_t>(value);
    case ptx::Type::f32:
      if (value != value) return kFloatNan;
      return as_bits(static_cast<float>(round_to(kFormatF32, value, rounding)));
    case ptx::Type::f16:
      return float_to_half(static_cast<float>(round_to(kFormatF16, value, rounding)));
    default:
      return float_to_bf16(static_cast<float>(round_to(kFormatBf16, value, rounding)));
  }
}

double to_integral(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::Zero:
      return std::trunc(value);
    case Rounding::Down:
      return std::floor(value);
    case Rounding::Up:
      return std::ceil(value);
    default:
      return std::nearbyint(value);
  }
}

// Values out of range are clamped. NaN becomes 0, or the smallest number if either side has 64
// bits.
uint64_t float_to_integer(double value, ptx::Type from, ptx::Type to) {
  uint32_t bits = ptx::bytes_of(to) * 8;
  if (value != value) {
    bool wide = from == ptx::Type::f64 || bits == 64;
    return wide ? uint64_t{1} << (bits - 1) : 0;
  }
  if (ptx::is_signed(to)) {
    double limit = std::ldexp(1.0, static_cast<int>(bits) - 1);
    if (value >= limit) return (uint64_t{1} << (bits - 1)) - 1;
    if (value < -limit) return ~uint64_t{0} << (bits - 1);
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
  if (value <= 0) return 0;
  if (value >= std::ldexp(1.0, static_cast<int>(bits))) return ~uint64_t{0} >> (64 - bits);
  return static_cast<uint64_t>(value);
}

uint64_t clamp_integer(uint64_t value, bool from_signed, ptx::Type to) {
  uint32_t bits = ptx::bytes_of(to) * 8;
  if (ptx::is_signed(to)) {
    int64_t high = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1), low = -high - 1;
    if (!from_signed)
      return value > static_cast<uint64_t>(high) ? static_cast<uint64_t>(high) : value;
    int64_t v = static_cast<int64_t>(value);
    return static_cast<uint64_t>(v > high ? high : v < low ? low : v);
  }
  if (from_signed && static_cast<int64_t>(value) < 0) return 0;
  uint64_t high = ~uint64_t{0} >> (64 - bits);
  return value > high ? high : value;
}

// Converts an integer to f64 and keeps the lost bits as a sticky bit, so that the next rounding is
// correct.
double integer_to_double(uint64_t value, bool is_signed_value, Rounding rounding, ptx::Type to) {
  bool negative = is_signed_value && static_cast<int64_t>(value) < 0;
  uint64_t magnitude = negative ? 0 - value : value;
  if (to == ptx::Type::f64) {
    int excess = 64 - __builtin_clzll(magnitude | 1) - 53;
    if (excess > 0) {
      uint64_t unit = uint64_t{1} << excess, rest = magnitude & (unit - 1);
      uint64_t down = magnitude - rest;
      bool up = false;
      if (rounding == Rounding::Near) up = rest > unit / 2 || (rest == unit / 2 && (down & unit));
      if (rounding == Rounding::Up) up = rest && !negative;
      if (rounding == Rounding::Down) up = rest && negative;
      double rounded = static_cast<double>(down) + (up ? static_cast<double>(unit) : 0);
      return negative ? -rounded : rounded;
    }
  } else if (magnitude >> 53) {
    magnitude = (magnitude & ~uint64_t{0x7ff}) | ((magnitude & 0x7ff) ? 0x800 : 0);
  }
  double result = static_cast<double>(magnitude);
  return negative ? -result : result;
}

uint64_t extend(const std::byte* at, ptx::Type type) {
  uint64_t value = 0;
  uint32_t bytes = ptx::bytes_of(type);
  std::memcpy(&value, at, bytes);
  if (ptx::is_signed(type) && bytes < 8) {
    uint32_t shift = 64 - bytes * 8;
    value = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
  }
  return value;
}

bool is_subnormal(ptx::Type type, double value) {
  return type == ptx::Type::f32 && value != 0 && std::fabs(value) < 1.1754943508222875e-38;
}

uint64_t convert_one(const Conversion& how, const std::byte* at) {
  if (is_float(how.from)) {
    double value = read_float(how.from, at);
    if (how.flush && is_subnormal(how.from, value)) value = std::copysign(0.0, value);
    if (!is_float(how.to))
      return float_to_integer(to_integral(value, how.rounding), how.from, how.to);
    if (how.to_integral_value) value = to_integral(value, how.rounding);
    if (how.saturate) value = value > 0 ? (value < 1 ? value : 1) : 0;
    if (value != value && how.from == ptx::Type::f64 && how.to == ptx::Type::f32)
      return as_bits(static_cast<float>(value));
    uint64_t bits = write_float(how.to, value, how.rounding);
    if (how.flush && how.to == ptx::Type::f32 && (bits & 0x7f800000u) == 0) bits &= 0x80000000u;
    return bits;
  }
  uint64_t value = extend(at, how.from);
  if (!is_float(how.to)) {
    if (how.saturate) value = clamp_integer(value, ptx::is_signed(how.from), how.to);
    // The result is extended to the register according to the destination type.
    return extend(reinterpret_cast<const std::byte*>(&value), how.to);
  }
  double wide = integer_to_double(value, ptx::is_signed(how.from), how.rounding, how.to);
  if (how.saturate) wide = wide > 0 ? (wide < 1 ? wide : 1) : 0;
  return write_float(how.to, wide, how.rounding);
}

template <class R>
const Op* run_convert(Warp& warp, const Op* op) {
  const auto& how = *static_cast<const Conversion*>(op->data);
  const std::byte* from = warp.lanes<std::byte>(op->a);
  const size_t step = op->x ? 0 : how.from_register_bytes;
  R result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i)
    result[i] = static_cast<R>(convert_one(how, from + i * step));
  warp.put(op->d, result);
  return op + 1;
}

// Handlers for the common conversions: rounding to nearest, no saturation, registers as wide as
// their types.
template <class D>
struct To {
  template <Integer S>
  static D f(S a) {
    if constexpr (SmallFloat<D>) {
      return D::from(static_cast<float>(a));
    } else {
      return static_cast<D>(a);
    }
  }
  template <NativeFloat S>
  static D f(S a) {
    if constexpr (SmallFloat<D>) {
      return D::from(static_cast<float>(a));
    } else {
      return canonical_cast(a);
    }
  }
  template <SmallFloat S>
  static D f(S a) {
    float wide = a;
    if constexpr (SmallFloat<D>) {
      return D::from(wide);
    } else {
      return canonical_cast(wide);
    }
  }
  template <class S>
  static D canonical_cast(S a) {
    D narrow = static_cast<D>(a);
    // From f64 a NaN keeps its sign and the upper part of its payload, as in IEEE.
    if constexpr (std::is_same_v<D, float> && !std::is_same_v<S, double>) return canonical(narrow);
    return narrow;
  }
};

template <class D, class S>
constexpr bool is_common() {
  if constexpr (Integer<D> && Integer<S>) return sizeof(D) > 1;
  if constexpr (NativeFloat<D> && Integer<S>) return true;
  if constexpr (SmallFloat<D> && Integer<S>) return sizeof(S) <= 2;  // exact in f32
  if constexpr (AnyFloat<D> && AnyFloat<S>) return !(SmallFloat<D> && std::is_same_v<S, double>);
  return false;
}

// f32 to 32-bit integers by truncation; NaN becomes 0.
struct Truncate {
  static int32_t f(float a) {
    // 2^31 itself does not fit; -2^31 does.
    float clamped = a < -2147483648.0f ? -2147483648.0f : a;
    bool high = clamped >= 2147483648.0f;
    int32_t value = static_cast<int32_t>(high || clamped != clamped ? 0.0f : clamped);
    return high ? std::numeric_limits<int32_t>::max() : value;
  }
};

// f32 to f32. Without rounding to an integer the value stays as it is.
enum class Integral : uint8_t { No, Near, Zero, Down, Up };
template <Integral kIntegral, bool kFlush, bool kSaturate>
struct WithinF32 {
  static float f(float a) {
    float value = kFlush ? flush(a) : a;
    if constexpr (kIntegral == Integral::Near) value = std::nearbyint(value);
    if constexpr (kIntegral == Integral::Zero) value = std::trunc(value);
    if constexpr (kIntegral == Integral::Down) value = std::floor(value);
    if constexpr (kIntegral == Integral::Up) value = std::ceil(value);
    if constexpr (kSaturate) return value > 0 ? (value < 1 ? value : 1.0f) : 0.0f;
    return canonical(value);
  }
};

template <Integral kIntegral>
Handler within_f32(bool flushes, bool saturates, Source a) {
  if (flushes) {
    return saturates ? unary_handler<WithinF32<kIntegral, true, true>, float, float>(a)
                     : unary_handler<WithinF32<kIntegral, true, false>, float, float>(a);
  }
  return saturates ? unary_handler<WithinF32<kIntegral, false, true>, float, float>(a)
                   : unary_handler<WithinF32<kIntegral, false, false>, float, float>(a);
}

bool convert_within_f32(Lowering& l) {
  Source a;
  if (!l.source(l.operand(1), ptx::Type::f32, &a)) return false;
  const bool flushes = l.has("ftz"), saturates = l.has("sat");
  Handler handler = l.has("rni")   ? within_f32<Integral::Near>(flushes, saturates, a)
                    : l.has("rzi") ? within_f32<Integral::Zero>(flushes, saturates, a)
                    : l.has("rmi") ? within_f32<Integral::Down>(flushes, saturates, a)
                    : l.has("rpi") ? within_f32<Integral::Up>(flushes, saturates, a)
                                   : within_f32<Integral::No>(flushes, saturates, a);
  l.emit_value(l.operand(0), 4, a.uniform, handler, a);
  return true;
}

// f64 to integral f64.
template <Integral kIntegral>
struct WholeF64 {
  static double f(double a) {
    if constexpr (kIntegral == Integral::Near) return std::nearbyint(a);
    if constexpr (kIntegral == Integral::Zero) return std::trunc(a);
    if constexpr (kIntegral == Integral::Down) return std::floor(a);
    return std::ceil(a);
  }
};

bool convert_within_f64(Lowering& l) {
  Source a;
  if (!l.source(l.operand(1), ptx::Type::f64, &a)) return false;
  Handler handler = l.has("rni")   ? unary_handler<WholeF64<Integral::Near>, double, double>(a)
                    : l.has("rzi") ? unary_handler<WholeF64<Integral::Zero>, double, double>(a)
                    : l.has("rmi") ? unary_handler<WholeF64<Integral::Down>, double, double>(a)
                                   : unary_handler<WholeF64<Integral::Up>, double, double>(a);
  l.emit_value(l.operand(0), 8, a.uniform, handler, a);
  return true;
}

bool truncate_f32(Lowering& l) {
  Source a;
  if (!l.source(l.operand(1), ptx::Type::f32, &a)) return false;
  l.emit_value(l.operand(0), 4, a.uniform, unary_handler<Truncate, int32_t, float>(a), a);
  return true;
}

}  // namespace

bool convert(Lowering& l) {
  ptx::Type from = l.type(), to = l.other_type();
  const ptx::Operand& source_operand = l.operand(1);
  uint32_t to_register = l.register_bytes(l.operand(0));
  uint32_t from_register = l.register_bytes(source_operand);
  if (to_register < ptx::bytes_of(to)) return l.refuse("the register is narrower than the result");
  if (from_register && from_register < ptx::bytes_of(from))
    return l.refuse("the register is narrower than the value");
  Rounding rounding = rounding_of(l);
  bool integral = l.has("rni") || l.has("rzi") || l.has("rmi") || l.has("rpi");
  bool plain = rounding == Rounding::Near && !integral && !l.has("sat") && !l.has("ftz") &&
               to_register == ptx::bytes_of(to) &&
               (from_register == 0 || from_register == ptx::bytes_of(from));
  bool widens = ptx::bytes_of(to) == 8 && (from == ptx::Type::s32 || from == ptx::Type::u32) &&
                ptx::class_of(to) != 'f';
  bool narrows = ptx::bytes_of(to) == 4 && ptx::bytes_of(from) == 8 && ptx::class_of(to) != 'f' &&
                 ptx::class_of(from) != 'f';
  if (plain && (widens || narrows) && l.affine_dest(l.operand(0), to_register)) {
    AffineTerm terms[3];
    Source lane_sources[3];
    if (l.affine_term(source_operand, from, &terms[0], &lane_sources[0]) && terms[0].affine) {
      const Source& lanes = lane_sources[0];
      Handler on_lanes = narrows ? unary_handler<To<uint32_t>, uint32_t, uint64_t>(lanes)
                         : from == ptx::Type::s32
                             ? unary_handler<To<int64_t>, int64_t, int32_t>(lanes)
                             : unary_handler<To<uint64_t>, uint64_t, uint32_t>(lanes);
      AffineKind kind = narrows                  ? AffineKind::Narrow
                        : from == ptx::Type::s32 ? AffineKind::WidenSigned
                                                 : AffineKind::WidenUnsigned;
      return l.emit_affine(kind, narrows ? 8 : 4, to_register, terms, on_lanes, lane_sources);
    }
  }
  if (plain && from != to) {
    Source a;
    if (!l.source(source_operand, from, &a)) return false;
    bool done = false;
    bool known = with_type(to, [&](auto d) {
      using D = decltype(d);
      return with_type(from, [&](auto s) {
        using S = decltype(s);
        if constexpr (is_common<D, S>()) {
          l.emit_value(l.operand(0), sizeof(D), a.uniform, unary_handler<To<D>, D, S>(a), a);
          done = true;
        }
        return true;
      });
    });
    if (done) return known;
  }
  if (from == ptx::Type::f32 && to == ptx::Type::f32 && to_register == 4 &&
      (from_register == 0 || from_register == 4))
    return convert_within_f32(l);
  if (from == ptx::Type::f64 && to == ptx::Type::f64 && integral && !l.has("sat"))
    return convert_within_f64(l);
  const bool truncates = l.has("rzi") && !l.has("ftz") && to_register == 4;
  if (from == ptx::Type::f32 && to == ptx::Type::s32 && truncates) return truncate_f32(l);
  if (convert_common(l, {from, to, from_register, to_register, rounding, integral, l.has("sat"),
                         l.has("ftz")}))
    return true;
  Source a;
  if (from_register) {
    if (!l.register_source(source_operand.reg, &a)) return false;
  } else if (!l.source(source_operand, from, &a)) {
    return false;
  }
  uint32_t step = from_register;
  if (!from_register && !a.uniform) step = 4;  // %laneid and similar registers
  Dest d;
  if (!l.dest(l.operand(0), to_register, false, &d)) return false;
  Op& op = l.emit(to_register == 8   ? &run_convert<uint64_t>
                  : to_register == 4 ? &run_convert<uint32_t>
                  : to_register == 2 ? &run_convert<uint16_t>
                                     : &run_convert<uint8_t>);
  op.a = a.offset;
  op.d = d.offset;
  op.x = a.uniform;
  op.data = l.own(
      Conversion{from, to, step, to_register, rounding, integral, l.has("sat"), l.has("ftz")});
  return true;
}

void describe_convert(Meanings& to) {
  describe_common(to);
  describe_pairs(to);
  to.unary<To<int64_t>, int64_t, int32_t>(Does::Convert);
  to.unary<To<uint64_t>, uint64_t, uint32_t>(Does::Convert);
  to.unary<To<uint64_t>, uint64_t, int32_t>(Does::Convert);
  to.unary<To<int64_t>, int64_t, uint32_t>(Does::Convert);
  to.unary<To<uint32_t>, uint32_t, uint64_t>(Does::Convert);
  to.unary<To<int32_t>, int32_t, int64_t>(Does::Convert);
  to.unary<To<uint32_t>, uint32_t, int64_t>(Does::Convert);
  to.unary<To<int32_t>, int32_t, uint64_t>(Does::Convert);
  to.unary<To<float>, float, int32_t>(Does::Convert);
  to.unary<To<float>, float, uint32_t>(Does::Convert);
  to.unary<Truncate, int32_t, float>(Does::Convert);
  to.unary<To<uint32_t>, uint32_t, uint16_t>(Does::Convert);
  to.unary<To<int32_t>, int32_t, uint16_t>(Does::Convert);
  to.unary<To<uint32_t>, uint32_t, int16_t>(Does::Convert);
  to.unary<To<int32_t>, int32_t, int16_t>(Does::Convert);
  to.unary<To<uint16_t>, uint16_t, uint32_t>(Does::Convert);
  to.unary<To<uint16_t>, uint16_t, int32_t>(Does::Convert);
  to.unary<To<int16_t>, int16_t, uint32_t>(Does::Convert);
  to.unary<To<int16_t>, int16_t, int32_t>(Does::Convert);
  to.unary<To<uint64_t>, uint64_t, uint16_t>(Does::Convert);
  to.unary<To<int64_t>, int64_t, uint16_t>(Does::Convert);
  to.unary<To<uint64_t>, uint64_t, int16_t>(Does::Convert);
  to.unary<To<int64_t>, int64_t, int16_t>(Does::Convert);
  to.unary<To<uint16_t>, uint16_t, uint64_t>(Does::Convert);
  to.unary<To<uint16_t>, uint16_t, int64_t>(Does::Convert);
  to.unary<To<int16_t>, int16_t, uint64_t>(Does::Convert);
  to.unary<To<int16_t>, int16_t, int64_t>(Does::Convert);
  to.unary<To<float>, float, uint16_t>(Does::Convert);
  to.unary<To<float>, float, int16_t>(Does::Convert);
  to.unary<To<float>, float, Half>(Does::Small, {Does::Convert, Small::F16});
  to.unary<To<float>, float, Bf16>(Does::Small, {Does::Convert, Small::Bf16});
  to.unary<To<Half>, Half, float>(Does::Small, {Does::Convert, Small::F16});
  to.unary<To<Bf16>, Bf16, float>(Does::Small, {Does::Convert, Small::Bf16});
  to.unary<To<Half>, Half, Bf16>(Does::Lanewise);
  to.unary<To<Bf16>, Bf16, Half>(Does::Lanewise);
  to.unary<To<Half>, Half, int16_t>(Does::Lanewise);
  to.unary<To<Half>, Half, uint16_t>(Does::Lanewise);
  to.unary<To<Bf16>, Bf16, int16_t>(Does::Lanewise);
  to.unary<To<Bf16>, Bf16, uint16_t>(Does::Lanewise);
  to.unary<To<double>, double, int32_t>(Does::Convert);
  to.unary<To<double>, double, uint32_t>(Does::Convert);
  to.unary<To<double>, double, float>(Does::Convert);
  to.unary<To<float>, float, double>(Does::Convert);
  to.unary<To<double>, double, int64_t>(Does::Lanewise);
  to.unary<To<double>, double, uint64_t>(Does::Lanewise);
  to.unary<To<float>, float, int64_t>(Does::Lanewise);
  to.unary<To<float>, float, uint64_t>(Does::Lanewise);
  to.unary<WithinF32<Integral::No, false, true>, float>(Does::Saturate);
  to.unary<WithinF32<Integral::Near, false, false>, float>(Does::Nearest);
  to.unary<WithinF32<Integral::Zero, false, false>, float>(Does::Truncate);
  to.unary<WithinF32<Integral::Down, false, false>, float>(Does::Floor);
  to.unary<WithinF32<Integral::Up, false, false>, float>(Does::Ceiling);
  to.unary<WholeF64<Integral::Near>, double>(Does::Lanewise);
  to.unary<WholeF64<Integral::Zero>, double>(Does::Lanewise);
  to.unary<WholeF64<Integral::Down>, double>(Does::Lanewise);
  to.unary<WholeF64<Integral::Up>, double>(Does::Lanewise);
}

Handler widening_of_lanes(bool is_signed) {
  constexpr Source kLanes{0, false};
  return is_signed ? unary_handler<To<int64_t>, int64_t, int32_t>(kLanes)
                   : unary_handler<To<uint64_t>, uint64_t, uint32_t>(kLanes);
}

}  // namespace kiln::engine
