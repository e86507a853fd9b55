// SPDX-License-Identifier: Apache-2.0
// What do the code generators for AVX2 (x64/v3.h) and for AVX-512 (x64/v4.h) share? Vectors of 256
// and 512 bits have most instructions in common, so this code is written once for both
// (x64/vectors.cpp, x64/vectors_numbers.h, x64/vectors_widths.h).
#pragma once

#include <asmjit/x86.h>

#include <array>
#include <bit>
#include <cstddef>
#include <type_traits>

#include "engine/compile/x64/words.h"

namespace kiln::engine {

using x86::Ymm;
using x86::Zmm;

// Vector: Ymm or Zmm.
template <class Vector>
class X64Vectors : public X64Words {
 public:
  static constexpr bool kIs512 = std::is_same_v<Vector, Zmm>;
  static constexpr uint32_t kLanes = kIs512 ? 16 : 8;
  using X64Words::X64Words;

  uint32_t vector_lanes() const override { return kLanes; }
  uint32_t vector_count() const override { return kIs512 ? 32 : 16; }
  Reg new_vector() override { return cc_.template new_vector<Vector>(); }

  void load(Reg to, Reg base, int64_t offset) override { cc_.vmovups(v(to), at(base, offset)); }
  void store(Reg from, Reg base, int64_t offset) override {
    cc_.vmovups(at(base, offset), v(from));
  }
  void differ(const Reg& all, const Reg& value, const Reg& base, int64_t offset) override {
    bit_xor(v(value), v(value), at(base, offset));
    bit_or(v(all), v(all), v(value));
  }
  void load_splat(Reg to, Reg base, int64_t offset, uint32_t bytes) override;
  void load_small(const Reg& to, const Reg& base, int64_t offset, Number from) override {
    widen_neighbours(v(to), at(base, offset), from);
  }
  bool gathers_small() const override { return true; }
  void load_first(const Reg& to, const Reg& base, int64_t offset, uint32_t bytes) override {
    bytes == 8 ? cc_.vmovq(v(to).xmm(), at(base, offset))
               : cc_.vmovd(v(to).xmm(), at(base, offset));
  }
  // Loads into every lane and keeps one: such a load does not need the unit that moves lanes.
  void load_lane(const Reg& to, const Reg& base, uint32_t lane, uint32_t bytes) override {
    if (lane == 0) return load_splat(to, base, 0, bytes);
    const Vector all = temporary();
    load_splat(all, base, 0, bytes);
    join(to, to, all, words_of(lane, bytes));
  }

  bool gather(const Reg& to, const Reg& base, int64_t offset, const Reg& low, const Reg& high,
              uint32_t bytes) override;
  bool gathers_narrow() const override { return true; }
  void gather_narrow(const Reg& to, const Reg& base, int64_t offset, const Reg& distances,
                     uint32_t shift) override {
    const Mem from = x86::ptr(x(base), v(distances), shift, static_cast<int32_t>(offset));
    cc_.vmovaps(v(to), gathered(from, 4, false));
  }
  bool load_apart(const Reg& to, const Reg& base, int64_t offset, int64_t step,
                  uint32_t bytes) override;
  bool store_apart(const Reg& from, const Reg& base, int64_t offset, int64_t step,
                   uint32_t bytes) override;
  bool loads_some() const override { return true; }

  void copy(Reg to, Reg from) override {
    if (to.id() == from.id()) return;
    if (to.isVec())
      cc_.vmovaps(v(to), v(from));
    else
      cc_.mov(x(to), x(from));
  }
  void splat(Reg to, Reg word, uint32_t bytes) override;
  void constant(Reg to, uint64_t bits, uint32_t bytes) override;
  void steps(Reg to, uint64_t step, uint32_t bytes) override {
    cc_.vmovups(v(to), steps_in_memory(0, step, bytes));
  }
  bool adds_steps() const override { return true; }
  void add_steps(const Reg& to, const Reg& a, int64_t first, int64_t step,
                 uint32_t bytes) override {
    const Mem rises =
        steps_in_memory(static_cast<uint64_t>(first), static_cast<uint64_t>(step), bytes);
    bytes == 8 ? cc_.vpaddq(v(to), v(a), rises) : cc_.vpaddd(v(to), v(a), rises);
  }
  void lane_word(Reg to, Reg vector, uint32_t lane, uint32_t bytes) override;
  void set_lane(Reg to, Reg word, uint32_t lane, uint32_t bytes) override {
    const Vector all = temporary();
    splat(all, word, bytes);
    join(to, to, all, words_of(lane, bytes));
  }
  void order(const Reg& to, const uint8_t* lanes) override;
  void permute(const Reg& to, const Reg& from, const Reg& order) override {
    cc_.vpermd(v(to), v(order), v(from));
  }
  void any_and_differ(Reg any, Reg differ, const List<Reg>& masks) override;
  void mask_to_bits(Reg word, Reg mask, uint32_t first) override;

