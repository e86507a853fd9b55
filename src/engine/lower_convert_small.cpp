// SPDX-License-Identifier: Apache-2.0
// How are numbers converted to and from the small formats: f16 and bf16 with .relu and in pairs, tf32, fp8? (PTX ISA
// 9.7.9.21, cvt)
#include <cmath>

#include "engine/lanes.h"
#include "engine/lowerings.h"
#include "engine/small_formats.h"

namespace kiln::engine {
namespace {

// op->x: rounding toward zero; op->y: relu.
template <class T>
T narrow_small(float value, const Op* op) {
  if (op->y && !(value > 0) && value == value) value = 0;
  if (op->x)
    value = static_cast<float>(round_to(std::is_same_v<T, Half> ? kFormatF16 : kFormatBf16, value, Rounding::Zero));
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
  for (uint32_t i = 0; i < kWarpSize; ++i) result[i] = {narrow_small<T>(b[i], op), narrow_small<T>(a[i], op)};
  warp.put(op->d, result);
  return op + 1;
}

// tf32 keeps 10 bits of the mantissa; the low 13 bits of the register are 0. op->x: 0 rna, 1 rn, 2 rz; op->y: bit 0
// satfinite, bit 1 relu. A GPU does .rna with integers: a NaN loses its low bits, and .satfinite takes one step off it.
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
    if ((op->y & 1) && (bits & 0x7fffffffu) >= 0x7f800000u) bits -= 0x2000u;
    if ((op->y & 2) && (bits & 0x80000000u)) bits = 0;
    result[i] = bits;
  }
  warp.put(op->d, result);
  return op + 1;
}

}  // namespace

bool convert_relu(Lowering& l) {
  uint32_t a;
  Dest d;
  if (!l.lanes(l.operand(1), ptx::Type::f32, &a) || !l.dest(l.operand(0), 2, false, &d)) return false;
  Op& op = l.emit(l.other_type() == ptx::Type::f16 ? &run_convert_small<Half> : &run_convert_small<Bf16>);
  op.a = a;
  op.d = d.offset;
  op.x = l.has("rz");
  op.y = 1;
  return true;
}

bool convert_pair(Lowering& l) {
  uint32_t a, b;
  Dest d;
  if (!l.lanes(l.operand(1), ptx::Type::f32, &a) || !l.lanes(l.operand(2), ptx::Type::f32, &b)) return false;
  if (!l.dest(l.operand(0), 4, false, &d)) return false;
  Op& op = l.emit(l.other_type() == ptx::Type::f16x2 ? &run_convert_pair<Half> : &run_convert_pair<Bf16>);
  op.a = a;
  op.b = b;
  op.d = d.offset;
  op.x = l.has("rz");
  op.y = l.has("relu");
  return true;
}

bool convert_tf32(Lowering& l) {
  uint32_t a;
  Dest d;
  if (!l.lanes(l.operand(1), ptx::Type::f32, &a) || !l.dest(l.operand(0), 4, false, &d)) return false;
  Op& op = l.emit(&run_convert_tf32);
  op.a = a;
  op.d = d.offset;
  op.x = l.has("rna") ? 0 : l.has("rn") ? 1 : 2;
  op.y = static_cast<uint8_t>((l.has("satfinite") ? 1 : 0) | (l.has("relu") ? 2 : 0));
  return true;
}

namespace {

// op->x: e5m2, else e4m3; op->y: relu.
uint8_t to_fp8(float value, const Op* op) {
  if (op->y && !(value > 0) && value == value) value = 0;
  return op->x ? float_to_e5m2(value) : float_to_e4m3(value);
}

const Op* run_fp8_from_f32(Warp& warp, const Op* op) {
  const float *a = warp.lanes<float>(op->a), *b = warp.lanes<float>(op->b);
  uint16_t result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i) result[i] = static_cast<uint16_t>(to_fp8(a[i], op) << 8 | to_fp8(b[i], op));
  warp.put(op->d, result);
  return op + 1;
}

const Op* run_fp8_from_f16(Warp& warp, const Op* op) {
  const HalfPair* a = warp.lanes<HalfPair>(op->a);
  uint16_t result[kWarpSize];
  for (uint32_t i = 0; i < kWarpSize; ++i)
    result[i] = static_cast<uint16_t>(to_fp8(a[i].high, op) << 8 | to_fp8(a[i].low, op));
  warp.put(op->d, result);
  return op + 1;
}

const Op* run_fp8_to_f16(Warp& warp, const Op* op) {
  const uint16_t* a = warp.lanes<uint16_t>(op->a);
  HalfPair result[kWarpSize];
  auto convert = [&](uint8_t bits) {
    float value = op->x ? e5m2_to_float(bits) : e4m3_to_float(bits);
    if (op->y && !(value > 0) && value == value) value = 0;
    return Half::from(value);
  };
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    result[i] = {convert(static_cast<uint8_t>(a[i])), convert(static_cast<uint8_t>(a[i] >> 8))};
  }
  warp.put(op->d, result);
  return op + 1;
}

}  // namespace

bool convert_fp8_from_f32(Lowering& l) {
  uint32_t a, b;
  Dest d;
  if (!l.lanes(l.operand(1), ptx::Type::f32, &a) || !l.lanes(l.operand(2), ptx::Type::f32, &b)) return false;
  if (!l.dest(l.operand(0), 2, false, &d)) return false;
  Op& op = l.emit(&run_fp8_from_f32);
  op.a = a;
  op.b = b;
  op.d = d.offset;
  op.x = l.other_type() == ptx::Type::e5m2x2;
  op.y = l.has("relu");
  return true;
}

bool convert_fp8_from_f16(Lowering& l) {
  uint32_t a;
  Dest d;
  if (!l.lanes(l.operand(1), ptx::Type::f16x2, &a) || !l.dest(l.operand(0), 2, false, &d)) return false;
  Op& op = l.emit(&run_fp8_from_f16);
  op.a = a;
  op.d = d.offset;
  op.x = l.other_type() == ptx::Type::e5m2x2;
  op.y = l.has("relu");
  return true;
}

bool convert_fp8_to_f16(Lowering& l) {
  uint32_t a;
  Dest d;
  if (!l.lanes(l.operand(1), ptx::Type::b16, &a) || !l.dest(l.operand(0), 4, false, &d)) return false;
  Op& op = l.emit(&run_fp8_to_f16);
  op.a = a;
  op.d = d.offset;
  op.x = l.type() == ptx::Type::e5m2x2;
  op.y = l.has("relu");
  return true;
}

}  // namespace kiln::engine
