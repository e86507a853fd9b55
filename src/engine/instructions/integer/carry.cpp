// SPDX-License-Identifier: Apache-2.0
// How do sums and products of several words propagate their carry? (PTX ISA 9.7.2)
#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings.h"
#include "engine/numbers/comparisons.h"
#include "engine/numbers/integer_operations.h"

namespace kiln::engine {
namespace {

// The carry of each lane is a bit of Warp::carry. op->x: reads it; op->y: writes it.
//
// Each loop does one thing for all lanes, without a branch, or it is no vector code: a loop that
// does everything for a lane takes eight times as long.
template <class T>
struct Carries {
  T of[kWarpSize];

  void read(const Warp& warp, const Op* op) {
    const uint32_t bits = op->x ? warp.carry : 0;
    for (uint32_t i = 0; i < kWarpSize; ++i) of[i] = (bits & kLaneBits[i]) != 0 ? 1 : 0;
  }
  void write(Warp& warp, const Op* op) const {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < kWarpSize; ++i) bits |= of[i] != 0 ? kLaneBits[i] : 0;
    if (op->y) warp.carry = (warp.carry & ~warp.mask) | (bits & warp.mask);
  }
};

template <class T, bool kSubtract>
const Op* run_carry(Warp& warp, const Op* op) {
  const T *a = warp.lanes<T>(op->a), *b = warp.lanes<T>(op->b);
  T result[kWarpSize];
  Carries<T> before, after;
  before.read(warp, op);
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const T in = before.of[i], first = kSubtract ? a[i] - b[i] : a[i] + b[i];
    const T both = kSubtract ? first - in : first + in;
    const T one = kSubtract ? (a[i] < b[i] ? 1 : 0) : (first < a[i] ? 1 : 0);
    const T other = kSubtract ? (first < in ? 1 : 0) : (both < first ? 1 : 0);
    result[i] = both;
    after.of[i] = one | other;
  }
  warp.put(op->d, result);
  after.write(warp, op);
  return op + 1;
}

template <class T, bool kHigh>
const Op* run_mad_carry(Warp& warp, const Op* op) {
  using U = std::make_unsigned_t<T>;
  const T *a = warp.lanes<T>(op->a), *b = warp.lanes<T>(op->b);
  const U* c = warp.lanes<U>(op->c);
  U product[kWarpSize], result[kWarpSize];
  Carries<U> before, after;
  before.read(warp, op);
  for (uint32_t i = 0; i < kWarpSize; ++i)
    product[i] = static_cast<U>(kHigh ? MulHigh::f(a[i], b[i]) : MulLow::f(a[i], b[i]));
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    const U first = product[i] + c[i], both = first + before.of[i];
    result[i] = both;
    after.of[i] = static_cast<U>(first < product[i] ? 1 : 0) | (both < first ? 1 : 0);
  }
  warp.put(op->d, result);
  after.write(warp, op);
  return op + 1;
}

bool lower_carry(Lowering& l, bool subtract, bool carry_in) {
  uint32_t a, b;
  Dest d;
  uint32_t bytes = ptx::bytes_of(l.type());
  if (!l.lanes(l.operand(1), l.type(), &a) || !l.lanes(l.operand(2), l.type(), &b)) return false;
  if (!l.dest(l.operand(0), bytes, false, &d)) return false;
  Op& op =
      l.emit(bytes == 8 ? (subtract ? &run_carry<uint64_t, true> : &run_carry<uint64_t, false>)
                        : (subtract ? &run_carry<uint32_t, true> : &run_carry<uint32_t, false>));
  op.a = a;
  op.b = b;
  op.d = d.offset;
  op.x = carry_in;
  op.y = l.has("cc");
  return true;
}

bool lower_mad_carry(Lowering& l, bool carry_in) {
  uint32_t a, b, c;
  Dest d;
  if (!l.lanes(l.operand(1), l.type(), &a) || !l.lanes(l.operand(2), l.type(), &b) ||
      !l.lanes(l.operand(3), l.type(), &c)) {
    return false;
  }
  if (!l.dest(l.operand(0), ptx::bytes_of(l.type()), false, &d)) return false;
  bool high = l.has("hi");
  return with_type(l.type(), [&](auto t) {
    using T = decltype(t);
    if constexpr (Integer<T> && sizeof(T) >= 4) {
      Op& op = l.emit(high ? &run_mad_carry<T, true> : &run_mad_carry<T, false>);
      op.a = a;
      op.b = b;
      op.c = c;
      op.d = d.offset;
      op.x = carry_in;
      op.y = l.has("cc");
      return true;
    }
    return false;
  });
}

}  // namespace

bool add_carry(Lowering& l) { return lower_carry(l, false, false); }
bool add_with_carry(Lowering& l) { return lower_carry(l, false, true); }
bool sub_carry(Lowering& l) { return lower_carry(l, true, false); }
bool sub_with_borrow(Lowering& l) { return lower_carry(l, true, true); }
bool mad_carry(Lowering& l) { return lower_mad_carry(l, false); }
bool mad_with_carry(Lowering& l) { return lower_mad_carry(l, true); }

}  // namespace kiln::engine
