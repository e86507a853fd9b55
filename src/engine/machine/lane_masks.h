// SPDX-License-Identifier: Apache-2.0
// How are lanes selected by the bits of a mask? Without a branch per lane: these loops compile to a
// few vector instructions.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>

#include "engine/cuda/limits.h"

namespace kiln::engine {

// The number of lanes that share one part of the mask: the bits of a T, at most 32.
template <class T>
constexpr uint32_t kLanesOfPart = sizeof(T) * 8 < kWarpSize ? sizeof(T) * 8 : kWarpSize;

template <class T>
constexpr auto kPartBits = [] {
  std::array<T, kLanesOfPart<T>> bits{};
  for (uint32_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<T>(T{1} << i);
  return bits;
}();

// d = mask ? a : b. a and b either equal d or do not overlap it; kOneA, kOneB: one value for all
// lanes.
template <std::unsigned_integral T, bool kOneA = false, bool kOneB = false>
[[gnu::always_inline]] inline void select_lanes(T* d, const T* a, const T* b, uint32_t mask) {
  const T a0 = a[0], b0 = b[0];
  for (uint32_t first = 0; first < kWarpSize; first += kLanesOfPart<T>) {
    const T part = static_cast<T>(mask >> first);
#pragma GCC ivdep
    for (uint32_t i = 0; i < kLanesOfPart<T>; ++i) {
      const T is_set = (part & kPartBits<T>[i]) != 0 ? static_cast<T>(~T{0}) : T{0};
      const T yes = kOneA ? a0 : a[first + i], no = kOneB ? b0 : b[first + i];
      d[first + i] = static_cast<T>(no ^ ((yes ^ no) & is_set));
    }
  }
}

}  // namespace kiln::engine
