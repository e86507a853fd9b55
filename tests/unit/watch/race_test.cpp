// SPDX-License-Identifier: Apache-2.0
// Which accesses of a launch race? Recorded events: no kernel runs here.
#include "race_run.h"

namespace kiln::watch {
namespace {

TEST(Race, ABarrierOrdersABlock) {
  RaceRun r;
  r.launch(1, 64);
  r.store(1, 0, 0, kAll, 0);
  r.store(1, 0, 1, kAll, 128);
  r.barrier(0);
  r.load(2, 0, 0, kAll, 128);
  r.load(2, 0, 1, kAll, 0);
  r.end();
  EXPECT_EQ(r.pairs(), Pairs{});
}

TEST(Race, WithoutABarrierItIsFoundInEitherOrder) {
  for (bool reader_first : {false, true}) {
    RaceRun r;
    r.launch(1, 64);
    if (reader_first) r.load(2, 0, 1, kAll, 0);
    r.store(1, 0, 0, kAll, 0);
    if (!reader_first) r.load(2, 0, 1, kAll, 0);
    r.end();
    EXPECT_EQ(r.pairs("shared-race"), (Pairs{{1, 2}}));
    const results::Finding& finding = r.collector.findings().findings[0];
    EXPECT_EQ(finding.places[0].action, "write of 4 bytes");
    EXPECT_EQ(finding.places[1].action, "read of 4 bytes");
    EXPECT_NE(finding.advice.find("no barrier between line 1 and line 2"), std::string::npos)
        << finding.advice;
  }
}

TEST(Race, LanesOfAWarpNeedASyncOfTheirs) {
  RaceRun r;
  r.launch(1, 32);
  r.store(1, 0, 0, kAll, 0);
  r.load(2, 0, 0, kAll >> 1, 4);
  EXPECT_EQ(r.pairs(), (Pairs{{1, 2}}));
  r.sync_warp(0, 0);
  r.load(3, 0, 0, kAll >> 1, 4);
  EXPECT_EQ(r.pairs(), (Pairs{{1, 2}})) << "a sync orders";
  r.end();
}

TEST(Race, AThreadDoesNotRaceWithItself) {
  RaceRun r;
  r.launch(2, 64);
  for (uint32_t block : {0u, 1u}) {
    for (uint32_t warp : {0u, 1u}) {
      const uint64_t at = kGlobal + block * 256 + warp * 128;
      r.store(1, block, warp, kAll, at);
      r.load(2, block, warp, kAll, at);
      r.store(3, block, warp, kAll, at);
    }
  }
  r.end();
  EXPECT_EQ(r.pairs(), Pairs{});
}

TEST(Race, BlocksAreNotOrdered) {
  RaceRun r;
  r.launch(3, 32);
  r.load(1, 0, 0, 1, kGlobal, 0);
  r.load(1, 1, 0, 1, kGlobal, 0);
  r.barrier(2);
  r.store(2, 2, 0, 1, kGlobal, 0);
  r.end();
  EXPECT_EQ(r.pairs("global-race"), (Pairs{{1, 2}}));
}

TEST(Race, SeveralLanesThatWriteOnePlace) {
  RaceRun r;
  r.launch(1, 32);
  r.store(1, 0, 0, kAll, 64, 0);
  r.end();
  EXPECT_EQ(r.pairs(), (Pairs{{1, 1}}));
}

TEST(Race, WritesOfOneValueAreANote) {
  for (uint32_t other : {7u, 8u}) {
    RaceRun r;
    r.launch(2, 32);
    for (uint32_t block : {0u, 1u}) {
      uint32_t values[32];
      for (uint32_t& each : values) each = 7;
      if (block == 1) values[5] = other;
      AccessEvent store = r.access(AccessKind::Store, 1, block, 0, kAll, kGlobal, 0);
      store.values = reinterpret_cast<const std::byte*>(values);
      store.value_bytes = 4;
      r.checker.on(store);
    }
    r.end();
    EXPECT_EQ(r.pairs(other == 7 ? "same-value-race" : "global-race"), (Pairs{{1, 1}}));
    EXPECT_EQ(r.pairs(other == 7 ? "global-race" : "same-value-race"), Pairs{});
  }
}

TEST(Race, AtomicsDoNotRaceAndAWeakReadOfThemDoes) {
  RaceRun r;
  r.launch(2, 32);
  r.atomic(1, 0, 0, kAll, kGlobal, 0);
  r.atomic(1, 1, 0, kAll, kGlobal, 0);
  EXPECT_EQ(r.pairs(), Pairs{});
  r.load(2, 1, 0, 1, kGlobal, 0);
  EXPECT_EQ(r.pairs(), (Pairs{{1, 2}}));
  EXPECT_NE(r.collector.findings().findings[0].advice.find("make the read at line 2 atomic"),
            std::string::npos);
  r.end();
}

TEST(Race, AtomicsOfABlocksScopeRaceBetweenBlocks) {
  RaceRun r;
  r.launch(2, 32);
  r.strong(AccessKind::Atomic, 1, 0, 0, 1, kGlobal, Strength::Relaxed, Scope::Block);
  r.strong(AccessKind::Atomic, 1, 0, 0, 2, kGlobal, Strength::Relaxed, Scope::Block);
  EXPECT_EQ(r.pairs(), Pairs{});
  r.strong(AccessKind::Atomic, 2, 1, 0, 1, kGlobal, Strength::Relaxed, Scope::Gpu);
  EXPECT_EQ(r.pairs(), (Pairs{{1, 2}}));
  r.end();
}

// Neighbours in one word.
TEST(Race, BytesAreToldApart) {
  RaceRun r;
  r.launch(2, 32);
  r.store(1, 0, 0, 1, kGlobal, 0, 1);
  r.store(2, 1, 0, 1, kGlobal + 1, 0, 1);
  r.store(3, 1, 0, 1, kGlobal + 2, 0, 2);
  EXPECT_EQ(r.pairs(), Pairs{});
  r.load(4, 1, 0, 1, kGlobal, 0, 4);
  EXPECT_EQ(r.pairs(), (Pairs{{1, 4}}));
  // A warp of bytes, word for word, and one lane of them.
  r.store(5, 0, 0, kAll, kGlobal + 256, 1, 1);
  r.load(6, 0, 0, 1u << 5, kGlobal + 256 + 5, 0, 1);
  EXPECT_EQ(r.pairs(), (Pairs{{1, 4}}));
  r.load(7, 0, 0, 1u << 5, kGlobal + 256 + 6, 0, 1);
  EXPECT_EQ(r.pairs(), (Pairs{{1, 4}, {5, 7}}));
  r.end();
}

TEST(Race, ElementsOfDifferentSizesMeet) {
  RaceRun r;
  r.launch(1, 64);
  r.store(1, 0, 0, kAll, kGlobal, 16, 16);  // four lines
  r.load(2, 0, 0, 1u << 9, kGlobal + 9 * 16 + 4, 0);
  EXPECT_EQ(r.pairs(), Pairs{}) << "its own";
  r.load(3, 0, 0, 1u << 8, kGlobal + 9 * 16 + 4, 0);
  EXPECT_EQ(r.pairs(), (Pairs{{1, 3}}));
  r.load(4, 0, 1, kAll, kGlobal + 128, 8, 8);
  EXPECT_EQ(r.pairs(), (Pairs{{1, 3}, {1, 4}}));
  r.end();
}

// All pairs of lines, though each word is written again and again.
TEST(Race, EachPairOfLinesIsFound) {
  for (bool other_first : {false, true}) {
    RaceRun r;
    r.launch(2, 32);
    if (other_first) r.load(9, 1, 0, kAll, kGlobal);
    r.store(1, 0, 0, kAll, kGlobal);
    r.barrier(0);
    r.store(2, 0, 0, kAll, kGlobal);
    r.barrier(0);
    r.load(3, 0, 0, kAll, kGlobal);
    if (!other_first) r.load(9, 1, 0, kAll, kGlobal);
    r.end();
    EXPECT_EQ(r.pairs(), (Pairs{{1, 9}, {2, 9}})) << other_first;
  }
}

TEST(Race, NamedBarriersOrderWhoArrivesBeforeWhoWaits) {
  RaceRun r;
  r.launch(1, 96);
  r.store(1, 0, 0, kAll, 0);
  r.arrive(1, 0, 0, kAll, false);
  r.store(2, 0, 0, kAll, 128);  // after its arrival
  r.arrive(1, 0, 1, kAll, true);
  r.complete(1, 0);
  r.load(3, 0, 1, kAll, 0);
  EXPECT_EQ(r.pairs(), Pairs{});
  r.load(4, 0, 1, kAll, 128);
  EXPECT_EQ(r.pairs(), (Pairs{{2, 4}}));
  r.load(5, 0, 2, kAll, 0);
  EXPECT_EQ(r.pairs(), (Pairs{{2, 4}, {1, 5}})) << "it did not take part";
  r.end();
}

// Consumers that arrive one after the other: the producer knows each up to its own arrival.
TEST(Race, AProducerMayWriteWhatAllConsumersHaveLeft) {
  RaceRun r;
  r.launch(1, 128);
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t warp : {1u, 2u, 3u}) {
      r.load(1, 0, warp, kAll, 0);
      r.arrive(2, 0, warp, kAll, false);
    }
    r.arrive(2, 0, 0, kAll, true);
    r.complete(2, 0);
    r.store(2, 0, 0, kAll, 0);
    r.arrive(3, 0, 0, kAll, false);
    for (uint32_t warp : {1u, 2u, 3u}) r.arrive(3, 0, warp, kAll, true);
    r.complete(3, 0);
  }
  EXPECT_EQ(r.pairs(), Pairs{});
  r.end();
}

