// SPDX-License-Identifier: Apache-2.0
// How are numbers converted to and from the small formats: f16 and bf16 with .relu or .satfinite
// and in pairs, tf32, those of 8, 6 and 4 bits, and powers of two? (PTX ISA 9.7.9.21, cvt)
#include <cmath>

#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/instructions/convert/convert_common.h"
#include "engine/instructions/lowerings.h"
#include "engine/numbers/small_formats.h"

namespace kiln::engine {
namespace {

enum : uint8_t { kRelu = 1, kSatfinite = 2 };

uint8_t clamps(Lowering& l) {
  return (l.has("relu") ? kRelu : 0) | (l.has("satfinite") ? kSatfinite : 0);
}

// op->x: rounding toward zero; op->y: kRelu, kSatfinite.
template <class T>
T narrow_small(float value, const Op* op) {
  constexpr Format kFormat = std::is_same_v<T, Half> ? kFormatF16 : kFormatBf16;
  if ((op->y & kRelu) && !(value > 0) && value == value) value = 0;
  if (op->x) value = static_cast<float>(round_to(kFormat, value, Rounding::Zero));
  if ((op->y & kSatfinite) && std::fabs(value) > kFormat.largest)
    value = std::copysign(static_cast<float>(kFormat.largest), value);
  return T::from(value);
}

template <class T>
const Op* run_convert_small(Warp& warp, const Op* op) {
  const float* a = warp.lanes<float>(op->a);
  T result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i) result[i] = narrow_small<T>(a[i], op);
  warp.put(op->d, result);
  return op + 1;
}

// cvt.rn.f16x2.f32 d, a, b: a is the upper half.
template <class T>
const Op* run_convert_pair(Warp& warp, const Op* op) {
  const float *a = warp.lanes<float>(op->a), *b = warp.lanes<float>(op->b);
  Pair<T> result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i)
    result[i] = {narrow_small<T>(b[i], op), narrow_small<T>(a[i], op)};
  warp.put(op->d, result);
  return op + 1;
}

// The usual one, which rounds to nearest and does not clamp.
template <class T>
struct MakePair {
  static constexpr bool kRare = true;  // lanes.h
  static Pair<T> f(float high, float low) { return {T::from(low), T::from(high)}; }
};

bool make_pair(Lowering& l) {
  Source a, b;
  if (!l.source(l.operand(1), ptx::Type::f32, &a) || !l.source(l.operand(2), ptx::Type::f32, &b))
    return false;
  const Handler handler = l.other_type() == ptx::Type::f16x2
                              ? binary_handler<MakePair<Half>, HalfPair, float, float>(a, b)
                              : binary_handler<MakePair<Bf16>, Bf16Pair, float, float>(a, b);
  l.emit_value(l.operand(0), 4, a.uniform && b.uniform, handler, a, b);
  return true;
}

// tf32 keeps 10 bits of the mantissa; the low 13 bits of the register are 0. op->x: 0 rna, 1 rn, 2
// rz; op->y: kRelu, kSatfinite. A GPU computes .rna with integers: a NaN loses its low bits, and
// .satfinite subtracts one step from it.
const Op* run_convert_tf32(Warp& warp, const Op* op) {
  const uint32_t* a = warp.lanes<uint32_t>(op->a);
  uint32_t result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    uint32_t bits = a[i];
    if ((bits & 0x7fffffffu) < 0x7f800000u) {
      if (op->x == 0) bits += 0x1000u;
      if (op->x == 1) bits += 0xfffu + ((bits >> 13) & 1u);
    } else if (op->x != 0 && (bits & 0x7fffffffu) > 0x7f800000u) {
      bits = kFloatNan;
    }
    bits &= ~0x1fffu;
    if ((op->y & kSatfinite) && (bits & 0x7fffffffu) >= 0x7f800000u) bits -= 0x2000u;
    if ((op->y & kRelu) && (bits & 0x80000000u)) bits = 0;
    result[i] = bits;
  }
  warp.put(op->d, result);
  return op + 1;
}

}  // namespace

