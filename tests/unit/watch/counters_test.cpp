// SPDX-License-Identifier: Apache-2.0
// What does an access cost? Patterns whose sectors and wavefronts were measured on an H200.
#include "watch/counters/counters.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "watch/counters/footprint.h"
#include "watch/counters/patterns.h"
#include "watch/counters/reuse.h"

namespace kiln::watch {
namespace {

using namespace engine;

struct Lanes {
  uint64_t at[kWarpSize] = {};
  explicit Lanes(const std::function<uint64_t(uint32_t)>& address) {
    for (uint32_t i = 0; i < kWarpSize; ++i) at[i] = address(i);
  }
};

uint32_t sectors(uint32_t bytes, const std::function<uint64_t(uint32_t)>& address,
                 uint32_t mask = ~0u) {
  const Lanes lanes(address);
  Sectors found;
  find_sectors({mask, bytes, lanes.at}, &found);
  return found.count;
}
uint32_t passes(uint32_t bytes, const std::function<uint64_t(uint32_t)>& address,
                bool load = true) {
  const Lanes lanes(address);
  return wavefronts({~0u, bytes, lanes.at}, load);
}

TEST(Sectors, OfTheUsualPatterns) {
  EXPECT_EQ(sectors(4, [](uint32_t i) { return 4096 + 4 * i; }), 4u);
  EXPECT_EQ(sectors(16, [](uint32_t i) { return 4096 + 16 * i; }), 16u) << "float4";
  EXPECT_EQ(sectors(4, [](uint32_t i) { return 4100 + 4 * i; }), 5u) << "offset by one element";
  EXPECT_EQ(sectors(4, [](uint32_t i) { return 4096 + 8 * i; }), 8u) << "every second element";
  EXPECT_EQ(sectors(4, [](uint32_t i) { return 4096 + 132 * i; }), 32u) << "every 33rd";
  EXPECT_EQ(sectors(4, [](uint32_t) { return 4096; }), 1u) << "one address";
  EXPECT_EQ(sectors(
                4, [](uint32_t i) { return 4096 + 4 * i; }, 0xff),
            1u)
      << "eight lanes";
  EXPECT_EQ(sectors(1, [](uint32_t i) { return 4096 + i; }), 1u) << "bytes";
  EXPECT_EQ(sectors(8, [](uint32_t i) { return 4096 + 512 * (i % 8); }), 8u) << "lanes share";
}

TEST(Sectors, ARangeHasThoseOfItsLanes) {
  for (uint32_t bytes : {1u, 2u, 4u, 8u, 16u}) {
    for (int64_t step : {0, 1, 2, 4, -4, 8, 16, -16}) {
      for (uint32_t mask : {~0u, 1u, 0xff00u, 0x80000000u}) {
        if (!is_one_range(mask, bytes, static_cast<uint64_t>(step))) continue;
        for (uint64_t base : {4096u, 4100u, 4124u}) {
          const SectorRange range = range_of(mask, bytes, base, static_cast<uint64_t>(step));
          const uint32_t count = sectors(
              bytes, [&](uint32_t i) { return base + static_cast<uint64_t>(step) * i; }, mask);
          EXPECT_EQ(range.last - range.first + 1, count) << bytes << " " << step << " " << mask;
        }
      }
    }
  }
}

TEST(Sectors, AGapIsNotARange) {
  EXPECT_FALSE(is_one_range(~0u, 4, 64));
  EXPECT_FALSE(is_one_range(0b101, 4, 4)) << "a lane between takes no part";
  EXPECT_TRUE(is_one_range(0b110, 4, 4));
}

TEST(Wavefronts, OfWordsAreThoseOfTheBusiestBank) {
  EXPECT_EQ(passes(4, [](uint32_t i) { return 4 * i; }), 1u);
  EXPECT_EQ(passes(4, [](uint32_t i) { return 8 * i; }), 2u);
  EXPECT_EQ(passes(4, [](uint32_t i) { return 128 * i; }), 32u);
  EXPECT_EQ(passes(4, [](uint32_t i) { return 132 * i; }), 1u) << "padded";
  EXPECT_EQ(passes(4, [](uint32_t) { return 64; }), 1u) << "one word for all";
  EXPECT_EQ(passes(1, [](uint32_t i) { return i; }), 1u) << "bytes of one word";
}

TEST(Wavefronts, OfWideAccessesGoByHalvesAndQuarters) {
  EXPECT_EQ(passes(8, [](uint32_t i) { return 8 * i; }), 2u);
  EXPECT_EQ(passes(16, [](uint32_t i) { return 16 * i; }), 4u);
  EXPECT_EQ(passes(8, [](uint32_t i) { return 16 * i; }), 4u);
  EXPECT_EQ(passes(16, [](uint32_t i) { return 32 * i; }), 8u);
  EXPECT_EQ(ideal_wavefronts(~0u, 8), 2u);
  EXPECT_EQ(ideal_wavefronts(0xffff, 8), 1u) << "one half alone";
  EXPECT_EQ(ideal_wavefronts(~0u, 16), 4u);
}

TEST(Wavefronts, OfWideLoadsAreFewerWhereNeighboursShareAddresses) {
  const auto shared_by = [](uint32_t lanes, uint32_t bytes) {
    return [=](uint32_t i) -> uint64_t { return i / lanes * bytes; };
  };
  EXPECT_EQ(passes(8, shared_by(2, 8)), 1u);
  EXPECT_EQ(passes(8, shared_by(32, 8)), 1u);
  EXPECT_EQ(passes(16, shared_by(2, 16)), 2u);
  EXPECT_EQ(passes(16, shared_by(32, 16)), 2u);
  EXPECT_EQ(passes(16, shared_by(4, 16), false), 4u) << "stores go one by one";
}

TEST(Atomics, CountASectorForEachLaneOfItsBusiestAddress) {
  const Lanes same([](uint32_t) { return 64; }), apart([](uint32_t i) { return 4 * i; });
  const Lanes eights([](uint32_t i) { return i / 8 * 4; });
  EXPECT_EQ(atomic_sectors({~0u, 4, same.at}), 32u);
  EXPECT_EQ(atomic_sectors({~0u, 4, apart.at}), 4u);
  EXPECT_EQ(atomic_sectors({~0u, 4, eights.at}), 8u) << "four addresses of one sector";
}

TEST(Atomics, CountTheLanesOfTheBusiestAddress) {
  const Lanes same([](uint32_t) { return 64; }), apart([](uint32_t i) { return 4 * i; });
  EXPECT_EQ(busiest_address({~0u, 4, same.at}), 32u);
  EXPECT_EQ(busiest_address({~0u, 4, apart.at}), 1u);
  EXPECT_EQ(busiest_address({0xf, 4, same.at}), 4u);
}

TEST(SectorSet, HasEachSectorOnce) {
  SectorSet set;
  std::set<uint64_t> expected;
  uint64_t state = 7;
  for (int i = 0; i < 20000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t sector = (state >> 40) % 100000;
    set.add(sector);
    expected.insert(sector);
  }
  uint64_t added = 0;
  for (uint64_t sector = 200; sector <= 700; ++sector) added += expected.insert(sector).second;
  EXPECT_EQ(set.add(200, 700), added);
  EXPECT_EQ(set.add(200, 700), 0u);
  EXPECT_EQ(set.count(), expected.size());
  set.clear();
  EXPECT_EQ(set.count(), 0u);
  EXPECT_EQ(set.add(5), 1u);
}

// Blocks of one wave that read the same sector fetch it from DRAM once.
TEST(Footprint, AnswersAreThoseOfAnyOrderOfBlocks) {
  const auto traffic = [](bool backwards) {
    Footprint footprint;
    footprint.begin({2, 4096}, 4);  // L2 holds 128 sectors; four blocks run at once
    for (uint64_t i = 0; i < 64; ++i) {
      const uint64_t block = backwards ? 63 - i : i;
      Touched touched;
      touched.load(0, 3);                                  // all blocks: the same four
      touched.load(1000 + 32 * block, 1031 + 32 * block);  // its own
      touched.store(100000 + 32 * block, 100031 + 32 * block);
      footprint.end_block(block, touched);
    }
    return footprint.end();
  };
  const Traffic a = traffic(false), b = traffic(true);
  EXPECT_EQ(a.read_sectors, 64u * 32 + 4);
  EXPECT_EQ(a.written_sectors, 64u * 32);
  EXPECT_EQ(a.block_sectors, 64u * 36);
  EXPECT_GE(a.dram_read_sectors, 64u * 32 + 4) << "each at least once";
  EXPECT_LE(a.dram_write_sectors, 64u * 32);
  EXPECT_EQ(a.dram_read_sectors, b.dram_read_sectors);
  EXPECT_EQ(a.dram_write_sectors, b.dram_write_sectors);
}

TEST(Footprint, WhatFitsInL2IsReadOnce) {
  Footprint footprint;
  footprint.begin({2, 1 << 20}, 1);
  for (uint64_t block = 0; block < 8; ++block) {
    Touched touched;
    touched.load(0, 999);
    footprint.end_block(block, touched);
  }
  const Traffic found = footprint.end();
  EXPECT_EQ(found.dram_read_sectors, 1000u);
  EXPECT_EQ(found.block_sectors, 8000u);
}

// Rows that each warp reads three times, the third time while it writes: of H200's L2 of 50 MB a
// part is gone in the third pass.
Reuse three_passes(uint64_t sectors, const ReuseScale& scale) {
  WarpReuse warp(scale);
  for (int pass = 0; pass < 3; ++pass) {
    for (uint64_t i = 0; i < sectors; i += 4) {
      warp.load(i, i + 3);
      if (pass == 2) warp.store(1000000 + i, 1000003 + i);
    }
  }
  return warp.found();
}

TEST(Reuse, WhatFitsInL1IsLoadedOnce) {
  const Reuse found = three_passes(128, {256 << 10, 50 << 20, 4, 4 * 132});
  EXPECT_EQ(found.loaded, 128u);
  EXPECT_EQ(found.from_l2, 0u);
  EXPECT_EQ(found.from_dram, 0u);
}

TEST(Reuse, WhatAllWarpsTouchInBetweenIsLost) {
  const Reuse found = three_passes(128, {256 << 10, 50 << 20, 64, 64 * 132});
  // 256 KB go through L1 between two loads of a sector: two thirds are lost, twice.
  EXPECT_NEAR(static_cast<double>(found.more_from_l2(3000)), 4000, 50);
  // 34.6 MB go through L2 between the first two passes, up to 69 MB between the last two.
  EXPECT_NEAR(static_cast<double>(found.more_from_dram(3000)), 1000, 100);
  const Reuse more = three_passes(8192, {256 << 10, 50 << 20, 3, 256});
  EXPECT_EQ(more.more_from_dram(1000), 2000u) << "67 MB between any two loads: all is lost";
}

TEST(Reuse, ALoadThatFollowsAtOnceIsAHit) {
  WarpReuse warp({256 << 10, 50 << 20, 64, 64 * 132});
  for (uint64_t i = 0; i < 1000; ++i)
    for (int again = 0; again < 8; ++again) warp.load(i, i + 1);
  EXPECT_EQ(warp.found().from_l2, 0u);
  EXPECT_EQ(warp.found().loaded, 1001u);
}

}  // namespace
}  // namespace kiln::watch
