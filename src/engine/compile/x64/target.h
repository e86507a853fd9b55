// SPDX-License-Identifier: Apache-2.0
// What does the code generator of x86-64 keep? (x64/target.cpp, x64/wide.cpp,
// x64/words.cpp)
//
// Vectors are the 256 bits of AVX2. Its instructions work on two halves of 128 bits, and few of
// them move a lane from one to the other: where that is needed, it says so here.
#pragma once

#include <asmjit/x86.h>

#include <array>
#include <bit>
#include <cstddef>
#include <vector>

#include "engine/compile/x64/words.h"

namespace kiln::engine {

using x86::Ymm;

inline Ymm v(const Reg& reg) { return reg.as<Ymm>(); }

class X64 final : public X64Words {
 public:
  X64() : X64Words(kCodesV3) {}
  uint32_t vector_lanes() const override { return 8; }
  uint32_t vector_count() const override { return 16; }

  Reg new_vector() override { return cc_.new_vector(); }
  void load(Reg to, Reg base, int64_t offset) override { cc_.vmovups(v(to), at(base, offset)); }
  void store(Reg from, Reg base, int64_t offset) override {
    cc_.vmovups(at(base, offset), v(from));
  }
  void differ(const Reg& all, const Reg& value, const Reg& base, int64_t offset) override {
    cc_.vpxor(v(value), v(value), at(base, offset));
    cc_.vpor(v(all), v(all), v(value));
  }
  void load_splat(Reg to, Reg base, int64_t offset, uint32_t bytes) override {
    if (bytes < 4) {
      Gp word = temporary_word();
      load_small_word(word, base, offset, Number::U16, 2);
      return splat(to, word, 4);
    }
    bytes == 8 ? cc_.vbroadcastsd(v(to), at(base, offset))
               : cc_.vbroadcastss(v(to), at(base, offset));
  }
  void load_small(const Reg& to, const Reg& base, int64_t offset, Number from) override;
  void store_small(const Reg& from, const Reg& base, int64_t offset, uint32_t bytes) override;
  bool gathers_small() const override { return true; }
  void insert_small(const Reg& to, const Reg& base, int64_t offset, uint32_t lane,
                    uint32_t bytes) override {
    const x86::Xmm all = v(to).xmm();
    bytes == 1 ? cc_.vpinsrb(all, all, at(base, offset), lane)
               : cc_.vpinsrw(all, all, at(base, offset), lane);
  }
  void widen_small(const Reg& to, const Reg& a, Number from) override {
    widen_neighbours(v(to), v(a).xmm(), from);
  }
  // Into every lane, and then the one of them: a load needs no unit that moves lanes.
  void load_lane(const Reg& to, const Reg& base, uint32_t lane, uint32_t bytes) override {
    if (lane == 0) return load_splat(to, base, 0, bytes);
    Ymm all = temporary();
    load_splat(all, base, 0, bytes);
    blend_lane(to, all, lane, bytes);
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

  bool load_elements(const List<Reg>& to, const Reg& base, int64_t offset) override;
  bool store_elements(const List<Reg>& from, const Reg& base, int64_t offset) override;

  void copy(Reg to, Reg from) override {
    if (to.id() == from.id()) return;
    if (to.isVec())
      cc_.vmovaps(v(to), v(from));
    else
      cc_.mov(x(to), x(from));
  }
  void splat(Reg to, Reg word, uint32_t bytes) override {
    if (bytes == 8) {
      cc_.vmovq(v(to).xmm(), x(word));
      cc_.vpbroadcastq(v(to), v(to).xmm());
    } else {
      cc_.vmovd(v(to).xmm(), w(word));
      cc_.vpbroadcastd(v(to), v(to).xmm());
    }
  }
  void constant(Reg to, uint64_t bits, uint32_t bytes) override {
    if (bits == 0)
      cc_.vpxor(v(to), v(to), v(to));
    else
      cc_.vmovaps(v(to), bytes == 8 ? everywhere_wide(bits) : everywhere(narrow_bits(bits)));
  }
  void steps(Reg to, uint64_t step, uint32_t bytes) override {
    cc_.vmovaps(v(to), steps_in_memory(0, step, bytes));
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
    Ymm all = temporary();
    splat(all, word, bytes);
    blend_lane(to, all, lane, bytes);
  }

  void any_and_differ(Reg any, Reg differ, const List<Reg>& masks) override;
  void jump_if_lanes(const Reg& value, uint64_t bits, uint32_t bytes, const Label& to) override {
    if (bits == (bytes == 8 ? ~uint64_t{0} : 0xffffffffu))
      cc_.vptest(v(value), v(value));
    else
      cc_.vptest(v(value),
                 bytes == 8 ? everywhere_wide(bits) : everywhere(static_cast<uint32_t>(bits)));
    cc_.jnz(to);
  }
  bool unary(Does does, Number type, Reg to, Reg a) override;
  bool binary(Does does, Number type, Reg to, Reg a, Reg b) override;
  bool ternary(Does does, Number type, Reg to, Reg a, Reg b, Reg c) override;
  bool shift(Does does, Number type, Reg to, Reg a, uint32_t by) override;
  void funnel(Does does, Reg to, Reg low, Reg high, uint32_t by) override {
    const bool right = does == Does::FunnelRight;
    Ymm upper = temporary(), lower = temporary();
    cc_.vpslld(upper, v(high), right ? 32 - by : by);
    cc_.vpsrld(lower, v(low), right ? by : 32 - by);
    cc_.vpor(v(to), upper, lower);
  }
  bool convert(Number to_type, Number from, Reg to, Reg a) override;
  void compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) override;
  void widen(bool is_signed_value, bool high, Reg to, Reg a) override;
  void mul_wide(bool is_signed_value, bool high, Reg to, Reg a, Reg b) override;
  void mul_wide_by_one(bool is_signed_value, bool high, const Reg& to, const Reg& a,
                       const Reg& b) override {
    Ymm wide = temporary();
    widen(false, high, wide, a);
    is_signed_value ? cc_.vpmuldq(v(to), wide, v(b)) : cc_.vpmuludq(v(to), wide, v(b));
  }
  void narrow(Reg to, Reg low, Reg high) override {
    Ymm halves = temporary();
    cc_.vshufps(halves, v(low), v(high), 0x88);  // the even words, of each 128 bits
    cc_.vpermq(v(to), halves, 0xd8);
  }
  void exchange(const Reg& to, const Reg& from, uint32_t bits) override {
    constexpr uint8_t kWords[4] = {0xe4, 0xb1, 0x4e, 0x1b};  // of each 128 bits
    if (bits & 3) cc_.vshufps(v(to), v(from), v(from), kWords[bits & 3]);
    if (bits & 4) cc_.vpermq(v(to), v(bits & 3 ? to : from), 0x4e);
  }
  void order(const Reg& to, const uint8_t* lanes) override {
    std::array<uint32_t, 8> numbers{};
    for (uint32_t lane = 0; lane < 8; ++lane) numbers[lane] = lanes[lane] % 8;
    cc_.vmovaps(v(to), in_memory(std::bit_cast<NotesX64::Constant>(numbers)));
  }
  void permute(const Reg& to, const Reg& from, const Reg& order) override {
    cc_.vpermd(v(to), v(order), v(from));
  }
  void join(const Reg& to, const Reg& a, const Reg& b, uint32_t lanes) override {
    cc_.vpblendd(v(to), v(a), v(b), lanes);
  }
  void select(Reg to, Reg mask, Reg a, Reg b) override {
    cc_.vblendvps(v(to), v(b), v(a), v(mask));
  }
  void load_blended(const Reg& to, const Reg& base, int64_t offset, const Reg& mask,
                    const Reg& from) override {
    cc_.vblendvps(v(to), v(from), at(base, offset), v(mask));
  }
  bool store_some(const Reg& from, const Reg& base, int64_t offset, const Reg& mask,
                  uint32_t bytes) override {
    bytes == 8 ? cc_.vmaskmovpd(at(base, offset), v(mask), v(from))
               : cc_.vmaskmovps(at(base, offset), v(mask), v(from));
    return true;
  }
  bool loads_some() const override { return true; }
  void load_some(const Reg& to, const Reg& base, int64_t offset, const Reg& mask) override {
    cc_.vpmaskmovd(v(to), v(mask), at(base, offset));
  }
  void select_bits(Reg to, Reg bits, Reg a, Reg b) override {
    Ymm first = temporary(), second = temporary();
    cc_.vandps(first, v(bits), v(a));
    cc_.vandnps(second, v(bits), v(b));
    cc_.vorps(v(to), first, second);
  }
  void canonicalize(Reg value, Reg nan) override {
    Ymm is_nan = temporary();
    cc_.vcmpps(is_nan, v(value), v(value), static_cast<int>(x86::VCmpImm::kUNORD_Q));
    cc_.vblendvps(v(value), v(value), v(nan), is_nan);
  }
  // Of a magnitude below the least normal number the sign alone is left.
  void flush(const Reg& to, const Reg& a) override {
    Ymm least = temporary();
    cc_.vandps(least, v(a), everywhere(0x7fffffffu));
    cc_.vcmpps(least, least, everywhere(0x00800000u), static_cast<int>(x86::VCmpImm::kLT_OQ));
    cc_.vandps(least, least, everywhere(0x7fffffffu));
    cc_.vandnps(v(to), least, v(a));
  }
  void unpack(Small small, uint32_t part, const Reg& to, const Reg& a) override;
  void pack(Small small, const Reg& to, const std::array<Reg, 2>& parts) override;
  bool from_double(Number to_type, Reg to, Reg low, Reg high) override;
  bool to_double(Number from, bool high, Reg to, Reg a) override;
  void bits_to_mask(Reg to, Reg word, uint32_t first) override;
  void bits_to_masks(const List<Reg>& to, const Reg& word) override;
  void mask_to_bits(Reg word, Reg mask, uint32_t first) override {
    Gp lanes = temporary_word();
    cc_.vmovmskps(lanes.r32(), v(mask));
    if (first) cc_.shl(lanes, first);
    cc_.or_(x(word), lanes);
  }

