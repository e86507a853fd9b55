// SPDX-License-Identifier: Apache-2.0
// How does aarch64 compute with f64? A NaN that an instruction makes is positive; a GPU's is
// negative (canonicalize_wide).
#if defined(__aarch64__)
#include "engine/compile/target_a64.h"

namespace kiln::engine {

bool A64::unary_wide(Does does, const Vec& to, const Vec& a) {
  switch (does) {
    case Does::Negate:
      cc_.fneg(to.d2(), a.d2());
      return true;
    case Does::Absolute:
      cc_.fabs(to.d2(), a.d2());
      return true;
    case Does::Root:
      cc_.fsqrt(to.d2(), a.d2());
      return true;
    case Does::Reciprocal: {
      Vec one = temporary();
      constant(one, 0x3ff0000000000000u, 8);
      cc_.fdiv(to.d2(), one.d2(), a.d2());
      return true;
    }
    default:
      return false;
  }
}

bool A64::binary_wide(Does does, const Vec& to, const Vec& a, const Vec& b) {
  switch (does) {
    case Does::Add:
      cc_.fadd(to.d2(), a.d2(), b.d2());
      return true;
    case Does::Sub:
      cc_.fsub(to.d2(), a.d2(), b.d2());
      return true;
    case Does::Mul:
      cc_.fmul(to.d2(), a.d2(), b.d2());
      return true;
    case Does::Divide:
      cc_.fdiv(to.d2(), a.d2(), b.d2());
      return true;
    case Does::Min:
      cc_.fminnm(to.d2(), a.d2(), b.d2());
      return true;
    case Does::Max:
      cc_.fmaxnm(to.d2(), a.d2(), b.d2());
      return true;
    default:
      return false;
  }
}

bool A64::from_double(Number to_type, Reg to, Reg low, Reg high) {
  Vec first = temporary(), second = temporary();
  if (to_type == Number::F32) {
    cc_.fcvtn(first.s2(), v(low).d2());
    cc_.fcvtn2(first.s4(), v(high).d2());
    cc_.mov(v(to).b16(), first.b16());
    return true;
  }
  if (to_type != Number::S32) return false;
  // Both saturate; a NaN, which they make 0, becomes the least.
  const auto whole = [&](const Vec& d, const Reg& from) {
    Vec is_number = temporary(), least = temporary();
    constant(least, 0xffffffff80000000u, 8);
    cc_.fcvtzs(d.d2(), v(from).d2());
    cc_.fcmeq(is_number.d2(), v(from).d2(), v(from).d2());
    cc_.bif(d.b16(), least.b16(), is_number.b16());
  };
  whole(first, low);
  whole(second, high);
  cc_.sqxtn(first.s2(), first.d2());
  cc_.sqxtn2(first.s4(), second.d2());
  cc_.mov(v(to).b16(), first.b16());
  return true;
}

bool A64::to_double(Number from, bool high, Reg to, Reg a) {
  if (from == Number::F32) {
    high ? cc_.fcvtl2(v(to).d2(), v(a).s4()) : cc_.fcvtl(v(to).d2(), v(a).s2());
    return true;
  }
  if (from != Number::S32 && from != Number::U32) return false;
  widen(from == Number::S32, high, to, a);  // exact, as what follows
  from == Number::S32 ? cc_.scvtf(v(to).d2(), v(to).d2()) : cc_.ucvtf(v(to).d2(), v(to).d2());
  return true;
}

}  // namespace kiln::engine
#endif
