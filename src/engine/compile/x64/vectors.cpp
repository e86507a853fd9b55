// SPDX-License-Identifier: Apache-2.0
// How do vectors of x86-64 move lanes to and from memory and general registers? The parts that are
// the same for AVX2 and AVX-512.
#if defined(__x86_64__)
#include "engine/compile/x64/vectors.h"

#include <cstdlib>

#include "engine/compile/x64/vectors_numbers.h"
#include "engine/compile/x64/vectors_widths.h"

namespace kiln::engine {

template <class Vector>
void X64Vectors<Vector>::load_splat(Reg to, Reg base, int64_t offset, uint32_t bytes) {
  if (bytes < 4) {
    const Gp word = temporary_word();
    load_small_word(word, base, offset, Number::U16, 2);
    return splat(to, word, 4);
  }
  bytes == 8 ? cc_.vbroadcastsd(v(to), at(base, offset))
             : cc_.vbroadcastss(v(to), at(base, offset));
}

template <class Vector>
void X64Vectors<Vector>::splat(Reg to, Reg word, uint32_t bytes) {
  if constexpr (kIs512) {
    bytes == 8 ? cc_.vpbroadcastq(v(to), x(word)) : cc_.vpbroadcastd(v(to), w(word));
  } else {
    const x86::Xmm first = v(to).xmm();
    bytes == 8 ? cc_.vmovq(first, x(word)) : cc_.vmovd(first, w(word));
    bytes == 8 ? cc_.vpbroadcastq(v(to), first) : cc_.vpbroadcastd(v(to), first);
  }
}

template <class Vector>
void X64Vectors<Vector>::constant(Reg to, uint64_t bits, uint32_t bytes) {
  if (bits == 0) {
    bit_xor(v(to), v(to), v(to));
    return;
  }
  Mem from = bytes == 8 ? everywhere_wide(bits) : everywhere(static_cast<uint32_t>(bits));
  if constexpr (kIs512) {
    from.resetBroadcast();  // the instruction broadcasts anyway
    bytes == 8 ? cc_.vbroadcastsd(v(to), from) : cc_.vbroadcastss(v(to), from);
  } else {
    cc_.vmovups(v(to), from);
  }
}

template <class Vector>
Mem X64Vectors<Vector>::steps_in_memory(uint64_t first, uint64_t step, uint32_t bytes) {
  std::array<uint64_t, kLanes / 2> wide{};
  std::array<uint32_t, kLanes> narrow{};
  for (uint32_t lane = 0; lane < wide.size(); ++lane) wide[lane] = first + lane * step;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    narrow[lane] = static_cast<uint32_t>(first + lane * step);
  return in_memory(bytes == 8 ? std::bit_cast<Constant>(wide) : std::bit_cast<Constant>(narrow));
}

template <class Vector>
void X64Vectors<Vector>::order(const Reg& to, const uint8_t* lanes) {
  std::array<uint32_t, kLanes> numbers{};
  for (uint32_t lane = 0; lane < kLanes; ++lane) numbers[lane] = lanes[lane] % kLanes;
  cc_.vmovups(v(to), in_memory(std::bit_cast<Constant>(numbers)));
}

template <class Vector>
void X64Vectors<Vector>::lane_word(Reg to, Reg vector, uint32_t lane, uint32_t bytes) {
  const uint32_t in_part = 16 / bytes;
  x86::Xmm part = v(vector).xmm();
  if (lane >= in_part) {
    part = temporary().xmm();
    extract_part(part, v(vector), lane / in_part);
    lane %= in_part;
  }
  bytes == 8 ? cc_.vpextrq(x(to), part, lane) : cc_.vpextrd(w(to), part, lane);
}

template <class Vector>
bool X64Vectors<Vector>::gather(const Reg& to, const Reg& base, int64_t offset, const Reg& low,
                                const Reg& high, uint32_t bytes) {
  const auto behind = static_cast<int32_t>(offset);
  const Vector first = gathered(x86::ptr(x(base), v(low), 0, behind), bytes, true);
  if (bytes == 8) {
    cc_.vmovaps(v(to), first);
    return true;
  }
  const Vector second = gathered(x86::ptr(x(base), v(high), 0, behind), 4, true);
  join_halves(v(to), first, lower(second));
  return true;
}

// The distances of the lanes are 32 bits wide.
template <class Vector>
bool X64Vectors<Vector>::load_apart(const Reg& to, const Reg& base, int64_t offset, int64_t step,
                                    uint32_t bytes) {
  constexpr int64_t kTooFar = (int64_t{1} << 31) / kLanes;
  if (std::abs(step) >= kTooFar || offset != static_cast<int32_t>(offset)) return false;
  const Vector distances = temporary();
  steps(distances, static_cast<uint64_t>(step), bytes);
  const Mem from = x86::ptr(x(base), distances, 0, static_cast<int32_t>(offset));
  cc_.vmovaps(v(to), gathered(from, bytes, false));
  return true;
}

template <class Vector>
bool X64Vectors<Vector>::store_apart(const Reg& from, const Reg& base, int64_t offset, int64_t step,
                                     uint32_t bytes) {
  const uint32_t in_part = bytes == 8 ? 2 : 4;
  const x86::Xmm moved = temporary().xmm();
  x86::Xmm part = v(from).xmm();
  for (uint32_t lane = 0; lane < in_part * (kLanes / 4); ++lane) {
    const uint32_t element = lane % in_part;
    if (element == 0 && lane > 0) {
      part = moved;
      extract_part(part, v(from), lane / in_part);
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

template <class Vector>
void X64Vectors<Vector>::any_and_differ(Reg any, Reg differ, const List<Reg>& masks) {
  const Vector some = temporary(), every = temporary();
  copy(some, masks[0]);
  copy(every, masks[0]);
  for (size_t i = 1; i < masks.size(); ++i) {
    bit_or(some, some, v(masks[i]));
    bit_and(every, every, v(masks[i]));
  }
  // They differ if at least one lane is set and at least one is not.
  mask_word(x(differ), every);
  cc_.xor_(w(differ), kIs512 ? 0xffff : 0xff);
  mask_word(x(any), some);
  cc_.test(w(any), w(any));
  cc_.cmovz(w(differ), w(any));
}

template <class Vector>
void X64Vectors<Vector>::mask_to_bits(Reg word, Reg mask, uint32_t first) {
  const Gp lanes = temporary_word();
  mask_word(lanes, v(mask));
  if (first) cc_.shl(lanes, first);
  cc_.or_(x(word), lanes);
}

template class X64Vectors<Ymm>;
template class X64Vectors<Zmm>;

}  // namespace kiln::engine
#endif
