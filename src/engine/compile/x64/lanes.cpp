// SPDX-License-Identifier: Apache-2.0
// How does x86-64 move lanes between vectors of 256 bits, memory and general registers?
#if defined(__x86_64__)
#include <cstdlib>

#include "engine/compile/x64/target.h"

namespace kiln::engine {

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

// Four rows of four words become columns, in each 128 bits.
void X64::turn(const std::array<Ymm, 4>& rows, const std::array<Ymm, 4>& to) {
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

// Of four elements a row is those of one lane, and of the lane four behind it.
bool X64::load_elements(const List<Reg>& to, const Reg& base, int64_t offset) {
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

bool X64::store_elements(const List<Reg>& from, const Reg& base, int64_t offset) {
  if (from.size() == 2) {
    // Lanes 0, 1, 4, 5 and 2, 3, 6, 7 of each, so that their pairs are neighbours.
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
