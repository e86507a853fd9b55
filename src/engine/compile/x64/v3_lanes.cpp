// SPDX-License-Identifier: Apache-2.0
// How does x86-64-v3 move lanes between vectors of 256 bits, memory and general registers?
#if defined(__x86_64__)
#include "engine/compile/x64/v3.h"

namespace kiln::engine {

// All lanes. A gather reads its result register and clears its mask.
Ymm X64V3::gathered(const Mem& from, uint32_t bytes, bool wide_addresses) {
  const Ymm mask = temporary(), all = temporary();
  cc_.vpcmpeqd(mask, mask, mask);
  cc_.vpxor(all, all, all);
  if (bytes == 8)
    cc_.vpgatherqq(all, from, mask);
  else if (wide_addresses)
    cc_.vpgatherqd(all.xmm(), from, mask.xmm());
  else
    cc_.vpgatherdd(all, from, mask);
  return all;
}

// The instructions pack each 128 bits separately.
void X64V3::store_small(const Reg& from, const Reg& base, int64_t offset, uint32_t bytes) {
  const Ymm low = temporary(), high = temporary();
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

void X64V3::low_words(const Ymm& to, const Ymm& a) {
  cc_.vpackusdw(to, a, a);  // in each 128 bits
  cc_.vpermq(to, to, 0x08);
}

void X64V3::bits_to_mask(Reg to, Reg word, uint32_t first) {
  constexpr std::array<uint32_t, 8> kLaneBits = {1, 2, 4, 8, 16, 32, 64, 128};
  const Gp moved = temporary_word();
  cc_.mov(moved, x(word));
  if (first) cc_.shr(moved, first);
  const Ymm lanes = temporary(), bits = temporary();
  splat(lanes, moved, 4);
  cc_.vmovaps(bits, in_memory(std::bit_cast<Constant>(kLaneBits)));
  cc_.vpand(lanes, lanes, bits);
  cc_.vpcmpeqd(v(to), lanes, bits);
}

void X64V3::bits_to_masks(const List<Reg>& to, const Reg& word) {
  const Ymm all = temporary(), own = temporary();
  splat(all, word, 4);
  for (size_t i = 0; i < to.size(); ++i) {
    std::array<uint32_t, 8> bits;
    for (size_t lane = 0; lane < 8; ++lane) bits[lane] = 1u << (i * 8 + lane);
    const Mem wanted = in_memory(std::bit_cast<Constant>(bits));
    cc_.vpand(own, all, wanted);
    cc_.vpcmpeqd(v(to[i]), own, wanted);
  }
}

// Four rows of four words become columns, in each 128 bits.
void X64V3::turn(const std::array<Ymm, 4>& rows, const std::array<Ymm, 4>& to) {
  const Ymm low = temporary(), high = temporary(), more_low = temporary(), more_high = temporary();
  cc_.vshufps(low, rows[0], rows[1], 0x44);
  cc_.vshufps(high, rows[0], rows[1], 0xee);
  cc_.vshufps(more_low, rows[2], rows[3], 0x44);
  cc_.vshufps(more_high, rows[2], rows[3], 0xee);
  cc_.vshufps(to[0], low, more_low, 0x88);
  cc_.vshufps(to[1], low, more_low, 0xdd);
  cc_.vshufps(to[2], high, more_high, 0x88);
  cc_.vshufps(to[3], high, more_high, 0xdd);
}

// With four elements, a row has those of one lane and of the lane four after it.
bool X64V3::load_elements(const List<Reg>& to, const Reg& base, int64_t offset) {
  if (to.size() == 2) {
    const Ymm first = temporary(), second = temporary(), even = temporary(), odd = temporary();
    load(first, base, offset);
    load(second, base, offset + 32);
    cc_.vshufps(even, first, second, 0x88);
    cc_.vshufps(odd, first, second, 0xdd);
    cc_.vpermq(v(to[0]), even, 0xd8);
    cc_.vpermq(v(to[1]), odd, 0xd8);
    return true;
  }
  std::array<Ymm, 4> rows;
  for (uint32_t i = 0; i < 4; ++i) {
    rows[i] = temporary();
    const Ymm upper = temporary();
    cc_.vmovups(rows[i].xmm(), at(base, offset + int64_t{i} * 16));
    cc_.vmovups(upper.xmm(), at(base, offset + int64_t{i} * 16 + 64));
    cc_.vinsertf128(rows[i], rows[i], upper.xmm(), 1);
  }
  turn(rows, {v(to[0]), v(to[1]), v(to[2]), v(to[3])});
  return true;
}

bool X64V3::store_elements(const List<Reg>& from, const Reg& base, int64_t offset) {
  if (from.size() == 2) {
    // Lanes 0, 1, 4, 5 and 2, 3, 6, 7 of each vector, so that pairs become neighbours.
    const Ymm a = temporary(), b = temporary(), low = temporary(), high = temporary();
    cc_.vpermq(a, v(from[0]), 0xd8);
    cc_.vpermq(b, v(from[1]), 0xd8);
    cc_.vshufps(low, a, b, 0x44);
    cc_.vshufps(low, low, low, 0xd8);
    cc_.vshufps(high, a, b, 0xee);
    cc_.vshufps(high, high, high, 0xd8);
    store(low, base, offset);
    store(high, base, offset + 32);
    return true;
  }
  const std::array<Ymm, 4> rows{temporary(), temporary(), temporary(), temporary()};
  turn({v(from[0]), v(from[1]), v(from[2]), v(from[3])}, rows);
  for (uint32_t i = 0; i < 4; ++i) {
    const Ymm upper = temporary();
    cc_.vextracti128(upper.xmm(), rows[i], 1);
    cc_.vmovups(at(base, offset + int64_t{i} * 16), rows[i].xmm());
    cc_.vmovups(at(base, offset + int64_t{i} * 16 + 64), upper.xmm());
  }
  return true;
}

}  // namespace kiln::engine
#endif