bool convert_small(Lowering& l) {
  uint32_t a;
  Dest d;
  if (!l.lanes(l.operand(1), ptx::Type::f32, &a) || !l.dest(l.operand(0), 2, false, &d))
    return false;
  Op& op = l.emit(l.other_type() == ptx::Type::f16 ? &run_convert_small<Half>
                                                   : &run_convert_small<Bf16>);
  op.a = a;
  op.d = d.offset;
  op.x = l.has("rz");
  op.y = clamps(l);
  return true;
}

void describe_pairs(Meanings& to) {
  to.binary<MakePair<Half>, HalfPair, float>(Does::Small, {Does::Convert, Small::F16x2});
  to.binary<MakePair<Bf16>, Bf16Pair, float>(Does::Small, {Does::Convert, Small::Bf16x2});
}

bool convert_pair(Lowering& l) {
  if (!l.has("rz") && clamps(l) == 0) return make_pair(l);
  uint32_t a, b;
  Dest d;
  if (!l.lanes(l.operand(1), ptx::Type::f32, &a) || !l.lanes(l.operand(2), ptx::Type::f32, &b))
    return false;
  if (!l.dest(l.operand(0), 4, false, &d)) return false;
  Op& op = l.emit(l.other_type() == ptx::Type::f16x2 ? &run_convert_pair<Half>
                                                     : &run_convert_pair<Bf16>);
  op.a = a;
  op.b = b;
  op.d = d.offset;
  op.x = l.has("rz");
  op.y = clamps(l);
  return true;
}

bool convert_tf32(Lowering& l) {
  uint32_t a;
  Dest d;
  if (!l.lanes(l.operand(1), ptx::Type::f32, &a) || !l.dest(l.operand(0), 4, false, &d))
    return false;
  Op& op = l.emit(&run_convert_tf32);
  op.a = a;
  op.d = d.offset;
  op.x = l.has("rna") ? 0 : l.has("rn") ? 1 : 2;
  op.y = clamps(l);
  return true;
}

namespace {

TinyFloat tiny_of(ptx::Type type) {
  switch (type) {
    case ptx::Type::e5m2x2:
      return TinyFloat::E5m2;
    case ptx::Type::e2m3x2:
      return TinyFloat::E2m3;
    case ptx::Type::e3m2x2:
      return TinyFloat::E3m2;
    case ptx::Type::e2m1x2:
      return TinyFloat::E2m1;
    default:
      return TinyFloat::E4m3;
  }
}

// op->x: a TinyFloat; op->y: kRelu.
uint8_t to_tiny(float value, const Op* op) {
  if ((op->y & kRelu) && !(value > 0) && value == value) value = 0;
  return float_to_tiny(static_cast<TinyFloat>(op->x), value);
}

// op->x: upward, otherwise toward zero; op->y: kSatfinite.
uint8_t to_scale(float value, const Op* op) {
  return float_to_scale(value, op->x, op->y & kSatfinite);
}

using ToByte = uint8_t (*)(float value, const Op* op);

// Two floats become the bytes of a pair.
template <ToByte kTo>
const Op* run_bytes_from_f32(Warp& warp, const Op* op) {
  const float *a = warp.lanes<float>(op->a), *b = warp.lanes<float>(op->b);
  uint16_t result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i)
    result[i] = static_cast<uint16_t>(kTo(a[i], op) << 8 | kTo(b[i], op));
  warp.put(op->d, result);
  return op + 1;
}

// The same for the two elements of a HalfPair or Bf16Pair.
template <ToByte kTo, class Pair>
const Op* run_bytes_from_pair(Warp& warp, const Op* op) {
  const Pair* a = warp.lanes<Pair>(op->a);
  uint16_t result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i)
    result[i] = static_cast<uint16_t>(kTo(a[i].high, op) << 8 | kTo(a[i].low, op));
  warp.put(op->d, result);
  return op + 1;
}

// Two 4-bit values share a byte.
const Op* run_nibbles_from_f32(Warp& warp, const Op* op) {
  const float *a = warp.lanes<float>(op->a), *b = warp.lanes<float>(op->b);
  uint8_t result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i)
    result[i] = static_cast<uint8_t>(to_tiny(a[i], op) << 4 | to_tiny(b[i], op));
  warp.put(op->d, result);
  return op + 1;
}