  bool unary(Does does, Number type, Reg to, Reg a) override;
  bool binary(Does does, Number type, Reg to, Reg a, Reg b) override;
  bool ternary(Does does, Number type, Reg to, Reg a, Reg b, Reg c) override;
  bool shift(Does does, Number type, Reg to, Reg a, uint32_t by) override;
  void funnel(Does does, Reg to, Reg low, Reg high, uint32_t by) override;
  void widen(bool is_signed_value, bool high, Reg to, Reg a) override;
  void mul_wide(bool is_signed_value, bool high, Reg to, Reg a, Reg b) override;
  void mul_wide_by_one(bool is_signed_value, bool high, const Reg& to, const Reg& a,
                       const Reg& b) override;
  void canonicalize(Reg value, Reg nan) override {
    choose(kUnordered, Number::F32, v(value), v(value), v(value), v(value), v(nan));
  }
  void flush(const Reg& to, const Reg& a) override;
  void unpack(Small small, uint32_t part, const Reg& to, const Reg& a) override;
  void pack(Small small, const Reg& to, const std::array<Reg, 2>& parts) override;
  bool from_double(Number to_type, Reg to, Reg low, Reg high) override;
  bool to_double(Number from, bool high, Reg to, Reg a) override;

 protected:
  using Half = std::conditional_t<kIs512, Ymm, x86::Xmm>;
  using Constant = std::conditional_t<kIs512, NotesX64::WideConstant, NotesX64::Constant>;
  static constexpr auto kUnordered = x86::VCmpImm::kUNORD_Q;
  static constexpr auto kOrdered = x86::VCmpImm::kORD_Q;

  static Vector v(const Reg& reg) { return reg.as<Vector>(); }
  Vector temporary() { return this->vector().template as<Vector>(); }

  // Halves, and parts of 128 bits.
  static Half lower(const Vector& a) {
    if constexpr (kIs512)
      return a.ymm();
    else
      return a.xmm();
  }
  void extract_upper(const Half& to, const Vector& a) {
    if constexpr (kIs512)
      cc_.vextracti64x4(to, a, 1);
    else
      cc_.vextracti128(to, a, 1);
  }
  Half half(const Vector& a, bool high) {
    if (!high) return lower(a);
    const Half upper = lower(temporary());
    extract_upper(upper, a);
    return upper;
  }
  void join_halves(const Vector& to, const Vector& low, const Half& high) {
    if constexpr (kIs512)
      cc_.vinserti64x4(to, low, high, 1);
    else
      cc_.vinserti128(to, low, high, 1);
  }
  void extract_part(const x86::Xmm& to, const Vector& a, uint32_t part) {
    if constexpr (kIs512)
      cc_.vextracti32x4(to, a, part);
    else
      cc_.vextracti128(to, a, part);
  }

