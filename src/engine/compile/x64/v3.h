// SPDX-License-Identifier: Apache-2.0
// What does the code generator for x86-64-v3 add to x64/vectors.h? (x64/v3.cpp, x64/v3_lanes.cpp)
//
// Vectors are the 256 bits of AVX2. Its instructions work on two halves of 128 bits, and few of
// them move a lane from one half to the other; comments say where that matters.
#pragma once

#include <array>

#include "engine/compile/x64/vectors.h"

namespace kiln::engine {

class X64V3 final : public X64Vectors<Ymm> {
 public:
  X64V3() : X64Vectors(kCodesV3) {}

  void store_small(const Reg& from, const Reg& base, int64_t offset, uint32_t bytes) override;
  void insert_small(const Reg& to, const Reg& base, int64_t offset, uint32_t lane,
                    uint32_t bytes) override {
    const x86::Xmm all = v(to).xmm();
    bytes == 1 ? cc_.vpinsrb(all, all, at(base, offset), lane)
               : cc_.vpinsrw(all, all, at(base, offset), lane);
  }
  void widen_small(const Reg& to, const Reg& a, Number from) override {
    widen_neighbours(v(to), v(a).xmm(), from);
  }
  bool load_elements(const List<Reg>& to, const Reg& base, int64_t offset) override;
  bool store_elements(const List<Reg>& from, const Reg& base, int64_t offset) override;

  void jump_if_lanes(const Reg& value, uint64_t bits, uint32_t bytes, const Label& to) override {
    if (bits == (bytes == 8 ? ~uint64_t{0} : 0xffffffffu))
      cc_.vptest(v(value), v(value));
    else
      cc_.vptest(v(value),
                 bytes == 8 ? everywhere_wide(bits) : everywhere(static_cast<uint32_t>(bits)));
    cc_.jnz(to);
  }
  bool convert(Number to_type, Number from, Reg to, Reg a) override;
  void compare(Comparison comparison, Number type, Reg to, Reg a, Reg b) override;
  void narrow(Reg to, Reg low, Reg high) override {
    const Ymm words = temporary();
    cc_.vshufps(words, v(low), v(high), 0x88);  // the even words of each 128 bits
    cc_.vpermq(v(to), words, 0xd8);
  }
  void exchange(const Reg& to, const Reg& from, uint32_t bits) override {
    constexpr uint8_t kWords[4] = {0xe4, 0xb1, 0x4e, 0x1b};  // of each 128 bits
    if (bits & 3) cc_.vshufps(v(to), v(from), v(from), kWords[bits & 3]);
    if (bits & 4) cc_.vpermq(v(to), v(bits & 3 ? to : from), 0x4e);
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
  void load_some(const Reg& to, const Reg& base, int64_t offset, const Reg& mask) override {
    cc_.vpmaskmovd(v(to), v(mask), at(base, offset));
  }
  void select_bits(Reg to, Reg bits, Reg a, Reg b) override {
    const Ymm first = temporary(), second = temporary();
    cc_.vandps(first, v(bits), v(a));
    cc_.vandnps(second, v(bits), v(b));
    cc_.vorps(v(to), first, second);
  }
  void bits_to_mask(Reg to, Reg word, uint32_t first) override;
  void bits_to_masks(const List<Reg>& to, const Reg& word) override;

 protected:
  Ymm gathered(const Mem& from, uint32_t bytes, bool wide_addresses) override;
  void multiply_wide(const Ymm& to, const Ymm& a, const Ymm& b) override;
  void pick_wide(bool least, Number type, const Ymm& to, const Ymm& a, const Ymm& b) override;
  void move_right_wide(const Ymm& to, const Ymm& a, uint32_t by) override;
  void reciprocal_root(const Ymm& to, const Ymm& a) override;
  void unsigned_to_double(const Ymm& to, const Ymm& a, bool high) override;
  void low_words(const Ymm& to, const Ymm& a) override;

 private:
  void compare_integers(Comparison comparison, Number type, const Ymm& to, const Ymm& a,
                        const Ymm& b);
  void turn(const std::array<Ymm, 4>& rows, const std::array<Ymm, 4>& to);
};

}  // namespace kiln::engine
