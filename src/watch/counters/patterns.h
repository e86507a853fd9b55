// SPDX-License-Identifier: Apache-2.0
// What does one access of a warp cost the memory system? Sectors of global memory, passes through
// the banks of shared memory.
//
// The rules are those that Nsight Compute's counters follow on an H200 (docs/results/counters.md).
#pragma once

#include <bit>
#include <cstdint>

#include "engine/cuda/limits.h"

namespace kiln::watch {

using engine::kWarpSize;

constexpr uint32_t kSectorBytes = 32, kBanks = 32, kBankBytes = 4;

// Lanes of `mask` at addresses[lane], `bytes` each. Lanes that are not in the mask are not read.
struct WarpAddresses {
  uint32_t mask = 0;
  uint32_t bytes = 0;
  const uint64_t* at = nullptr;
};

// Different 32-byte sectors.
struct Sectors {
  uint32_t count = 0;
  uint64_t of[kWarpSize * 8];  // the first `count` are set
};
void find_sectors(const WarpAddresses& access, Sectors* out);

// The same for a run with base and step, without walking over lanes where its bytes touch or
// overlap: then its sectors are those of one range.
struct SectorRange {
  uint64_t first = 0, last = 0;
};
bool is_one_range(uint32_t mask, uint32_t bytes, uint64_t step);
SectorRange range_of(uint32_t mask, uint32_t bytes, uint64_t base, uint64_t step);

// What the same number of bytes would take side by side.
uint32_t ideal_sectors(uint32_t mask, uint32_t bytes);

// Passes through the banks: lanes go together as long as no bank has to give two words. Accesses of
// 8 bytes go by halves of the warp, those of 16 by quarters. Loads of two such parts become one
// where neighbouring lanes have the same address: a load by all lanes of one double takes one pass,
// of one float4 two. Stores are never put together.
uint32_t wavefronts(const WarpAddresses& access, bool load);
uint32_t ideal_wavefronts(uint32_t mask, uint32_t bytes);

// Calls then(address, lanes that have it) for each different address.
template <class Then>
void each_address(const WarpAddresses& access, Then then) {
  for (uint32_t rest = access.mask; rest;) {
    const uint64_t address = access.at[std::countr_zero(rest)];
    uint32_t same = 0;
    for (uint32_t others = rest; others; others &= others - 1)
      if (access.at[std::countr_zero(others)] == address) same |= others & -others;
    rest &= ~same;
    then(address, static_cast<uint32_t>(std::popcount(same)));
  }
}

// Lanes at the address that most of them share.
uint32_t busiest_address(const WarpAddresses& access);

// Sectors of an atomic: lanes with one address go one after the other, and each time the sector
// counts again. Near to what a GPU counts, not equal to it (docs/results/counters.md).
uint32_t atomic_sectors(const WarpAddresses& access);

}  // namespace kiln::watch