TEST(Race, TilesOfAWarpSyncApart) {
  RaceRun r;
  r.launch(1, 32);
  r.store(1, 0, 0, kAll, 0);
  r.sync_warp(0, 0, 0xffff);
  r.load(2, 0, 0, 0x7fff, 4);  // inside of the tile
  EXPECT_EQ(r.pairs(), Pairs{});
  r.load(3, 0, 0, 1u << 15, 64, 0);  // lane 16's
  EXPECT_EQ(r.pairs(), (Pairs{{1, 3}}));
  r.end();
}

TEST(Race, ClustersAreOrderedByTheirBarrier) {
  const uint64_t peer = uint64_t{2} << kPeerShift;  // rank 1
  for (bool waits : {true, false}) {
    RaceRun r;
    r.launch(2, 32, 2);
    AccessEvent store = r.access(AccessKind::Store, 1, 0, 0, kAll, peer);
    store.space = ptx::Space::Shared;
    r.checker.on(store);
    for (uint64_t block : {0, 1}) {
      SyncEvent arrive;
      arrive.by = r.by(99, block, 0, kAll);
      arrive.kind = SyncKind::Cluster;
      arrive.waits = false;
      arrive.strength = Strength::Release;
      r.checker.on(arrive);
    }
    if (waits) {
      SyncEvent wait;
      wait.by = r.by(99, 1, 0, kAll);
      wait.kind = SyncKind::Cluster;
      wait.completed = true;
      wait.strength = Strength::Acquire;
      r.checker.on(wait);
    }
    r.load(2, 1, 0, kAll, 0);
    r.end();
    EXPECT_EQ(r.pairs(), waits ? Pairs{} : (Pairs{{1, 2}}));
  }
}

