// SPDX-License-Identifier: Apache-2.0
// How does x86-64-v4 move lanes between vectors of 512 bits, memory, masks and general registers?
#if defined(__x86_64__)
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/compile/x64/v4.h"

namespace kiln::engine {

// Through memory: the instruction inserts into 128 bits, which cannot hold 16 lanes of 16 bits.
void X64V4::insert_small(const Reg&, const Reg& base, int64_t offset, uint32_t lane,
                         uint32_t bytes) {
  const Gp word = temporary_word();
  load_small_word(word, base, offset, bytes == 1 ? Number::U8 : Number::U16, 4);
  store_word(word, pass(), static_cast<int64_t>(offsetof(Pass, small) + lane * bytes), bytes);
}

void X64V4::widen_small(const Reg& to, const Reg&, Number from) {
  load_small(to, pass(), static_cast<int64_t>(offsetof(Pass, small)), from);
}

Mem X64V4::lanes_in_memory(uint32_t lanes) {
  std::array<uint32_t, kLanes> words{};
  for (uint32_t lane = 0; lane < kLanes; ++lane) words[lane] = lanes >> lane & 1 ? ~uint32_t{0} : 0;
  return in_memory(std::bit_cast<Constant>(words));
}

void X64V4::pick_of_two(const Zmm& to, const std::array<uint8_t, 16>& lanes, const Zmm& a,
                        const Zmm& b) {
  std::array<uint32_t, 16> numbers{};
  for (uint32_t lane = 0; lane < 16; ++lane) numbers[lane] = lanes[lane];
  cc_.vmovups(to, in_memory(std::bit_cast<Constant>(numbers)));
  cc_.vpermi2d(to, a, b);
}

void X64V4::pick_of_two_wide(const Zmm& to, const std::array<uint8_t, 8>& lanes, const Zmm& a,
                             const Zmm& b) {
  Constant numbers{};
  for (uint32_t lane = 0; lane < 8; ++lane) numbers[lane] = lanes[lane];
  cc_.vmovups(to, in_memory(numbers));
  cc_.vpermi2q(to, a, b);
}

// All lanes. A gather reads its result register and clears its mask.
Zmm X64V4::gathered(const Mem& from, uint32_t bytes, bool wide_addresses) {
  const Zmm all = temporary();
  cc_.vpxord(all, all, all);
  cc_.vpcmpd(x86::k1, all, all, 0);
  if (bytes == 8)
    cc_.k(x86::k1).vpgatherqq(all, from);
  else if (wide_addresses)
    cc_.k(x86::k1).vpgatherqd(all.ymm(), from);
  else
    cc_.k(x86::k1).vpgatherdd(all, from);
  return all;
}

// With two elements, the results are the even and the odd words of two vectors. With four, the
// first step makes vectors of two halves: the first elements of eight lanes, and their second
// elements.
bool X64V4::load_elements(const List<Reg>& to, const Reg& base, int64_t offset) {
  constexpr std::array<uint8_t, 16> kEven = {0,  2,  4,  6,  8,  10, 12, 14,
                                             16, 18, 20, 22, 24, 26, 28, 30};
  constexpr std::array<uint8_t, 16> kFirst = {0, 4, 8, 12, 16, 20, 24, 28,
                                              1, 5, 9, 13, 17, 21, 25, 29};
  const auto moved = [](std::array<uint8_t, 16> lanes, uint8_t by) {
    for (uint8_t& lane : lanes) lane = static_cast<uint8_t>(lane + by);
    return lanes;
  };
  std::array<Zmm, 4> rows;
  for (uint32_t i = 0; i < to.size(); ++i) load(rows[i] = temporary(), base, offset + i * 64);
  if (to.size() == 2) {
    pick_of_two(v(to[0]), kEven, rows[0], rows[1]);
    pick_of_two(v(to[1]), moved(kEven, 1), rows[0], rows[1]);
    return true;
  }
  for (uint8_t pair = 0; pair < 2; ++pair) {
    const Zmm low = temporary(), high = temporary();
    pick_of_two(low, moved(kFirst, pair * 2), rows[0], rows[1]);
    pick_of_two(high, moved(kFirst, pair * 2), rows[2], rows[3]);
    cc_.vshuff64x2(v(to[pair * 2u]), low, high, 0x44);
    cc_.vshuff64x2(v(to[pair * 2u + 1]), low, high, 0xee);
  }
  return true;
}

bool X64V4::store_elements(const List<Reg>& from, const Reg& base, int64_t offset) {
  constexpr std::array<uint8_t, 16> kPairs = {0, 16, 1, 17, 2, 18, 3, 19,
                                              4, 20, 5, 21, 6, 22, 7, 23};
  std::array<uint8_t, 16> upper = kPairs;
  for (uint8_t& lane : upper) lane = static_cast<uint8_t>(lane + 8);
  const size_t count = from.size();
  std::array<Zmm, 4> pairs;  // of two elements: of the lower lanes, of the upper lanes
  for (size_t i = 0; i < count; ++i) {
    const size_t of = i / 2 * 2;
    pairs[i] = temporary();
    pick_of_two(pairs[i], i % 2 ? upper : kPairs, v(from[of]), v(from[of + 1]));
  }
  for (uint32_t row = 0; row < count; ++row) {
    Zmm all = pairs[row];
    if (count == 4) {
      all = temporary();
      const bool is_upper = row % 2 == 1;
      pick_of_two_wide(all,
                       is_upper ? std::array<uint8_t, 8>{4, 12, 5, 13, 6, 14, 7, 15}
                                : std::array<uint8_t, 8>{0, 8, 1, 9, 2, 10, 3, 11},
                       pairs[row / 2], pairs[row / 2 + 2]);
    }
    store(all, base, offset + int64_t{row} * 64);
  }
  return true;
}

void X64V4::narrow(Reg to, Reg low, Reg high) {
  const Zmm both = temporary();
  pick_of_two(both, {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}, v(low), v(high));
  cc_.vmovaps(v(to), both);
}

// First within 128 bits, then whole 128 bits.
void X64V4::exchange(const Reg& to, const Reg& from, uint32_t bits) {
  constexpr uint8_t kOrders[4] = {0xe4, 0xb1, 0x4e, 0x1b};
  const uint32_t within = bits & 3, between = bits >> 2 & 3;
  if (within) cc_.vshufps(v(to), v(from), v(from), kOrders[within]);
  const Zmm half = v(within ? to : from);
  if (between) cc_.vshuff32x4(v(to), half, half, kOrders[between]);
}

void X64V4::bits_to_mask(Reg to, Reg word, uint32_t first) {
  Gp moved = w(word);
  if (first) {
    moved = temporary_word().r32();
    cc_.mov(moved, w(word));
    cc_.shr(moved, first);
  }
  cc_.kmovw(x86::k1, moved);
  cc_.vpmovm2d(v(to), x86::k1);
}

void X64V4::select(Reg to, Reg mask, Reg a, Reg b) {
  if (to.id() == a.id()) return cc_.vpternlogd(v(to), v(b), v(mask), kOfOthers), void();
  if (to.id() == b.id()) return cc_.vpternlogd(v(to), v(a), v(mask), kOfMask), void();
  copy(to, mask);
  cc_.vpternlogd(v(to), v(a), v(b), 0xca);  // the first operand selects
}

void X64V4::load_blended(const Reg& to, const Reg& base, int64_t offset, const Reg& mask,
                         const Reg& from) {
  const Mem memory = at(base, offset);
  if (to.id() == from.id()) {
    cc_.vpternlogd(v(to), v(mask), memory, 0xb8);  // the second operand selects
    return;
  }
  copy(to, mask);
  cc_.vpternlogd(v(to), v(from), memory, 0xac);  // the first operand selects
}

bool X64V4::store_some(const Reg& from, const Reg& base, int64_t offset, const Reg& mask,
                       uint32_t bytes) {
  const Mem to = at(base, offset);  // may emit instructions, which must not get the mask
  if (bytes == 8) {
    cc_.vpmovq2m(x86::k1, v(mask));
    cc_.k(x86::k1).vmovupd(to, v(from));
  } else {
    cc_.vpmovd2m(x86::k1, v(mask));
    cc_.k(x86::k1).vmovups(to, v(from));
  }
  return true;
}

}  // namespace kiln::engine
#endif
