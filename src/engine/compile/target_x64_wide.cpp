// SPDX-License-Identifier: Apache-2.0
// How does x86-64 compute with f64? A NaN that an instruction makes has the bits of a GPU's.
#if defined(__x86_64__)
#include "engine/compile/target_x64.h"

namespace kiln::engine {
namespace {

constexpr auto kUnordered = static_cast<int>(x86::VCmpImm::kUNORD_Q);
constexpr uint64_t kSign = uint64_t{1} << 63;

}  // namespace

bool X64::unary_wide(Does does, const Ymm& to, const Ymm& a) {
  switch (does) {
    case Does::Negate: {  // -0 less the number: a NaN keeps its sign
      Ymm zero = temporary();
      constant(zero, kSign, 8);
      cc_.vsubpd(to, zero, a);
      return true;
    }
    case Does::Absolute: {
      Ymm is_nan = temporary(), plain = temporary();
      cc_.vcmppd(is_nan, a, a, kUnordered);
      cc_.vandpd(plain, a, everywhere_wide(~kSign));
      cc_.vblendvpd(to, plain, a, is_nan);
      return true;
    }
    case Does::Root:
      cc_.vsqrtpd(to, a);
      return true;
    case Does::Reciprocal: {
      Ymm one = temporary();
      constant(one, 0x3ff0000000000000u, 8);
      cc_.vdivpd(to, one, a);
      return true;
    }
    default:
      return false;
  }
}

bool X64::binary_wide(Does does, const Ymm& to, const Ymm& a, const Ymm& b) {
  switch (does) {
    case Does::Add:
      cc_.vaddpd(to, a, b);
      return true;
    case Does::Sub:
      cc_.vsubpd(to, a, b);
      return true;
    case Does::Mul:
      cc_.vmulpd(to, a, b);
      return true;
    case Does::Divide:
      cc_.vdivpd(to, a, b);
      return true;
    case Does::Min:
    case Does::Max: {  // as pick() does it
      const bool least = does == Does::Min;
      Ymm one = temporary(), other = temporary(), is_nan = temporary();
      least ? cc_.vminpd(one, a, b) : cc_.vmaxpd(one, a, b);
      least ? cc_.vminpd(other, b, a) : cc_.vmaxpd(other, b, a);
      least ? cc_.vorpd(one, one, other) : cc_.vandpd(one, one, other);
      cc_.vcmppd(is_nan, a, a, kUnordered);
      cc_.vblendvpd(one, one, b, is_nan);
      cc_.vcmppd(is_nan, b, b, kUnordered);
      cc_.vblendvpd(to, one, a, is_nan);
      return true;
    }
    default:
      return false;
  }
}

bool X64::from_double(Number to_type, Reg to, Reg low, Reg high) {
  Ymm first = temporary(), second = temporary();
  if (to_type == Number::F32) {
    cc_.vcvtpd2ps(first.xmm(), v(low));
    cc_.vcvtpd2ps(second.xmm(), v(high));
  } else if (to_type == Number::S32) {
    // Of what has no integer, the instruction gives the least: too large ones are made smaller
    // first. Where one operand is a NaN, the result is the second.
    Ymm most = temporary();
    constant(most, 0x41dfffffffc00000u, 8);  // 2^31 - 1
    cc_.vminpd(first, most, v(low));
    cc_.vminpd(second, most, v(high));
    cc_.vcvttpd2dq(first.xmm(), first);
    cc_.vcvttpd2dq(second.xmm(), second);
  } else {
    return false;
  }
  cc_.vinserti128(v(to), first, second.xmm(), 1);
  return true;
}

bool X64::to_double(Number from, bool high, Reg to, Reg a) {
  Ymm half = temporary();
  if (high)
    cc_.vextracti128(half.xmm(), v(a), 1);
  else
    cc_.vmovaps(half, v(a));
  if (from == Number::F32) {
    cc_.vcvtps2pd(v(to), half.xmm());
  } else if (from == Number::S32) {
    cc_.vcvtdq2pd(v(to), half.xmm());
  } else if (from == Number::U32) {
    // Less 2^31 with sign, and back: both are exact.
    cc_.vpxor(half, half, everywhere(0x80000000u));
    cc_.vcvtdq2pd(v(to), half.xmm());
    cc_.vaddpd(v(to), v(to), everywhere_wide(0x41e0000000000000u));
  } else {
    return false;
  }
  return true;
}

}  // namespace kiln::engine
#endif
