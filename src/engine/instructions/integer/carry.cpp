// SPDX-License-Identifier: Apache-2.0
// How do sums and products of several words propagate their carry? (PTX ISA 9.7.2)
#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings.h"
#include "engine/numbers/integer_operations.h"

namespace kiln::engine {
namespace {

// The carry of each lane is a bit of Warp::carry. op->x: reads it; op->y: writes it.
template <class T, bool kSubtract>
const Op* run_carry(Warp& warp, const Op* op) {
  const T *a = warp.lanes<T>(op->a), *b = warp.lanes<T>(op->b);
  T result[kWarpSize];
  uint32_t carry = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    unsigned __int128 in = op->x ? warp.carry >> i & 1 : 0;
    unsigned __int128 wide = kSubtract ? static_cast<unsigned __int128>(a[i]) - b[i] - in
                                       : static_cast<unsigned __int128>(a[i]) + b[i] + in;
    result[i] = static_cast<T>(wide);
    carry |= static_cast<uint32_t>(wide >> (sizeof(T) * 8) & 1) << i;
  }
  warp.put(op->d, result);
  if (op->y) warp.carry = (warp.carry & ~warp.mask) | (carry & warp.mask);
  return op + 1;
}

template <class T, bool kHigh>
const Op* run_mad_carry(Warp& warp, const Op* op) {
  using U = std::make_unsigned_t<T>;
  const T *a = warp.lanes<T>(op->a), *b = warp.lanes<T>(op->b);
  const U* c = warp.lanes<U>(op->c);
  U result[kWarpSize];
  uint32_t carry = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) {
    U product = static_cast<U>(kHigh ? MulHigh::f(a[i], b[i]) : MulLow::f(a[i], b[i]));
    unsigned __int128 wide =
        static_cast<unsigned __int128>(product) + c[i] + (op->x ? warp.carry >> i & 1 : 0);
    result[i] = static_cast<U>(wide);
    carry |= static_cast<uint32_t>(wide >> (sizeof(T) * 8) & 1) << i;
  }
  warp.put(op->d, result);
  if (op->y) warp.carry = (warp.carry & ~warp.mask) | (carry & warp.mask);
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
