// SPDX-License-Identifier: Apache-2.0
// What does the code generator of x86-64-v4 keep? (x64/v4.cpp, x64/v4_lanes.cpp,
// x64/v4_numbers.cpp)
//
// Vectors are the 512 bits of AVX-512. Comparisons give a mask register; the compiler knows masks
// as vectors, and one instruction turns either into the other. No mask register lives longer than
// the operation that needs it.
#pragma once

#include <array>
#include <bit>
#include <vector>

#include "engine/compile/x64/words.h"

namespace kiln::engine {

using x86::Zmm;

inline Zmm z(const Reg& reg) { return reg.as<Zmm>(); }

class X64V4 final : public X64Words {
 public:
  static constexpr uint32_t kLanes = 16;
  X64V4() : X64Words(kCodesV4) {}
  uint32_t vector_lanes() const override { return kLanes; }
  uint32_t vector_count() const override { return 32; }
  Reg new_vector() override { return cc_.new_wide_vector(); }

  void load(Reg to, Reg base, int64_t offset) override { cc_.vmovups(z(to), at(base, offset)); }
  void store(Reg from, Reg base, int64_t offset) override {
    cc_.vmovups(at(base, offset), z(from));
  }
  void differ(const Reg& all, const Reg& value, const Reg& base, int64_t offset) override {
    cc_.vpxord(z(value), z(value), at(base, offset));
    cc_.vpord(z(all), z(all), z(value));
  }
  void load_splat(Reg to, Reg base, int64_t offset, uint32_t bytes) override;
  void load_small(const Reg& to, const Reg& base, int64_t offset, Number from) override {
    widen_neighbours(z(to), at(base, offset), from);
  }
  void store_small(const Reg& from, const Reg& base, int64_t offset, uint32_t bytes) override {
    bytes == 2 ? cc_.vpmovdw(at(base, offset), z(from)) : cc_.vpmovdb(at(base, offset), z(from));
  }
  bool gathers_small() const override { return true; }
  void insert_small(const Reg& to, const Reg& base, int64_t offset, uint32_t lane,
                    uint32_t bytes) override;
  void widen_small(const Reg& to, const Reg& a, Number from) override;
  void load_lane(const Reg& to, const Reg& base, uint32_t lane, uint32_t bytes) override;
  void load_first(const Reg& to, const Reg& base, int64_t offset, uint32_t bytes) override {
    bytes == 8 ? cc_.vmovq(z(to).xmm(), at(base, offset))
               : cc_.vmovd(z(to).xmm(), at(base, offset));
  }

  bool gather(const Reg& to, const Reg& base, int64_t offset, const Reg& low, const Reg& high,
              uint32_t bytes) override;
  bool gathers_narrow() const override { return true; }
  void gather_narrow(const Reg& to, const Reg& base, int64_t offset, const Reg& distances,
                     uint32_t shift) override {
    const Mem from = x86::ptr(x(base), z(distances), shift, static_cast<int32_t>(offset));
    cc_.vmovaps(z(to), gathered(from, 4, false));
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
      cc_.vmovaps(z(to), z(from));
    else
      cc_.mov(x(to), x(from));
  }
  void splat(Reg to, Reg word, uint32_t bytes) override {
    bytes == 8 ? cc_.vpbroadcastq(z(to), x(word)) : cc_.vpbroadcastd(z(to), w(word));
  }
  void constant(Reg to, uint64_t bits, uint32_t bytes) override;
  void steps(Reg to, uint64_t step, uint32_t bytes) override {
    cc_.vmovups(z(to), steps_in_memory(0, step, bytes));
  }
  bool adds_steps() const override { return true; }
  void add_steps(const Reg& to, const Reg& a, int64_t first, int64_t step,
                 uint32_t bytes) override {
    const Mem rises =
        steps_in_memory(static_cast<uint64_t>(first), static_cast<uint64_t>(step), bytes);
    bytes == 8 ? cc_.vpaddq(z(to), z(a), rises) : cc_.vpaddd(z(to), z(a), rises);
  }
  void lane_word(Reg to, Reg vector, uint32_t lane, uint32_t bytes) override;
  void set_lane(Reg to, Reg word, uint32_t lane, uint32_t bytes) override {
    const Zmm all = temporary();
    splat(all, word, bytes);
    blend_lanes(to, all, 1u << lane, bytes);
  }

