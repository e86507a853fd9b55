// SPDX-License-Identifier: Apache-2.0
// How do small integers in wide registers change their type? In loops that the compiler turns into
// vector code; the general handler goes lane by lane.
#include "engine/instructions/convert/convert_common.h"

#include "engine/decode/meanings.h"
#include "engine/machine/warp.h"
#include "engine/numbers/convert_parts.h"

namespace kiln::engine {
namespace {

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

// An integer of at most 16 bits is exact in both float types.
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

// By the number of bytes of both registers.
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

bool is_integer(ptx::Type type) {
  const char kind = ptx::class_of(type);
  return kind == 'u' || kind == 's';
}

Handler handler_for(const CommonConversion& how) {
  const bool to_float = how.to == ptx::Type::f32 || how.to == ptx::Type::f64;
  const uint32_t from_bytes = ptx::bytes_of(how.from), to_bytes = ptx::bytes_of(how.to);
  if (is_integer(how.from) && is_integer(how.to) && !how.saturate)
    return cast_handler(how.from_register, how.to_register);
  if (is_integer(how.from) && from_bytes <= 2 && to_float && !how.saturate &&
      how.to_register == to_bytes)
    return small_to_float(how.from_register, how.to);
  return float_handler_for(how);
}

}  // namespace

// Op::imm also says whether the operand is a scalar, which it is if the result is one.
void describe_common(Meanings& to) {
  const auto add = [&](Handler handler, Number type, Number from) {
    const bool wide = bytes_of(type) == 8 || bytes_of(from) == 8;
    to.add(handler, {wide ? Does::Lanewise : Does::Cast, type, from, 1, 1});
  };
  describe_floats(to);
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
                             how.rounding,
                             how.integral,
                             how.saturate,
                             how.flush};
  l.emit_value(l.operand(0), how.to_register, a.uniform, handler, a, {}, {}, wide_parts.bits());
  return true;
}

}  // namespace kiln::engine
