// SPDX-License-Identifier: Apache-2.0
// What does the code generator for x86-64-v4 add to x64/vectors.h? (x64/v4.cpp, x64/v4_lanes.cpp)
//
// Vectors are the 512 bits of AVX-512. A comparison writes a mask register, but the compiler's
// masks are vectors; one instruction converts either into the other. No mask register lives longer
// than the operation that needs it.
#pragma once

#include <array>

#include "engine/compile/x64/vectors.h"

namespace kiln::engine {

class X64V4 final : public X64Vectors<Zmm> {
 public:
  X64V4() : X64Vectors(kCodesV4) {}

  void store_small(const Reg& from, const Reg& base, int64_t offset, uint32_t bytes) override {
    bytes == 2 ? cc_.vpmovdw(at(base, offset), v(from)) : cc_.vpmovdb(at(base, offset), v(from));
  }
  void insert_small(const Reg& to, const Reg& base, int64_t offset, uint32_t lane,
                    uint32_t bytes) override;
  void widen_small(const Reg& to, const Reg& a, Number from) override;
  bool load_elements(const List<Reg>& to, const Reg& base, int64_t offset) override;
  bool store_elements(const List<Reg>& from, const Reg& base, int64_t offset) override;

  void jump_if_lanes(const Reg& value, uint64_t bits, uint32_t bytes, const Label& to) override {
    const Constant wide = {bits, bits, bits, bits, bits, bits, bits, bits};
    cc_.vptestmd(x86::k1, v(value),
                 bytes == 8 ? in_memory(wide) : everywhere(static_cast<uint32_t>(bits)));
    cc_.kortestw(x86::k1, x86::k1);
    cc_.jnz(to);
  }
  void funnel(Does does, Reg to, Reg low, Reg high, uint32_t by) override;
  bool convert(Number to_type, Number from, Reg to, Reg a) override;
  void compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) override;
  void narrow(Reg to, Reg low, Reg high) override;
  void exchange(const Reg& to, const Reg& from, uint32_t bits) override;
  void join(const Reg& to, const Reg& a, const Reg& b, uint32_t lanes) override {
    const Mem mask = lanes_in_memory(lanes);
    if (to.id() == b.id()) {
      cc_.vpternlogd(v(to), v(a), mask, kOfOthers);
    } else {
      copy(to, a);
      cc_.vpternlogd(v(to), v(b), mask, kOfMask);
    }
  }
  void select(Reg to, Reg mask, Reg a, Reg b) override;
  void blend(const Reg& to, const Reg& from, const Reg& mask) override {
    cc_.vpternlogd(v(to), v(from), v(mask), kOfMask);
  }
  void blend_others(const Reg& to, const Reg& from, const Reg& mask) override {
    cc_.vpternlogd(v(to), v(from), v(mask), kOfOthers);
  }
  void load_blended(const Reg& to, const Reg& base, int64_t offset, const Reg& mask,
                    const Reg& from) override;
  bool store_some(const Reg& from, const Reg& base, int64_t offset, const Reg& mask,
                  uint32_t bytes) override;
  void load_some(const Reg& to, const Reg& base, int64_t offset, const Reg& mask) override {
    const Mem from = at(base, offset);  // may emit instructions, which must not get the mask
    cc_.vpmovd2m(x86::k1, v(mask));
    cc_.k(x86::k1).z().vmovups(v(to), from);
  }
  void select_bits(Reg to, Reg bits, Reg a, Reg b) override { select(to, bits, a, b); }
  void bits_to_mask(Reg to, Reg word, uint32_t first) override;

 protected:
  Zmm gathered(const Mem& from, uint32_t bytes, bool wide_addresses) override;
  void multiply_wide(const Zmm& to, const Zmm& a, const Zmm& b) override { cc_.vpmullq(to, a, b); }
  void pick_wide(bool least, Number type, const Zmm& to, const Zmm& a, const Zmm& b) override;
  void move_right_wide(const Zmm& to, const Zmm& a, uint32_t by) override { cc_.vpsraq(to, a, by); }
  void reciprocal_root(const Zmm& to, const Zmm& a) override;
  void unsigned_to_double(const Zmm& to, const Zmm& a, bool high) override {
    cc_.vcvtudq2pd(to, half(a, high));
  }
  void low_words(const Zmm& to, const Zmm& a) override { cc_.vpmovdw(to.ymm(), a); }

 private:
  // VPTERNLOG with a table of three bits. The first operand is also the result, and the third one
  // is the mask. In the mask (kOfMask) or outside it (kOfOthers), the result is the second operand.
  static constexpr uint8_t kOfMask = 0xd8, kOfOthers = 0xe4;

  Mem lanes_in_memory(uint32_t lanes);  // all ones in these lanes of 32 bits
  // Lanes of two vectors, by their numbers from 0 to 31; of 64 bits, from 0 to 15.
  void pick_of_two(const Zmm& to, const std::array<uint8_t, 16>& lanes, const Zmm& a, const Zmm& b);
  void pick_of_two_wide(const Zmm& to, const std::array<uint8_t, 8>& lanes, const Zmm& a,
                        const Zmm& b);
};

}  // namespace kiln::engine