  void any_and_differ(Reg any, Reg differ, const List<Reg>& masks) override;
  void jump_if_lanes(const Reg& value, uint64_t bits, uint32_t bytes, const Label& to) override {
    const NotesX64::WideConstant wide = {bits, bits, bits, bits, bits, bits, bits, bits};
    cc_.vptestmd(x86::k1, z(value),
                 bytes == 8 ? in_memory(wide) : everywhere(static_cast<uint32_t>(bits)));
    cc_.kortestw(x86::k1, x86::k1);
    cc_.jnz(to);
  }
  bool unary(Does does, Number type, Reg to, Reg a) override;
  bool binary(Does does, Number type, Reg to, Reg a, Reg b) override;
  bool ternary(Does does, Number type, Reg to, Reg a, Reg b, Reg c) override;
  bool shift(Does does, Number type, Reg to, Reg a, uint32_t by) override;
  void funnel(Does does, Reg to, Reg low, Reg high, uint32_t by) override;
  bool convert(Number to_type, Number from, Reg to, Reg a) override;
  void compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) override;
  void widen(bool is_signed_value, bool high, Reg to, Reg a) override;
  void mul_wide(bool is_signed_value, bool high, Reg to, Reg a, Reg b) override;
  void mul_wide_by_one(bool is_signed_value, bool high, const Reg& to, const Reg& a,
                       const Reg& b) override {
    const Zmm wide = temporary();
    widen(false, high, wide, a);
    is_signed_value ? cc_.vpmuldq(z(to), wide, z(b)) : cc_.vpmuludq(z(to), wide, z(b));
  }
  void narrow(Reg to, Reg low, Reg high) override;
  void exchange(const Reg& to, const Reg& from, uint32_t bits) override;
  void order(const Reg& to, const uint8_t* lanes) override;
  void permute(const Reg& to, const Reg& from, const Reg& order) override {
    cc_.vpermd(z(to), z(order), z(from));
  }
  void join(const Reg& to, const Reg& a, const Reg& b, uint32_t lanes) override {
    const Mem mask = lanes_in_memory(lanes, 4);
    if (to.id() == b.id()) {
      cc_.vpternlogd(z(to), z(a), mask, kOfOthers);
    } else {
      copy(to, a);
      cc_.vpternlogd(z(to), z(b), mask, kOfMask);
    }
  }
  void select(Reg to, Reg mask, Reg a, Reg b) override;
  void blend(const Reg& to, const Reg& from, const Reg& mask) override {
    cc_.vpternlogd(z(to), z(from), z(mask), kOfMask);
  }
  void blend_others(const Reg& to, const Reg& from, const Reg& mask) override {
    cc_.vpternlogd(z(to), z(from), z(mask), kOfOthers);
  }
  void load_blended(const Reg& to, const Reg& base, int64_t offset, const Reg& mask,
                    const Reg& from) override;
  bool store_some(const Reg& from, const Reg& base, int64_t offset, const Reg& mask,
                  uint32_t bytes) override;
  bool loads_some() const override { return true; }
  void load_some(const Reg& to, const Reg& base, int64_t offset, const Reg& mask) override {
    const Mem from = at(base, offset);  // its own instructions must not take the mask
    cc_.vpmovd2m(x86::k1, z(mask));
    cc_.k(x86::k1).z().vmovups(z(to), from);
  }
  void select_bits(Reg to, Reg bits, Reg a, Reg b) override { select(to, bits, a, b); }
  void canonicalize(Reg value, Reg nan) override {
    cc_.vcmpps(x86::k1, z(value), z(value), kUnordered);
    cc_.k(x86::k1).vmovaps(z(value), z(nan));
  }
  void flush(const Reg& to, const Reg& a) override;
  void unpack(Small small, uint32_t part, const Reg& to, const Reg& a) override;
  void pack(Small small, const Reg& to, const std::array<Reg, 2>& parts) override;
  bool from_double(Number to_type, Reg to, Reg low, Reg high) override;
  bool to_double(Number from, bool high, Reg to, Reg a) override;
  void bits_to_mask(Reg to, Reg word, uint32_t first) override;
  void mask_to_bits(Reg word, Reg mask, uint32_t first) override;

 private:
  static constexpr auto kUnordered = static_cast<int>(x86::VCmpImm::kUNORD_Q);
  // Tables of three bits for VPTERNLOG, whose first operand is also the result, and whose third
  // one is the mask: where it is set the second operand, or elsewhere.
  static constexpr uint8_t kOfMask = 0xd8, kOfOthers = 0xe4;

  Zmm temporary() { return vector().as<Zmm>(); }
  Zmm gathered(const Mem& from, uint32_t bytes, bool wide);
  Mem in_memory(const NotesX64::WideConstant& bits) { return cc_.in_memory(bits); }
  // Of one number in memory, to all lanes.
  Mem once(uint64_t bits) { return cc_.in_memory(NotesX64::Constant{bits, bits, bits, bits}); }
  Mem everywhere_wide(uint64_t bits) { return once(bits)._1to8(); }
  Mem everywhere(uint32_t bits) { return once(bits * uint64_t{0x100000001})._1to16(); }
  Mem steps_in_memory(uint64_t first, uint64_t step, uint32_t bytes);
  // All ones in some lanes.
  Mem lanes_in_memory(uint32_t lanes, uint32_t bytes);
  void blend_lanes(const Reg& to, const Zmm& from, uint32_t lanes, uint32_t bytes) {
    cc_.vpternlogd(z(to), from, lanes_in_memory(lanes, bytes), kOfMask);
  }
  // Lanes of two vectors, by their numbers from 0 to 31; of 64 bits, to 15.
  void pick_of_two(const Zmm& to, const std::array<uint8_t, 16>& lanes, const Zmm& a, const Zmm& b);
  void pick_of_two_wide(const Zmm& to, const std::array<uint8_t, 8>& lanes, const Zmm& a,
                        const Zmm& b);
  template <class From>
  void widen_neighbours(const Zmm& to, const From& a, Number from) {
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
  void nearest_even_bf16(const Zmm& to, const Zmm& value);
  void pick(bool least, Number type, const Zmm& to, const Zmm& a, const Zmm& b);
  bool unary_wide(Does does, const Zmm& to, const Zmm& a);
  bool binary_wide(Does does, const Zmm& to, const Zmm& a, const Zmm& b);
  void power_of_two(const Zmm& to, const Zmm& a);
  void power_of_two_wide(const Zmm& x);
  void reciprocal_root(const Zmm& to, const Zmm& a);
  void divide_nearly(const Zmm& to, const Zmm& a, const Zmm& b);
  void divide_integers(Does does, Number type, const Zmm& to, const Zmm& a, const Zmm& b);
  void multiply_high(Number type, const Zmm& to, const Zmm& a, const Zmm& b);
};

}  // namespace kiln::engine
