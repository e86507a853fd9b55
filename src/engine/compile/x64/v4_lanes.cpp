// SPDX-License-Identifier: Apache-2.0
// How does x86-64-v4 move lanes between vectors of 512 bits, memory, masks and general registers?
#if defined(__x86_64__)
#include <cstdint>
#include <cstdlib>

#include "engine/compile/x64/v4.h"

namespace kiln::engine {

void X64V4::load_splat(Reg to, Reg base, int64_t offset, uint32_t bytes) {
  if (bytes < 4) {
    const Gp word = temporary_word();
    load_small_word(word, base, offset, Number::U16, 2);
    return splat(to, word, 4);
  }
  bytes == 8 ? cc_.vbroadcastsd(z(to), at(base, offset))
             : cc_.vbroadcastss(z(to), at(base, offset));
}

// By memory: a vector of 128 bits has no room for 16 lanes of 16 bits.
void X64V4::insert_small(const Reg&, const Reg& base, int64_t offset, uint32_t lane,
                         uint32_t bytes) {
  const Gp word = temporary_word();
  load_small_word(word, base, offset, bytes == 1 ? Number::U8 : Number::U16, 4);
  store_word(word, pass(), static_cast<int64_t>(offsetof(Pass, small) + lane * bytes), bytes);
}

void X64V4::widen_small(const Reg& to, const Reg&, Number from) {
  load_small(to, pass(), static_cast<int64_t>(offsetof(Pass, small)), from);
}

void X64V4::load_lane(const Reg& to, const Reg& base, uint32_t lane, uint32_t bytes) {
  if (lane == 0) return load_splat(to, base, 0, bytes);
  const Zmm all = temporary();
  load_splat(all, base, 0, bytes);
  blend_lanes(to, all, 1u << lane, bytes);
}

void X64V4::constant(Reg to, uint64_t bits, uint32_t bytes) {
  if (bits == 0)
    cc_.vpxord(z(to), z(to), z(to));
  else if (bytes == 8)
    cc_.vbroadcastsd(z(to), once(bits));
  else
    cc_.vbroadcastss(z(to), once(static_cast<uint32_t>(bits) * uint64_t{0x100000001}));
}

asmjit::x86::Mem X64V4::steps_in_memory(uint64_t first, uint64_t step, uint32_t bytes) {
  NotesX64::WideConstant wide{};
  std::array<uint32_t, 16> narrow{};
  for (uint32_t lane = 0; lane < 8; ++lane) wide[lane] = first + lane * step;
  for (uint32_t lane = 0; lane < 16; ++lane)
    narrow[lane] = static_cast<uint32_t>(first + lane * step);
  return in_memory(bytes == 8 ? wide : std::bit_cast<NotesX64::WideConstant>(narrow));
}

asmjit::x86::Mem X64V4::lanes_in_memory(uint32_t lanes, uint32_t bytes) {
  NotesX64::WideConstant wide{};
  std::array<uint32_t, 16> narrow{};
  for (uint32_t lane = 0; lane < 8; ++lane) wide[lane] = lanes >> lane & 1 ? ~uint64_t{0} : 0;
  for (uint32_t lane = 0; lane < 16; ++lane) narrow[lane] = lanes >> lane & 1 ? ~uint32_t{0} : 0;
  return in_memory(bytes == 8 ? wide : std::bit_cast<NotesX64::WideConstant>(narrow));
}

void X64V4::pick_of_two(const Zmm& to, const std::array<uint8_t, 16>& lanes, const Zmm& a,
                        const Zmm& b) {
  std::array<uint32_t, 16> numbers{};
  for (uint32_t lane = 0; lane < 16; ++lane) numbers[lane] = lanes[lane];
  cc_.vmovups(to, in_memory(std::bit_cast<NotesX64::WideConstant>(numbers)));
  cc_.vpermi2d(to, a, b);
}

void X64V4::pick_of_two_wide(const Zmm& to, const std::array<uint8_t, 8>& lanes, const Zmm& a,
                             const Zmm& b) {
  NotesX64::WideConstant numbers{};
  for (uint32_t lane = 0; lane < 8; ++lane) numbers[lane] = lanes[lane];
  cc_.vmovups(to, in_memory(numbers));
  cc_.vpermi2q(to, a, b);
}

void X64V4::lane_word(Reg to, Reg vector, uint32_t lane, uint32_t bytes) {
  const uint32_t in_part = 16 / bytes;
  x86::Xmm part = z(vector).xmm();
  if (lane >= in_part) {
    part = temporary().xmm();
    cc_.vextracti32x4(part, z(vector), lane / in_part);
    lane %= in_part;
  }
  bytes == 8 ? cc_.vpextrq(x(to), part, lane) : cc_.vpextrd(w(to), part, lane);
}

// What is there before does not count: all lanes are loaded.
Zmm X64V4::gathered(const Mem& from, uint32_t bytes, bool wide) {
  const Zmm all = temporary();
  cc_.vpxord(all, all, all);
  cc_.vpcmpd(x86::k1, all, all, 0);
  if (bytes == 8)
    cc_.k(x86::k1).vpgatherqq(all, from);
  else if (wide)
    cc_.k(x86::k1).vpgatherqd(all.ymm(), from);
  else
    cc_.k(x86::k1).vpgatherdd(all, from);
  return all;
}

bool X64V4::gather(const Reg& to, const Reg& base, int64_t offset, const Reg& low, const Reg& high,
                   uint32_t bytes) {
  const auto behind = static_cast<int32_t>(offset);
  const Zmm lower = gathered(x86::ptr(x(base), z(low), 0, behind), bytes, true);
  if (bytes == 8) {
    cc_.vmovaps(z(to), lower);
    return true;
  }
  const Zmm upper = gathered(x86::ptr(x(base), z(high), 0, behind), 4, true);
  cc_.vinserti64x4(z(to), lower, upper.ymm(), 1);
  return true;
}

bool X64V4::load_apart(const Reg& to, const Reg& base, int64_t offset, int64_t step,
                       uint32_t bytes) {
  if (std::abs(step) >= int64_t{1} << 27 || offset != static_cast<int32_t>(offset)) return false;
  const Zmm distances = temporary();
  steps(distances, static_cast<uint64_t>(step), bytes);
  const Mem from = x86::ptr(x(base), distances, 0, static_cast<int32_t>(offset));
  cc_.vmovaps(z(to), gathered(from, bytes, false));
  return true;
}

bool X64V4::store_apart(const Reg& from, const Reg& base, int64_t offset, int64_t step,
                        uint32_t bytes) {
  const uint32_t in_part = bytes == 8 ? 2 : 4;
  const x86::Xmm moved = temporary().xmm();
  x86::Xmm part = z(from).xmm();
  for (uint32_t lane = 0; lane < in_part * 4; ++lane) {
    const uint32_t element = lane % in_part;
    if (element == 0 && lane > 0) {
      part = moved;
      cc_.vextracti32x4(part, z(from), lane / in_part);
    }
    const Mem to = at(base, offset + step * lane);
    if (bytes == 1)
      cc_.vpextrb(to, part, element * 4);
    else if (bytes == 2)
      cc_.vpextrw(to, part, element * 2);
    else
      bytes == 8 ? cc_.vpextrq(to, part, element) : cc_.vpextrd(to, part, element);
  }
  return true;
}

// Two vectors of neighbours become those of even numbers and of odd ones. Of four elements the
// first step makes pairs of halves: the first elements of eight lanes, and their second ones.
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
    pick_of_two(z(to[0]), kEven, rows[0], rows[1]);
    pick_of_two(z(to[1]), moved(kEven, 1), rows[0], rows[1]);
    return true;
  }
  for (uint8_t pair = 0; pair < 2; ++pair) {
    const Zmm low = temporary(), high = temporary();
    pick_of_two(low, moved(kFirst, pair * 2), rows[0], rows[1]);
    pick_of_two(high, moved(kFirst, pair * 2), rows[2], rows[3]);
    cc_.vshuff64x2(z(to[pair * 2u]), low, high, 0x44);
    cc_.vshuff64x2(z(to[pair * 2u + 1]), low, high, 0xee);
  }
  return true;
}