 private:
  Ymm temporary() { return vector().as<Ymm>(); }
  // All lanes: a gather clears its mask.
  Ymm gathered(const Mem& from, uint32_t bytes, bool wide);
  Mem in_memory(const NotesX64::Constant& bits) { return cc_.in_memory(bits); }
  Mem steps_in_memory(uint64_t first, uint64_t step, uint32_t bytes) {
    std::array<uint64_t, 4> wide{};
    std::array<uint32_t, 8> narrow{};
    for (uint32_t lane = 0; lane < 4; ++lane) wide[lane] = first + lane * step;
    for (uint32_t lane = 0; lane < 8; ++lane)
      narrow[lane] = static_cast<uint32_t>(first + lane * step);
    return in_memory(bytes == 8 ? wide : std::bit_cast<NotesX64::Constant>(narrow));
  }
  Mem everywhere_wide(uint64_t bits) { return in_memory({bits, bits, bits, bits}); }
  Mem everywhere(uint32_t bits) { return everywhere_wide(bits * uint64_t{0x100000001}); }
  static uint32_t narrow_bits(uint64_t bits) { return static_cast<uint32_t>(bits); }
  void blend_lane(const Reg& to, const Ymm& all, uint32_t lane, uint32_t bytes) {
    cc_.vpblendd(v(to), v(to), all, bytes == 8 ? 3u << (2 * lane) : 1u << lane);
  }
  void multiply_wide(const Ymm& to, const Ymm& a, const Ymm& b);
  void pick(bool least, Number type, const Reg& to, const Reg& a, const Reg& b);
  void compare_integers(Comparison comparison, Number type, const Reg& to, const Reg& a,
                        const Reg& b);
  void turn(const std::array<Ymm, 4>& rows, const std::array<Ymm, 4>& to);
  template <class From>
  void widen_neighbours(const Ymm& to, const From& a, Number from) {
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
  void power_of_two(const Ymm& to, const Ymm& a);
  void power_of_two_wide(const Ymm& x);
  void divide_nearly(const Ymm& to, const Ymm& a, const Ymm& b);
  void divide_integers(Does does, Number type, const Reg& to, const Reg& a, const Reg& b);
  void multiply_high(Number type, const Ymm& to, const Ymm& a, const Ymm& b);
  Ymm round_to_bf16(const Ymm& value);
  bool unary_wide(Does does, const Ymm& to, const Ymm& a);
  bool binary_wide(Does does, const Ymm& to, const Ymm& a, const Ymm& b);
  void move_right_wide(const Ymm& to, const Ymm& a, uint32_t by);
};

}  // namespace kiln::engine