TEST(Race, AnMbarrierOrdersArrivalsBeforeItsWait) {
  for (bool passed : {true, false}) {
    RaceRun r;
    r.launch(1, 64);
    r.store(1, 0, 0, kAll, 128);
    MbarrierEvent arrive;
    arrive.step = MbarrierStep::Arrive;
    arrive.address = kSharedWindow | 8;
    arrive.order = {Strength::Release, Scope::Block};
    for (uint32_t lane = 0; lane < 32; ++lane) {
      arrive.by = r.by(99, 0, 0, 1u << lane);
      arrive.completed = lane == 31;
      r.checker.on(arrive);
    }
    MbarrierEvent test = arrive;
    test.step = MbarrierStep::Test;
    test.by = r.by(99, 0, 1, kAll);
    test.order = {Strength::Acquire, Scope::Block};
    test.passed = passed;
    r.checker.on(test);
    r.load(2, 0, 1, kAll, 128);
    r.end();
    EXPECT_EQ(r.pairs(), passed ? Pairs{} : (Pairs{{1, 2}}));
  }
}

TEST(Race, AnMbarrierIsSetUpBeforeItIsUsed) {
  for (const bool waits : {false, true}) {
    RaceRun r;
    r.launch(1, 64);
    r.mbarrier(MbarrierStep::Init, 1, 0, 0, 1, 256);
    if (waits) r.barrier(0);
    r.mbarrier(MbarrierStep::Arrive, 2, 0, 0, 1, 256);
    r.mbarrier(MbarrierStep::Arrive, 3, 0, 1, 1, 256);
    r.end();
    EXPECT_EQ(r.pairs(), waits ? Pairs{} : (Pairs{{1, 3}}));
  }
}

// The ends of libraries' pipelines count who leaves, in ways of their own.
TEST(Race, AnMbarrierThatWasGivenUpMayBeSetUpAgain) {
  RaceRun r;
  r.launch(1, 64);
  r.mbarrier(MbarrierStep::Init, 1, 0, 0, 1, 256);
  r.barrier(0);
  r.mbarrier(MbarrierStep::Arrive, 2, 0, 1, 1, 256);
  r.mbarrier(MbarrierStep::Invalidate, 3, 0, 0, 1, 256);
  r.mbarrier(MbarrierStep::Init, 4, 0, 0, 1, 256);
  r.end();
  EXPECT_EQ(r.pairs(), Pairs{});
}

TEST(Race, AsynchronousCopiesAreLeftOut) {
  RaceRun r;
  r.launch(1, 64);
  AccessEvent copy = r.access(AccessKind::Store, 1, 0, 0, kAll, 0);
  copy.async = true;
  r.checker.on(copy);
  r.load(2, 0, 1, kAll, 0);
  r.end();
  EXPECT_EQ(r.pairs(), Pairs{});
}

TEST(Race, SharedMemoryIsGivenBack) {
  RaceRun r;
  for (int i = 0; i < 3; ++i) {
    r.launch(64, 64);
    for (uint32_t block = 0; block < 64; ++block) {
      for (uint32_t i32 = 0; i32 < 32; ++i32) r.store(1, block, 0, 1u << i32, i32 * 64, 0);
    }
    r.end();
    EXPECT_EQ(r.checker.pool().used(), 0u);
  }
}

}  // namespace
}  // namespace kiln::watch