  // b: a vector or memory.
  template <class B>
  void bit_and(const Vector& to, const Vector& a, const B& b) {
    if constexpr (kIs512)
      cc_.vpandd(to, a, b);
    else
      cc_.vpand(to, a, b);
  }
  template <class B>
  void bit_or(const Vector& to, const Vector& a, const B& b) {
    if constexpr (kIs512)
      cc_.vpord(to, a, b);
    else
      cc_.vpor(to, a, b);
  }
  template <class B>
  void bit_xor(const Vector& to, const Vector& a, const B& b) {
    if constexpr (kIs512)
      cc_.vpxord(to, a, b);
    else
      cc_.vpxor(to, a, b);
  }
  // `yes` in the lanes in which the comparison of two floats holds, and `no` in the others.
  template <class B, class Yes>
  void choose(x86::VCmpImm when, Number type, const Vector& a, const B& b, const Vector& to,
              const Vector& no, const Yes& yes) {
    const auto condition = static_cast<int>(when);
    const bool wide = type == Number::F64;
    if constexpr (kIs512) {
      wide ? cc_.vcmppd(x86::k1, a, b, condition) : cc_.vcmpps(x86::k1, a, b, condition);
      wide ? cc_.k(x86::k1).vblendmpd(to, no, yes) : cc_.k(x86::k1).vblendmps(to, no, yes);
    } else {
      const Vector holds = temporary();
      wide ? cc_.vcmppd(holds, a, b, condition) : cc_.vcmpps(holds, a, b, condition);
      wide ? cc_.vblendvpd(to, no, yes, holds) : cc_.vblendvps(to, no, yes, holds);
    }
  }
  // The sign bits of the lanes of a mask.
  void mask_word(const Gp& to, const Vector& mask) {
    if constexpr (kIs512) {
      cc_.vpmovd2m(x86::k1, mask);
      cc_.kmovw(to.r32(), x86::k1);
    } else {
      cc_.vmovmskps(to.r32(), mask);
    }
  }
  // The rounding modes of VROUNDPS and VRNDSCALEPS; 8: without an exception.
  static constexpr uint32_t kToNearest = 8, kDown = 9, kUp = 10, kToZero = 11;
  void round_vector(const Vector& to, const Vector& a, uint32_t how, bool wide = false) {
    if constexpr (kIs512)
      wide ? cc_.vrndscalepd(to, a, how) : cc_.vrndscaleps(to, a, how);
    else
      wide ? cc_.vroundpd(to, a, how) : cc_.vroundps(to, a, how);
  }

  // Constants: all lanes, one number in all lanes, or `first + lane * step`.
  Mem in_memory(const Constant& bits) { return cc_.in_memory(bits); }
  Mem everywhere_wide(uint64_t bits) {
    const Mem four = cc_.in_memory(NotesX64::Constant{bits, bits, bits, bits});
    return kIs512 ? four._1to8() : four;
  }
  Mem everywhere(uint32_t bits) {
    const uint64_t two = bits * uint64_t{0x100000001};
    const Mem eight = cc_.in_memory(NotesX64::Constant{two, two, two, two});
    return kIs512 ? eight._1to16() : eight;
  }
  Mem steps_in_memory(uint64_t first, uint64_t step, uint32_t bytes);
  // The 32-bit words of a lane in a vector, by bit.
  static uint32_t words_of(uint32_t lane, uint32_t bytes) {
    return bytes == 8 ? 3u << (2 * lane) : 1u << lane;
  }
  // From: a vector or memory.
  template <class From>
  void widen_neighbours(const Vector& to, const From& a, Number from) {
    switch (from) {
      case Number::U8:
        cc_.vpmovzxbd(to, a);
        break;
      case Number::S8:
        cc_.vpmovsxbd(to, a);
        break;
      case Number::S16:
        cc_.vpmovsxwd(to, a);
        break;
      default:
        cc_.vpmovzxwd(to, a);
    }
  }

  // Operations that need different instructions at each width.
  virtual Vector gathered(const Mem& from, uint32_t bytes, bool wide_addresses) = 0;
  virtual void multiply_wide(const Vector& to, const Vector& a, const Vector& b) = 0;
  virtual void pick_wide(bool least, Number type, const Vector& to, const Vector& a,
                         const Vector& b) = 0;
  virtual void move_right_wide(const Vector& to, const Vector& a, uint32_t by) = 0;
  virtual void reciprocal_root(const Vector& to, const Vector& a) = 0;
  virtual void unsigned_to_double(const Vector& to, const Vector& a, bool high) = 0;
  // The low 16 bits of each 32-bit lane, as neighbours in the lower half.
  virtual void low_words(const Vector& to, const Vector& a) = 0;

 private:
  bool unary_integer(Does does, Number type, const Vector& to, const Vector& a);
  bool unary_double(Does does, const Vector& to, const Vector& a);
  bool binary_double(Does does, const Vector& to, const Vector& a, const Vector& b);
  void pick(bool least, Number type, const Vector& to, const Vector& a, const Vector& b);
  void pick_floats(bool least, Number type, const Vector& to, const Vector& a, const Vector& b);
  void power_of_two(const Vector& to, const Vector& a);
  void power_of_two_double(const Vector& x);
  void divide_integers(Does does, Number type, const Vector& to, const Vector& a, const Vector& b);
  void divide_nearly(const Vector& to, const Vector& a, const Vector& b);
  void multiply_high(Number type, const Vector& to, const Vector& a, const Vector& b);
  void round_to_bf16(const Vector& to, const Vector& value);
};

}  // namespace kiln::engine
