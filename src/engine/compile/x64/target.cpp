// SPDX-License-Identifier: Apache-2.0
// How does x86-64 do what the compiler asks? With AVX2, FMA and BMI2, the level x86-64-v3.
#if defined(__x86_64__)
#include "engine/compile/x64/target.h"

#include <cstdlib>

namespace kiln::engine {

bool X64::finish(std::vector<std::byte>* bytes) {
  cc_.bind(end_);
  cc_.vzeroupper();  // what follows may be code without AVX
  cc_._emitI(x86::Inst::kIdRet);
  return generator_->registers.run(cc_, bytes);
}

void X64::any_and_differ(Reg any, Reg differ, const List<Reg>& masks) {
  Ymm some = temporary(), every = temporary();
  cc_.vmovaps(some, v(masks[0]));
  cc_.vmovaps(every, v(masks[0]));
  for (size_t i = 1; i < masks.size(); ++i) {
    cc_.vorps(some, some, v(masks[i]));
    cc_.vandps(every, every, v(masks[i]));
  }
  // They differ if any lane is set and any is not.
  cc_.vmovmskps(w(differ), every);
  cc_.xor_(w(differ), 0xff);
  cc_.vmovmskps(w(any), some);
  cc_.test(w(any), w(any));
  cc_.cmovz(w(differ), w(any));
}

// By a register of its own: the gather reads what is there, and `to` may be in memory.
Ymm X64::gathered(const Mem& from, uint32_t bytes, bool wide) {
  Ymm mask = temporary(), all = temporary();
  cc_.vpcmpeqd(mask, mask, mask);
  cc_.vpxor(all, all, all);
  if (bytes == 8)
    cc_.vpgatherqq(all, from, mask);
  else if (wide)
    cc_.vpgatherqd(all.xmm(), from, mask.xmm());
  else
    cc_.vpgatherdd(all, from, mask);
  return all;
}

bool X64::gather(const Reg& to, const Reg& base, int64_t offset, const Reg& low, const Reg& high,
                 uint32_t bytes) {
  const auto behind = static_cast<int32_t>(offset);
  const Ymm lower = gathered(x86::ptr(x(base), v(low), 0, behind), bytes, true);
  if (bytes == 8) {
    cc_.vmovaps(v(to), lower);
    return true;
  }
  const Ymm upper = gathered(x86::ptr(x(base), v(high), 0, behind), 4, true);
  cc_.vinserti128(v(to), lower, upper.xmm(), 1);
  return true;
}

bool X64::load_apart(const Reg& to, const Reg& base, int64_t offset, int64_t step, uint32_t bytes) {
  if (std::abs(step) >= int64_t{1} << 28 || offset != static_cast<int32_t>(offset)) return false;
  Ymm distances = temporary();
  steps(distances, static_cast<uint64_t>(step), bytes);
  const Mem from = x86::ptr(x(base), distances, 0, static_cast<int32_t>(offset));
  cc_.vmovaps(v(to), gathered(from, bytes, false));
  return true;
}

bool X64::store_apart(const Reg& from, const Reg& base, int64_t offset, int64_t step,
                      uint32_t bytes) {
  const uint32_t in_half = bytes == 8 ? 2 : 4;
  Ymm upper = temporary();
  cc_.vextracti128(upper.xmm(), v(from), 1);
  for (uint32_t lane = 0; lane < in_half * 2; ++lane) {
    const x86::Xmm half = lane < in_half ? v(from).xmm() : upper.xmm();
    const Mem to = at(base, offset + step * lane);
    const uint32_t element = lane % in_half;
    if (bytes == 1)
      cc_.vpextrb(to, half, element * 4);
    else if (bytes == 2)
      cc_.vpextrw(to, half, element * 2);
    else
      bytes == 8 ? cc_.vpextrq(to, half, element) : cc_.vpextrd(to, half, element);
  }
  return true;
}

void X64::load_small(const Reg& to, const Reg& base, int64_t offset, Number from) {
  widen_neighbours(v(to), at(base, offset), from);
}

// Each 128 bits are packed by themselves: their results are joined.
void X64::store_small(const Reg& from, const Reg& base, int64_t offset, uint32_t bytes) {
  Ymm low = temporary(), high = temporary();
  cc_.vpand(low, v(from), everywhere(bytes == 2 ? 0xffffu : 0xffu));
  cc_.vextracti128(high.xmm(), low, 1);
  cc_.vpackusdw(low.xmm(), low.xmm(), high.xmm());
  if (bytes == 2) {
    cc_.vmovups(at(base, offset), low.xmm());
    return;
  }
  cc_.vpackuswb(low.xmm(), low.xmm(), low.xmm());
  cc_.vpextrq(at(base, offset), low.xmm(), 0);
}

void X64::load_small_word(const Reg& to, const Reg& base, int64_t offset, Number from,
                          uint32_t bytes) {
  Mem at = this->at(base, offset);
  at.setSize(bytes_of(from));
  const bool is_signed_value = from == Number::S8 || from == Number::S16;
  is_signed_value ? cc_.movsx(w(to), at) : cc_.movzx(w(to), at);
  if (is_signed_value && bytes == 2) cc_.and_(w(to), 0xffff);
}

void X64::lane_word(Reg to, Reg vector, uint32_t lane, uint32_t bytes) {
  const uint32_t in_half = 16 / bytes;
  x86::Xmm half = v(vector).xmm();
  if (lane >= in_half) {
    half = temporary().xmm();
    cc_.vextracti128(half, v(vector), 1);
    lane -= in_half;
  }
  // Not VMOVD for lane 0: of a vector that is on the stack asmjit 1.9 makes a load to a vector.
  bytes == 8 ? cc_.vpextrq(x(to), half, lane) : cc_.vpextrd(w(to), half, lane);
}

void X64::bits_to_mask(Reg to, Reg word, uint32_t first) {
  constexpr std::array<uint32_t, 8> kLaneBits = {1, 2, 4, 8, 16, 32, 64, 128};
  Gp moved = temporary_word();
  cc_.mov(moved, x(word));
  if (first) cc_.shr(moved, first);
  Ymm lanes = temporary(), bits = temporary();
  splat(lanes, moved, 4);
  cc_.vmovaps(bits, in_memory(std::bit_cast<NotesX64::Constant>(kLaneBits)));
  cc_.vpand(lanes, lanes, bits);
  cc_.vpcmpeqd(v(to), lanes, bits);
}

void X64::bits_to_masks(const List<Reg>& to, const Reg& word) {
  Ymm all = temporary(), own = temporary();
  splat(all, word, 4);
  for (size_t i = 0; i < to.size(); ++i) {
    std::array<uint32_t, 8> bits;
    for (size_t lane = 0; lane < 8; ++lane) bits[lane] = 1u << (i * 8 + lane);
    const Mem wanted = in_memory(std::bit_cast<NotesX64::Constant>(bits));
    cc_.vpand(own, all, wanted);
    cc_.vpcmpeqd(v(to[i]), own, wanted);
  }
}

bool X64::unary(Does does, Number type, Reg to, Reg a) {
  const Ymm d = v(to), s = v(a);
  if (does == Does::Not) {
    cc_.vpxor(d, s, everywhere(0xffffffffu));
    return true;
  }
  if (type == Number::F64) return unary_wide(does, d, s);
  if (does == Does::Negate && type != Number::F32) {
    Ymm zero = temporary();
    constant(zero, 0, 4);
    bytes_of(type) == 8 ? cc_.vpsubq(d, zero, s) : cc_.vpsubd(d, zero, s);
    return true;
  }
  if (does == Does::Absolute && type == Number::S32) {
    cc_.vpabsd(d, s);
    return true;
  }
  if (type != Number::F32) return false;
  switch (does) {
    case Does::PowerOfTwo:
      power_of_two(d, s);
      return true;
    case Does::Negate:
      cc_.vxorps(d, s, everywhere(0x80000000u));
      return true;
    case Does::Absolute:
      cc_.vandps(d, s, everywhere(0x7fffffffu));
      return true;
    case Does::Root:
      cc_.vsqrtps(d, s);
      return true;
    case Does::Saturate: {
      // Of a NaN, and of two zeros, an instruction takes the second operand.
      Ymm above = temporary(), zero = temporary();
      constant(zero, 0, 4);
      cc_.vmaxps(above, s, zero);
      cc_.vminps(d, above, everywhere(0x3f800000u));
      return true;
    }
    case Does::Nearest:
      cc_.vroundps(d, s, 8);  // 8: no exception
      return true;
    case Does::Floor:
      cc_.vroundps(d, s, 9);
      return true;
    case Does::Ceiling:
      cc_.vroundps(d, s, 10);
      return true;
    case Does::Truncate:
      cc_.vroundps(d, s, 11);
      return true;
    case Does::Reciprocal: {
      Ymm one = temporary();
      constant(one, 0x3f800000u, 4);
      cc_.vdivps(d, one, s);
      return true;
    }
    case Does::ReciprocalRoot: {
      Ymm low = temporary(), high = temporary(), one = temporary();
      constant(one, 0x3ff0000000000000u, 8);
      cc_.vextractf128(high.xmm(), s, 1);
      cc_.vcvtps2pd(low, s.xmm());
      cc_.vcvtps2pd(high, high.xmm());
      for (const Ymm& half : {low, high}) {
        cc_.vsqrtpd(half, half);
        cc_.vdivpd(half, one, half);
        cc_.vcvtpd2ps(half.xmm(), half);
      }
      cc_.vinsertf128(d, low, high.xmm(), 1);
      return true;
    }
    default:
      return false;
  }
}

// The number where the other is a NaN, and -0 as less than 0; an instruction takes the second of
// two zeros, and whatever the second is where one is a NaN.
void X64::pick(bool least, Number type, const Reg& to, const Reg& a, const Reg& b) {
  if (type != Number::F32) {
    Ymm above = temporary();
    compare(Comparison::Gt, type, above, a, b);
    least ? cc_.vblendvpd(v(to), v(a), v(b), above) : cc_.vblendvpd(v(to), v(b), v(a), above);
    return;
  }
  Ymm one = temporary(), other = temporary(), is_nan = temporary();
  const auto unordered = static_cast<int>(x86::VCmpImm::kUNORD_Q);
  if (least) {
    cc_.vminps(one, v(a), v(b));
    cc_.vminps(other, v(b), v(a));
    cc_.vorps(one, one, other);
  } else {
    cc_.vmaxps(one, v(a), v(b));
    cc_.vmaxps(other, v(b), v(a));
    cc_.vandps(one, one, other);
  }
  cc_.vcmpps(is_nan, v(a), v(a), unordered);
  cc_.vblendvps(one, one, v(b), is_nan);
  cc_.vcmpps(is_nan, v(b), v(b), unordered);
  cc_.vblendvps(v(to), one, v(a), is_nan);
}

// The low 64 bits: the products of the halves that reach them.
void X64::multiply_wide(const Ymm& to, const Ymm& a, const Ymm& b) {
  Ymm across = temporary(), other = temporary(), low = temporary();
  cc_.vpsrlq(across, a, 32);
  cc_.vpmuludq(across, across, b);
  cc_.vpsrlq(other, b, 32);
  cc_.vpmuludq(other, other, a);
  cc_.vpaddq(across, across, other);
  cc_.vpsllq(across, across, 32);
  cc_.vpmuludq(low, a, b);
  cc_.vpaddq(to, low, across);
}

bool X64::binary(Does does, Number type, Reg to, Reg a, Reg b) {
  const Ymm d = v(to), l = v(a), r = v(b);
  const bool wide = bytes_of(type) == 8, real = type == Number::F32;
  if (type == Number::F64) return binary_wide(does, d, l, r);
  switch (does) {
    case Does::And:
      cc_.vpand(d, l, r);
      return true;
    case Does::Or:
      cc_.vpor(d, l, r);
      return true;
    case Does::Xor:
      cc_.vpxor(d, l, r);
      return true;
    case Does::Add:
      real ? cc_.vaddps(d, l, r) : wide ? cc_.vpaddq(d, l, r) : cc_.vpaddd(d, l, r);
      return true;
    case Does::Sub:
      real ? cc_.vsubps(d, l, r) : wide ? cc_.vpsubq(d, l, r) : cc_.vpsubd(d, l, r);
      return true;
    case Does::Mul:
      if (wide)
        multiply_wide(d, l, r);
      else
        real ? cc_.vmulps(d, l, r) : cc_.vpmulld(d, l, r);
      return true;
    case Does::Divide:
    case Does::Remainder:
      if (wide) return false;
      real ? (void)cc_.vdivps(d, l, r) : divide_integers(does, type, to, a, b);
      return true;
    case Does::DivideNearly:
      divide_nearly(d, l, r);
      return true;
    case Does::MulHigh:
      if (wide) return false;
      multiply_high(type, d, l, r);
      return true;
    case Does::Min:
      if (real || wide)
        pick(true, type, to, a, b);
      else
        is_signed(type) ? cc_.vpminsd(d, l, r) : cc_.vpminud(d, l, r);
      return true;
    case Does::Max:
      if (real || wide)
        pick(false, type, to, a, b);
      else
        is_signed(type) ? cc_.vpmaxsd(d, l, r) : cc_.vpmaxud(d, l, r);
      return true;
    // By the width or more: nothing is left, or copies of the sign, as in PTX.
    case Does::ShiftLeft:
      if (wide || real) return false;
      cc_.vpsllvd(d, l, r);
      return true;
    case Does::ShiftRight:
      if (wide || real) return false;
      is_signed(type) ? cc_.vpsravd(d, l, r) : cc_.vpsrlvd(d, l, r);
      return true;
    default:
      return false;
  }
}

bool X64::ternary(Does does, Number type, Reg to, Reg a, Reg b, Reg c) {
  if (does == Does::FunnelLeft || does == Does::FunnelRight) {
    // A shift by 32, the rest of one by 0, leaves nothing.
    const bool right = does == Does::FunnelRight;
    Ymm by = temporary(), rest = temporary(), low = temporary(), high = temporary();
    cc_.vpand(by, v(c), everywhere(31));
    constant(rest, 32, 4);
    cc_.vpsubd(rest, rest, by);
    cc_.vpsrlvd(low, v(a), right ? by : rest);
    cc_.vpsllvd(high, v(b), right ? rest : by);
    cc_.vpor(v(to), low, high);
    return true;
  }
  if (does != Does::Mad) return false;
  if (type == Number::U64 || type == Number::S64) {
    Ymm product = temporary();
    multiply_wide(product, v(a), v(b));
    cc_.vpaddq(v(to), product, v(c));
    return true;
  }
  const bool wide = type == Number::F64;
  if (!wide && type != Number::F32) {
    Ymm product = temporary();
    cc_.vpmulld(product, v(a), v(b));
    cc_.vpaddd(v(to), product, v(c));
    return true;
  }
  // The first operand is read and written.
  if (to.id() == a.id() || to.id() == b.id()) {
    const Reg& other = to.id() == a.id() ? b : a;
    wide ? cc_.vfmadd213pd(v(to), v(other), v(c)) : cc_.vfmadd213ps(v(to), v(other), v(c));
  } else {
    copy(to, c);
    wide ? cc_.vfmadd231pd(v(to), v(a), v(b)) : cc_.vfmadd231ps(v(to), v(a), v(b));
  }
  return true;
}

// There is no instruction for the sign of 64 bits.
void X64::move_right_wide(const Ymm& to, const Ymm& a, uint32_t by) {
  Ymm sign = temporary(), moved = temporary();
  constant(sign, 0, 8);
  cc_.vpcmpgtq(sign, sign, a);
  cc_.vpsllq(sign, sign, 64 - by);
  cc_.vpsrlq(moved, a, by);
  cc_.vpor(to, moved, sign);
}

bool X64::shift(Does does, Number type, Reg to, Reg a, uint32_t by) {
  const Ymm d = v(to), s = v(a);
  const bool wide = bytes_of(type) == 8;
  if (by == 0) {
    copy(to, a);
  } else if (does == Does::ShiftLeft) {
    wide ? cc_.vpsllq(d, s, by) : cc_.vpslld(d, s, by);
  } else if (is_signed(type) && wide) {
    move_right_wide(d, s, by);
  } else if (is_signed(type)) {
    cc_.vpsrad(d, s, by);
  } else {
    wide ? cc_.vpsrlq(d, s, by) : cc_.vpsrld(d, s, by);
  }
  return true;
}

bool X64::convert(Number to_type, Number from, Reg to, Reg a) {
  if (to_type == Number::F32 && from == Number::S32) {
    cc_.vcvtdq2ps(v(to), v(a));
  } else if (to_type == Number::F32 && from == Number::U32) {
    // Both halves are exact; their sum is rounded once.
    Ymm high = temporary(), low = temporary();
    cc_.vpsrld(high, v(a), 16);
    cc_.vpand(low, v(a), everywhere(0xffff));
    cc_.vcvtdq2ps(high, high);
    cc_.vcvtdq2ps(low, low);
    cc_.vfmadd132ps(high, low, everywhere(0x47800000u));  // 65536
    copy(to, high);
  } else if (to_type == Number::S32 && from == Number::F32) {
    // The instruction gives the least integer for all that has none: above the most, invert it; of
    // a NaN it is 0.
    Ymm above = temporary(), is_number = temporary(), whole = temporary();
    cc_.vcmpps(above, v(a), everywhere(0x4f000000u), static_cast<int>(x86::VCmpImm::kGE_OQ));
    cc_.vcmpps(is_number, v(a), v(a), static_cast<int>(x86::VCmpImm::kORD_Q));
    cc_.vcvttps2dq(whole, v(a));
    cc_.vpxor(whole, whole, above);
    cc_.vpand(v(to), whole, is_number);
  } else if (to_type == Number::U32 && from == Number::F32) {
    // Less 2^31 where it is no less than that; from 2^32 on the most. Of a NaN, and below 0, it is
    // 0: an instruction takes the second operand.
    Ymm value = temporary(), large = temporary(), less = temporary();
    constant(less, 0, 4);
    cc_.vmaxps(value, v(a), less);
    cc_.vcmpps(large, value, everywhere(0x4f000000u), static_cast<int>(x86::VCmpImm::kGE_OQ));
    cc_.vandps(less, large, everywhere(0x4f000000u));
    cc_.vsubps(less, value, less);
    cc_.vcvttps2dq(less, less);
    cc_.vpslld(large, large, 31);
    cc_.vpxor(less, less, large);
    cc_.vcmpps(large, value, everywhere(0x4f800000u), static_cast<int>(x86::VCmpImm::kGE_OQ));
    cc_.vpor(v(to), less, large);
  } else {
    return false;
  }
  return true;
}

void X64::widen(bool is_signed_value, bool high, Reg to, Reg a) {
  x86::Xmm half = v(a).xmm();
  if (high) {
    half = temporary().xmm();
    cc_.vextracti128(half, v(a), 1);
  }
  is_signed_value ? cc_.vpmovsxdq(v(to), half) : cc_.vpmovzxdq(v(to), half);
}

// Of the low words of 64 bits, whatever the high ones are.
void X64::mul_wide(bool is_signed_value, bool high, Reg to, Reg a, Reg b) {
  Ymm l = temporary(), r = temporary();
  widen(false, high, l, a);
  widen(false, high, r, b);
  is_signed_value ? cc_.vpmuldq(v(to), l, r) : cc_.vpmuludq(v(to), l, r);
}

uint32_t least_row_lanes() { return 8; }

bool has_target() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c");
}

std::unique_ptr<Target> make_target() { return has_target() ? std::make_unique<X64>() : nullptr; }

}  // namespace kiln::engine

// Debian's archive for x86-64 has one object that a shared library cannot hold: it names stderr as
// programs do. Its three functions are here instead, so that the linker does not take it. What
// asmjit would print has no reader; a failed check of its own ends the process, as there.
ASMJIT_BEGIN_NAMESPACE
namespace DebugUtils {

const char* errorAsString(Error) noexcept { return "an error of asmjit"; }

void debugOutput(const char*) noexcept {}

void assertionFailed(const char*, int, const char*) noexcept { std::abort(); }

}  // namespace DebugUtils
ASMJIT_END_NAMESPACE
#endif
