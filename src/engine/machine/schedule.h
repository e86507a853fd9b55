// SPDX-License-Identifier: Apache-2.0
// In which order do blocks and warps run? CUDA guarantees none, so a correct kernel gives the same
// result in each, and an incorrect one may show it in another. The same number gives the same order
// on every machine and in every run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace kiln::engine {

// Mixes the bits of x well (the finalizer of splitmix64).
constexpr uint64_t mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A permutation of 0 .. count - 1. A step that has no common divisor with `count` reaches every
// index once, without a table.
inline uint64_t scheduled(uint64_t index, uint64_t count, uint64_t schedule) {
  if (schedule == 0 || count < 2) return index;
  uint64_t step = mixed(schedule) % count;
  while (std::gcd(step, count) != 1) step = (step + 1) % count;
  const uint64_t start = mixed(schedule ^ 0x5bd1e995) % count;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(index) * step + start) % count);
}

// How many blocks a thread may have open at once (grid.cpp): if all warps of its blocks wait, it
// opens the next block.
constexpr uint64_t kResidentBlocks = 64;

// The same within windows, which keep their order. A kernel may wait for an earlier block (a scan
// with decoupled look-back). The earliest block that has not ended is then in the first window that
// has not ended, and it is opened as long as the other blocks of that window leave room for it.
inline uint64_t scheduled_in(uint64_t window, uint64_t index, uint64_t count, uint64_t schedule) {
  if (schedule == 0 || window >= count) return scheduled(index, count, schedule);
  const uint64_t begin = index / window * window;
  return begin + scheduled(index - begin, std::min(window, count - begin), mixed(schedule ^ begin));
}

// Shuffles `order`, differently for each schedule, block and round.
inline void shuffle(std::vector<uint32_t>& order, uint64_t schedule, uint64_t block,
                    uint64_t round) {
  uint64_t state = mixed(schedule ^ mixed(block ^ mixed(round)));
  for (size_t i = order.size(); i > 1; --i) {
    state = mixed(state);
    std::swap(order[i - 1], order[state % i]);
  }
}

}  // namespace kiln::engine
