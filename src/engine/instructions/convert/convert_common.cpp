// SPDX-License-Identifier: Apache-2.0
// How do small integers in wide registers change their type, and floats become integers? Loops that
// the compiler turns into vector code, where the general handler goes lane by lane.
#include "engine/instructions/convert/convert_common.h"

#include <cmath>
#include <limits>

#include "engine/decode/meanings.h"
#include "engine/machine/warp.h"

namespace kiln::engine {
namespace {

// How the low bits of a register become a number of W: the others are cut off, and the sign, where
// it has one, fills them.
template <class W>
struct Extends {
  W kept, sign;

  Extends(uint32_t bits, bool is_signed)
      : kept(bits >= sizeof(W) * 8 ? static_cast<W>(~W{0}) : static_cast<W>((W{1} << bits) - 1)),
        sign(is_signed ? static_cast<W>(W{1} << (bits - 1)) : W{0}) {}
  W operator()(W value) const { return static_cast<W>(((value & kept) ^ sign) - sign); }
};

// What a handler knows of the types, in Op::imm.
struct WideParts {
  uint8_t from_bits, to_bits;
  bool from_signed, to_signed, uniform;
  Rounding rounding;

  int64_t bits() const {
    return from_bits | to_bits << 8 | from_signed << 16 | to_signed << 17 | uniform << 18 |
           static_cast<int>(rounding) << 20;
  }
  static WideParts of(int64_t bits) {
    return {static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8),
            (bits >> 16 & 1) != 0,      (bits >> 17 & 1) != 0,
            (bits >> 18 & 1) != 0,      static_cast<Rounding>(bits >> 20)};
  }
};

template <class F, class R>
const Op* run_cast(Warp& warp, const Op* op) {
  using W = std::conditional_t<sizeof(F) == 8 || sizeof(R) == 8, uint64_t, uint32_t>;
  const WideParts how = WideParts::of(op->imm);
  const Extends<W> from(how.from_bits, how.from_signed), to(how.to_bits, how.to_signed);
  R* d = warp.lanes<R>(op->d);
  const F* a = warp.lanes<F>(op->a);
  if (how.uniform) {
    d[0] = static_cast<R>(to(from(a[0])));
    return op + 1;
  }
#pragma GCC ivdep
  for (uint32_t i = 0; i < kWarpSize; ++i) d[i] = static_cast<R>(to(from(a[i])));
  return op + 1;
}

// An integer of at most 16 bits is exact in both floats.
template <class F, class R>
const Op* run_small_to_float(Warp& warp, const Op* op) {
  const WideParts how = WideParts::of(op->imm);
  const Extends<uint32_t> from(how.from_bits, how.from_signed);
  R* d = warp.lanes<R>(op->d);
  const F* a = warp.lanes<F>(op->a);
  if (how.uniform) {
    d[0] = static_cast<R>(static_cast<int32_t>(from(a[0])));
    return op + 1;
  }
#pragma GCC ivdep
  for (uint32_t i = 0; i < kWarpSize; ++i)
    d[i] = static_cast<R>(static_cast<int32_t>(from(static_cast<uint32_t>(a[i]))));
  return op + 1;
}

template <class S>
void round_all(const S* a, double* out, Rounding rounding, uint32_t count) {
  switch (rounding) {
    case Rounding::Zero:
      for (uint32_t i = 0; i < count; ++i) out[i] = static_cast<double>(std::trunc(a[i]));
      return;
    case Rounding::Down:
      for (uint32_t i = 0; i < count; ++i) out[i] = static_cast<double>(std::floor(a[i]));
      return;
    case Rounding::Up:
      for (uint32_t i = 0; i < count; ++i) out[i] = static_cast<double>(std::ceil(a[i]));
      return;
    default:
      for (uint32_t i = 0; i < count; ++i) out[i] = static_cast<double>(std::nearbyint(a[i]));
  }
}

// Out of range is clamped. NaN is 0, or the smallest number when 64 bits are on either side.
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

template <class S, class D>
const Op* run_to_integer(Warp& warp, const Op* op) {
  const WideParts how = WideParts::of(op->imm);
  const uint32_t count = how.uniform ? 1 : kWarpSize;
  double rounded[kWarpSize];
  round_all(warp.lanes<S>(op->a), rounded, how.rounding, count);
  D* d = warp.lanes<D>(op->d);
  for (uint32_t i = 0; i < count; ++i)
    d[i] = to_integer < D, sizeof(S) == 8 || sizeof(D) == 8 > (rounded[i]);
  return op + 1;
}

// By the bytes of both registers.
Handler cast_handler(uint32_t from, uint32_t to) {
  const auto row = [&]<class F>(F) -> Handler {
    return to == 8   ? &run_cast<F, uint64_t>
           : to == 4 ? &run_cast<F, uint32_t>
           : to == 2 ? &run_cast<F, uint16_t>
                     : nullptr;
  };
  return from == 8   ? row(uint64_t{})
         : from == 4 ? row(uint32_t{})
         : from == 2 ? row(uint16_t{})
                     : nullptr;
}

Handler small_to_float(uint32_t from, ptx::Type to) {
  const bool wide = to == ptx::Type::f64;
  if (from == 4)
    return wide ? &run_small_to_float<uint32_t, double> : &run_small_to_float<uint32_t, float>;
  if (from == 2)
    return wide ? &run_small_to_float<uint16_t, double> : &run_small_to_float<uint16_t, float>;
  return nullptr;
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

bool is_integer(ptx::Type type) {
  const char kind = ptx::class_of(type);
  return kind == 'u' || kind == 's';
}

Handler handler_for(const CommonConversion& how) {
  const bool from_float = how.from == ptx::Type::f32 || how.from == ptx::Type::f64;
  const bool to_float = how.to == ptx::Type::f32 || how.to == ptx::Type::f64;
  const uint32_t from_bytes = ptx::bytes_of(how.from), to_bytes = ptx::bytes_of(how.to);
  if (is_integer(how.from) && is_integer(how.to) && !how.saturate)
    return cast_handler(how.from_register, how.to_register);
  if (is_integer(how.from) && from_bytes <= 2 && to_float && !how.saturate &&
      how.to_register == to_bytes)
    return small_to_float(how.from_register, how.to);
  // What is subnormal becomes 0 by these two roundings anyway.
  const bool flushes =
      how.flush && how.rounding != Rounding::Near && how.rounding != Rounding::Zero;
  if (!from_float || flushes || how.to_register != to_bytes || how.from_register != from_bytes)
    return nullptr;
  return how.from == ptx::Type::f32 ? to_integer_handler<float>(how.to)
                                    : to_integer_handler<double>(how.to);
}

}  // namespace

// Whether the operand is a scalar is in Op::imm: it is where the
// result is one.
void describe_common(Meanings& to) {
  const auto add = [&](Handler handler, Number type, Number from) {
    to.add(handler, {Does::Lanewise, type, from, 1, 1});
  };
  const auto integers = [&]<class S>(S) {
    add(&run_to_integer<S, int32_t>, Number::S32, number_of<S>());
    add(&run_to_integer<S, uint32_t>, Number::U32, number_of<S>());
    add(&run_to_integer<S, int64_t>, Number::S64, number_of<S>());
    add(&run_to_integer<S, uint64_t>, Number::U64, number_of<S>());
  };
  integers(float{});
  integers(double{});
  add(&run_cast<uint32_t, uint32_t>, Number::U32, Number::U32);
  add(&run_cast<uint32_t, uint64_t>, Number::U64, Number::U32);
  add(&run_cast<uint64_t, uint32_t>, Number::U32, Number::U64);
  add(&run_cast<uint64_t, uint64_t>, Number::U64, Number::U64);
  add(&run_cast<uint16_t, uint16_t>, Number::U16, Number::U16);
  add(&run_cast<uint16_t, uint32_t>, Number::U32, Number::U16);
  add(&run_cast<uint16_t, uint64_t>, Number::U64, Number::U16);
  add(&run_cast<uint32_t, uint16_t>, Number::U16, Number::U32);
  add(&run_cast<uint64_t, uint16_t>, Number::U16, Number::U64);
  add(&run_small_to_float<uint16_t, float>, Number::F32, Number::U16);
  add(&run_small_to_float<uint16_t, double>, Number::F64, Number::U16);
  add(&run_small_to_float<uint32_t, float>, Number::F32, Number::U32);
  add(&run_small_to_float<uint32_t, double>, Number::F64, Number::U32);
}

bool convert_common(Lowering& l, const CommonConversion& how) {
  Source a;
  const Handler handler = handler_for(how);
  if (!handler || !how.from_register || !l.register_source(l.operand(1).reg, &a)) return false;
  const WideParts wide_parts{static_cast<uint8_t>(ptx::bytes_of(how.from) * 8),
                             static_cast<uint8_t>(ptx::bytes_of(how.to) * 8),
                             ptx::is_signed(how.from),
                             ptx::is_signed(how.to),
                             a.uniform,
                             how.rounding};
  l.emit_value(l.operand(0), how.to_register, a.uniform, handler, a, {}, {}, wide_parts.bits());
  return true;
}

}  // namespace kiln::engine