bool X64V4::store_elements(const List<Reg>& from, const Reg& base, int64_t offset) {
  constexpr std::array<uint8_t, 16> kPairs = {0, 16, 1, 17, 2, 18, 3, 19,
                                              4, 20, 5, 21, 6, 22, 7, 23};
  std::array<uint8_t, 16> upper = kPairs;
  for (uint8_t& lane : upper) lane = static_cast<uint8_t>(lane + 8);
  const size_t count = from.size();
  std::array<Zmm, 4> pairs;  // of each two elements: of the lower lanes, of the upper ones
  for (size_t i = 0; i < count; ++i) {
    const size_t of = i / 2 * 2;
    pairs[i] = temporary();
    pick_of_two(pairs[i], i % 2 ? upper : kPairs, z(from[of]), z(from[of + 1]));
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
  pick_of_two(both, {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30}, z(low), z(high));
  cc_.vmovaps(z(to), both);
}

// Within 128 bits, and then whole 128 bits.
void X64V4::exchange(const Reg& to, const Reg& from, uint32_t bits) {
  constexpr uint8_t kOrders[4] = {0xe4, 0xb1, 0x4e, 0x1b};
  const uint32_t within = bits & 3, between = bits >> 2 & 3;
  if (within) cc_.vshufps(z(to), z(from), z(from), kOrders[within]);
  const Zmm half = z(within ? to : from);
  if (between) cc_.vshuff32x4(z(to), half, half, kOrders[between]);
}

void X64V4::order(const Reg& to, const uint8_t* lanes) {
  std::array<uint32_t, 16> numbers{};
  for (uint32_t lane = 0; lane < 16; ++lane) numbers[lane] = lanes[lane] % 16;
  cc_.vmovups(z(to), in_memory(std::bit_cast<NotesX64::WideConstant>(numbers)));
}

void X64V4::any_and_differ(Reg any, Reg differ, const List<Reg>& masks) {
  const Zmm some = temporary(), every = temporary();
  copy(some, masks[0]);
  copy(every, masks[0]);
  for (size_t i = 1; i < masks.size(); ++i) {
    cc_.vpord(some, some, z(masks[i]));
    cc_.vpandd(every, every, z(masks[i]));
  }
  // They differ if any lane is set and any is not.
  cc_.vpmovd2m(x86::k1, every);
  cc_.kmovw(w(differ), x86::k1);
  cc_.xor_(w(differ), 0xffff);
  cc_.vpmovd2m(x86::k1, some);
  cc_.kmovw(w(any), x86::k1);
  cc_.test(w(any), w(any));
  cc_.cmovz(w(differ), w(any));
}

void X64V4::bits_to_mask(Reg to, Reg word, uint32_t first) {
  Gp moved = w(word);
  if (first) {
    moved = temporary_word().r32();
    cc_.mov(moved, w(word));
    cc_.shr(moved, first);
  }
  cc_.kmovw(x86::k1, moved);
  cc_.vpmovm2d(z(to), x86::k1);
}

void X64V4::mask_to_bits(Reg word, Reg mask, uint32_t first) {
  const Gp lanes = temporary_word();
  cc_.vpmovd2m(x86::k1, z(mask));
  cc_.kmovw(lanes.r32(), x86::k1);
  if (first) cc_.shl(lanes, first);
  cc_.or_(x(word), lanes);
}

void X64V4::select(Reg to, Reg mask, Reg a, Reg b) {
  if (to.id() == a.id()) return cc_.vpternlogd(z(to), z(b), z(mask), kOfOthers), void();
  if (to.id() == b.id()) return cc_.vpternlogd(z(to), z(a), z(mask), kOfMask), void();
  copy(to, mask);
  cc_.vpternlogd(z(to), z(a), z(b), 0xca);  // the first operand chooses
}

void X64V4::load_blended(const Reg& to, const Reg& base, int64_t offset, const Reg& mask,
                         const Reg& from) {
  const Mem memory = at(base, offset);
  if (to.id() == from.id()) {
    cc_.vpternlogd(z(to), z(mask), memory, 0xb8);  // the second operand chooses
    return;
  }
  copy(to, mask);
  cc_.vpternlogd(z(to), z(from), memory, 0xac);  // the first one does, between the others
}

bool X64V4::store_some(const Reg& from, const Reg& base, int64_t offset, const Reg& mask,
                       uint32_t bytes) {
  const Mem to = at(base, offset);  // its own instructions must not take the mask
  if (bytes == 8) {
    cc_.vpmovq2m(x86::k1, z(mask));
    cc_.k(x86::k1).vmovupd(to, z(from));
  } else {
    cc_.vpmovd2m(x86::k1, z(mask));
    cc_.k(x86::k1).vmovups(to, z(from));
  }
  return true;
}

}  // namespace kiln::engine
#endif
