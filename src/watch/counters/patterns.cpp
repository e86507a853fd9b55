// SPDX-License-Identifier: Apache-2.0
#include "watch/counters/patterns.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace kiln::watch {
namespace {

uint32_t lane_of(uint32_t rest) { return static_cast<uint32_t>(std::countr_zero(rest)); }

// The lanes that go through the banks together: all, a half of the warp, a quarter.
uint32_t lanes_together(uint32_t bytes) { return bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8; }

uint32_t lanes_from(uint32_t begin, uint32_t count) {
  return count == kWarpSize ? ~0u : ((1u << count) - 1) << begin;
}

// Whether every lane of `part` has the address of its neighbour, or of the one after that.
bool share_addresses(const WarpAddresses& access, uint32_t part) {
  for (const uint32_t apart : {1u, 2u}) {
    bool all = true;
    for (uint32_t rest = part; rest && all; rest &= rest - 1) {
      const uint32_t lane = lane_of(rest), other = lane ^ apart;
      all = !(part >> other & 1) || access.at[lane] == access.at[other];
    }
    if (all) return true;
  }
  return false;
}

// Lanes of at most one word each whose banks all differ, or hold the same word: most accesses.
bool has_no_conflict(const WarpAddresses& access, uint32_t mask) {
  uint64_t words[kBanks];
  uint32_t seen = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const uint64_t at = access.at[lane_of(rest)], word = at / kBankBytes;
    if (at % kBankBytes + access.bytes > kBankBytes) return false;
    const uint32_t bank = word % kBanks;
    if (seen >> bank & 1 && words[bank] != word) return false;
    seen |= 1u << bank;
    words[bank] = word;
  }
  return true;
}

uint32_t words_of_busiest_bank(const WarpAddresses& access, uint32_t mask) {
  if (access.bytes <= kBankBytes && has_no_conflict(access, mask)) return 1;
  // By bank the words seen so far: a chain through `next`.
  uint64_t words[kWarpSize * 4];
  int8_t next[kWarpSize * 4];
  int8_t head[kBanks];
  uint8_t count[kBanks] = {};
  std::fill(head, head + kBanks, int8_t{-1});
  uint32_t used = 0, most = 0;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    const uint64_t at = access.at[lane_of(rest)];
    const uint64_t last = (at + access.bytes - 1) / kBankBytes;
    for (uint64_t word = at / kBankBytes; word <= last && used < std::size(words); ++word) {
      const uint32_t bank = word % kBanks;
      int8_t seen = head[bank];
      while (seen >= 0 && words[seen] != word) seen = next[seen];
      if (seen >= 0) continue;
      words[used] = word;
      next[used] = head[bank];
      head[bank] = static_cast<int8_t>(used++);
      most = std::max<uint32_t>(most, ++count[bank]);
    }
  }
  return most;
}

}  // namespace

namespace {

// One sector per lane: a small table by the low bits of a sector. What is in a place may be
// another one: the next place is tried then. False: some lane's bytes reach into a second sector.
bool find_one_per_lane(const WarpAddresses& access, Sectors* out) {
  constexpr uint32_t kPlaces = 128;
  uint8_t places[kPlaces] = {};  // index into `of`, from 1
  uint32_t count = 0;
  uint64_t before = ~uint64_t{0}, all = 0;
  for (uint32_t rest = access.mask; rest; rest &= rest - 1) {
    const uint64_t at = access.at[lane_of(rest)], sector = at / kSectorBytes;
    all |= at;
    if (sector == before) continue;
    before = sector;
    uint32_t place = sector % kPlaces;
    while (places[place] && out->of[places[place] - 1] != sector) place = (place + 1) % kPlaces;
    if (places[place]) continue;
    out->of[count] = sector;
    places[place] = static_cast<uint8_t>(++count);
  }
  out->count = count;
  return (all & (access.bytes - 1)) == 0;
}

}  // namespace