// T holds the pair; kBits is the distance between its elements.
template <class T, int kBits>
const Op* run_tiny_to_f16(Warp& warp, const Op* op) {
  const T* a = warp.lanes<T>(op->a);
  HalfPair result[kWarpSize];
  auto convert = [&](unsigned bits) {
    float value = tiny_to_float(static_cast<TinyFloat>(op->x),
                                static_cast<uint8_t>(bits & ((1u << kBits) - 1)));
    if ((op->y & kRelu) && !(value > 0) && value == value) value = 0;
    return Half::from(value);
  };
  for (uint32_t i = 0; i < kWarpSize; ++i)
    result[i] = {convert(a[i]), convert(static_cast<unsigned>(a[i]) >> kBits)};
  warp.put(op->d, result);
  return op + 1;
}

const Op* run_scale_to_bf16(Warp& warp, const Op* op) {
  const uint16_t* a = warp.lanes<uint16_t>(op->a);
  Bf16Pair result[kWarpSize];
  auto convert = [](unsigned bits) {
    return Bf16::from(scale_to_float(static_cast<uint8_t>(bits)));
  };
  for (uint32_t i = 0; i < kWarpSize; ++i) result[i] = {convert(a[i]), convert(a[i] >> 8u)};
  warp.put(op->d, result);
  return op + 1;
}

// Converts two f32 to a pair of `bytes` bytes.
Op* lower_two_floats(Lowering& l, Handler handler, uint32_t bytes) {
  uint32_t a, b;
  Dest d;
  if (!l.lanes(l.operand(1), ptx::Type::f32, &a) || !l.lanes(l.operand(2), ptx::Type::f32, &b))
    return nullptr;
  if (!l.dest(l.operand(0), bytes, false, &d)) return nullptr;
  Op& op = l.emit(handler);
  op.a = a;
  op.b = b;
  op.d = d.offset;
  op.y = clamps(l);
  return &op;
}

Op* lower_pair(Lowering& l, Handler handler, ptx::Type from, uint32_t bytes) {
  uint32_t a;
  Dest d;
  if (!l.lanes(l.operand(1), from, &a) || !l.dest(l.operand(0), bytes, false, &d)) return nullptr;
  Op& op = l.emit(handler);
  op.a = a;
  op.d = d.offset;
  op.y = clamps(l);
  return &op;
}

}  // namespace

bool convert_tiny_from_f32(Lowering& l) {
  const TinyFloat kind = tiny_of(l.other_type());
  const bool nibbles = kind == TinyFloat::E2m1;
  Op* op = lower_two_floats(l, nibbles ? &run_nibbles_from_f32 : &run_bytes_from_f32<to_tiny>,
                            nibbles ? 1 : 2);
  if (op) op->x = static_cast<uint8_t>(kind);
  return op;
}

bool convert_tiny_from_f16(Lowering& l) {
  Op* op = lower_pair(l, &run_bytes_from_pair<to_tiny, HalfPair>, ptx::Type::f16x2, 2);
  if (op) op->x = static_cast<uint8_t>(tiny_of(l.other_type()));
  return op;
}

bool convert_tiny_to_f16(Lowering& l) {
  const TinyFloat kind = tiny_of(l.type());
  Op* op = kind == TinyFloat::E2m1
               ? lower_pair(l, &run_tiny_to_f16<uint8_t, 4>, ptx::Type::b8, 4)
               : lower_pair(l, &run_tiny_to_f16<uint16_t, 8>, ptx::Type::b16, 4);
  if (op) op->x = static_cast<uint8_t>(kind);
  return op;
}

bool convert_scale_from_f32(Lowering& l) {
  Op* op = lower_two_floats(l, &run_bytes_from_f32<to_scale>, 2);
  if (op) op->x = l.has("rp");
  return op;
}

bool convert_scale_from_bf16(Lowering& l) {
  Op* op = lower_pair(l, &run_bytes_from_pair<to_scale, Bf16Pair>, ptx::Type::bf16x2, 2);
  if (op) op->x = l.has("rp");
  return op;
}

bool convert_scale_to_bf16(Lowering& l) {
  return lower_pair(l, &run_scale_to_bf16, ptx::Type::b16, 4);
}

}  // namespace kiln::engine