void find_sectors(const WarpAddresses& access, Sectors* out) {
  const bool power_of_two = (access.bytes & (access.bytes - 1)) == 0;
  if (power_of_two && access.bytes <= kSectorBytes && find_one_per_lane(access, out)) return;
  // A table by the low bits of a sector; what is in a place may be another one: it goes on then.
  constexpr uint32_t kPlaces = 512;
  uint16_t places[kPlaces] = {};  // index into `of`, from 1
  out->count = 0;
  uint64_t before = ~uint64_t{0};
  for (uint32_t rest = access.mask; rest; rest &= rest - 1) {
    const uint64_t at = access.at[lane_of(rest)];
    const uint64_t last = (at + access.bytes - 1) / kSectorBytes;
    for (uint64_t sector = at / kSectorBytes; sector <= last; ++sector) {
      if (sector == before) continue;
      before = sector;
      uint32_t place = sector % kPlaces;
      while (places[place] && out->of[places[place] - 1] != sector) place = (place + 1) % kPlaces;
      if (places[place] || out->count == std::size(out->of)) continue;
      out->of[out->count] = sector;
      places[place] = static_cast<uint16_t>(++out->count);
    }
  }
}

bool is_one_range(uint32_t mask, uint32_t bytes, uint64_t step) {
  // Lanes of the mask are neighbours, and no sector lies between two of them.
  const uint32_t shifted = mask >> std::countr_zero(mask);
  const auto distance = static_cast<int64_t>(step);
  const int64_t gap = (distance < 0 ? -distance : distance) - static_cast<int64_t>(bytes);
  return (shifted & (shifted + 1)) == 0 && gap <= 0;
}

SectorRange range_of(uint32_t mask, uint32_t bytes, uint64_t base, uint64_t step) {
  const auto low = static_cast<uint32_t>(std::countr_zero(mask));
  const auto high = static_cast<uint32_t>(31 - std::countl_zero(mask));
  uint64_t first = base + step * low, last = base + step * high;
  if (last < first) std::swap(first, last);
  return {first / kSectorBytes, (last + bytes - 1) / kSectorBytes};
}

uint32_t ideal_sectors(uint32_t mask, uint32_t bytes) {
  const uint32_t all = static_cast<uint32_t>(std::popcount(mask)) * bytes;
  return (all + kSectorBytes - 1) / kSectorBytes;
}

uint32_t wavefronts(const WarpAddresses& access, bool load) {
  uint32_t together = lanes_together(access.bytes);
  const bool joins = load && together < kWarpSize;
  if (joins) together *= 2;
  uint32_t total = 0;
  for (uint32_t begin = 0; begin < kWarpSize; begin += together) {
    const uint32_t part = access.mask & lanes_from(begin, together);
    if (!part) continue;
    if (!joins || share_addresses(access, part)) {
      total += words_of_busiest_bank(access, part);
      continue;
    }
    for (const uint32_t at : {begin, begin + together / 2}) {
      const uint32_t half = part & lanes_from(at, together / 2);
      if (half) total += words_of_busiest_bank(access, half);
    }
  }
  return total;
}

uint32_t ideal_wavefronts(uint32_t mask, uint32_t bytes) {
  const uint32_t together = lanes_together(bytes);
  uint32_t total = 0;
  for (uint32_t begin = 0; begin < kWarpSize; begin += together) {
    total += (mask & lanes_from(begin, together)) != 0;
  }
  return total;
}

uint32_t atomic_sectors(const WarpAddresses& access) {
  // By sector how many lanes its busiest address has.
  uint64_t sectors[kWarpSize];
  uint32_t times[kWarpSize];
  uint32_t found = 0;
  each_address(access, [&](uint64_t address, uint32_t lanes) {
    const uint64_t sector = address / kSectorBytes;
    uint32_t at = 0;
    while (at < found && sectors[at] != sector) ++at;
    if (at == found) {
      sectors[found] = sector;
      times[found++] = 0;
    }
    times[at] = std::max(times[at], lanes);
  });
  uint32_t total = 0;
  for (uint32_t i = 0; i < found; ++i) total += times[i];
  return total;
}

uint32_t busiest_address(const WarpAddresses& access) {
  uint32_t most = 0;
  each_address(access, [&](uint64_t, uint32_t lanes) { most = std::max(most, lanes); });
  return most;
}

}  // namespace kiln::watch
