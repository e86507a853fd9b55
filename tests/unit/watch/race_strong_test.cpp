// SPDX-License-Identifier: Apache-2.0
// Do fences and strong accesses order what the memory model says they do?
#include "race_run.h"

namespace kiln::watch {
namespace {

constexpr uint64_t kFlag = kGlobal + 4096;

// Block 0 writes and sets a flag; block 1 reads the flag and what was written.
struct Message {
  bool release_fence = true, acquire_fence = true;
  Scope release_scope = Scope::Gpu, acquire_scope = Scope::Gpu;
  Strength write = Strength::Relaxed, read = Strength::Relaxed;
  AccessKind write_kind = AccessKind::Store;
  Scope access_scope = Scope::Gpu;
};

Pairs pass(const Message& m) {
  RaceRun r;
  r.launch(2, 32);
  r.store(1, 0, 0, 1, kGlobal, 0);
  if (m.release_fence) r.fence(0, 0, 1, m.release_scope);
  r.strong(m.write_kind, 2, 0, 0, 1, kFlag, m.write, m.access_scope);
  r.strong(AccessKind::Load, 3, 1, 0, 1, kFlag, m.read, m.access_scope);
  if (m.acquire_fence) r.fence(1, 0, 1, m.acquire_scope);
  r.load(4, 1, 0, 1, kGlobal, 0);
  r.end();
  return r.pairs();
}

TEST(RaceStrong, FencesAndAFlagOrder) {
  const Pairs kRace{{1, 4}};
  EXPECT_EQ(pass({}), Pairs{});
  EXPECT_EQ(pass({.release_fence = false}), kRace);
  EXPECT_EQ(pass({.acquire_fence = false}), kRace);
  EXPECT_EQ(pass({.release_scope = Scope::Block}), kRace) << "the other block is not in its scope";
  EXPECT_EQ(pass({.acquire_scope = Scope::Block}), kRace);
  EXPECT_EQ(pass({.write = Strength::Volatile, .read = Strength::Volatile}), Pairs{});
  EXPECT_EQ(pass({.write_kind = AccessKind::Reduction}), Pairs{});
}

TEST(RaceStrong, ReleaseAndAcquireAreFencesToo) {
  const Pairs kRace{{1, 4}};
  const Message both{.release_fence = false,
                     .acquire_fence = false,
                     .write = Strength::Release,
                     .read = Strength::Acquire};
  EXPECT_EQ(pass(both), Pairs{});
  Message relaxed = both;
  relaxed.read = Strength::Relaxed;
  EXPECT_EQ(pass(relaxed), kRace);
  Message narrow = both;
  narrow.access_scope = Scope::Block;
  // The flag itself then races between the blocks too.
  EXPECT_EQ(pass(narrow), (Pairs{{1, 4}, {2, 3}}));
}

// __threadfence(); atomicAdd(): whoever comes last reads what all have written.
TEST(RaceStrong, TheLastBlockKnowsAllBlocks) {
  for (bool fences : {true, false}) {
    RaceRun r;
    r.launch(16, 64);
    for (uint32_t block = 0; block < 16; ++block) {
      r.store(1, block, 1, kAll, kGlobal + block * 128);
      if (fences) {
        r.fence(block, 0, kAll);
        r.fence(block, 1, kAll);
      }
      r.barrier(block);
      r.strong(AccessKind::Atomic, 2, block, 0, 1, kFlag, Strength::Relaxed);
      if (block == 15) {
        if (fences) r.fence(block, 0, 1);
        r.barrier(block);
        for (uint32_t other = 0; other < 16; ++other) r.load(3, 15, 1, kAll, kGlobal + other * 128);
        r.store(4, 15, 0, 1, kFlag, 0);  // for the next launch
      }
    }
    r.end();
    // The counter has no order without fences either.
    EXPECT_EQ(r.pairs(), fences ? Pairs{} : (Pairs{{1, 3}, {2, 4}}));
  }
}

// The other way round it passes on what its thread knew at that time: the others had none.
TEST(RaceStrong, AFenceBeforeTheBarrierIsOfItsThreadAlone) {
  for (bool all : {true, false}) {
    RaceRun r;
    r.launch(2, 64);
    r.store(1, 0, 1, kAll, kGlobal);
    r.fence(0, 0, all ? kAll : 1);
    if (all) r.fence(0, 1, kAll);
    r.barrier(0);
    r.strong(AccessKind::Store, 2, 0, 0, 1, kFlag, Strength::Relaxed);
    r.strong(AccessKind::Load, 3, 1, 0, 1, kFlag, Strength::Relaxed);
    r.fence(1, 0, 1);
    r.load(4, 1, 0, 1, kGlobal, 0);
    r.end();
    EXPECT_EQ(r.pairs(), all ? Pairs{} : (Pairs{{1, 4}}));
  }
}

// As the CUDA programming guide has it: the last block sets the counter back, without a fence.
TEST(RaceStrong, WhoReadTheLastValueMayWriteTheNext) {
  RaceRun r;
  r.launch(2, 32);
  for (uint32_t block = 0; block < 2; ++block) {
    r.fence(block, 0, 1);
    r.strong(AccessKind::Atomic, 1, block, 0, 1, kFlag, Strength::Relaxed);
  }
  r.store(2, 1, 0, 1, kFlag, 0);
  r.load(3, 0, 0, 1, kFlag, 0);  // but to read it plainly is a race
  r.end();
  EXPECT_EQ(r.pairs(), (Pairs{{1, 3}, {2, 3}}));
}

// The fence of the first thread alone, behind the barrier.
TEST(RaceStrong, AFencePassesOnWhatABarrierBrought) {
  RaceRun r;
  r.launch(2, 64);
  r.store(1, 0, 1, kAll, kGlobal);
  r.barrier(0);
  r.fence(0, 0, 1);
  r.strong(AccessKind::Store, 2, 0, 0, 1, kFlag, Strength::Relaxed);
  r.strong(AccessKind::Load, 3, 1, 0, 1, kFlag, Strength::Acquire);
  r.barrier(1);
  r.load(4, 1, 1, kAll, kGlobal);
  r.end();
  EXPECT_EQ(r.pairs(), Pairs{});
}

// One thread reads the flag, and others have the fence.
TEST(RaceStrong, AFenceBehindABarrierBringsWhatOthersRead) {
  for (bool fences : {true, false}) {
    RaceRun r;
    r.launch(2, 64);
    r.store(1, 0, 0, kAll, kGlobal);
    r.fence(0, 0, kAll);
    r.strong(AccessKind::Atomic, 2, 0, 0, 1, kFlag, Strength::Relaxed);
    r.store(3, 0, 0, 1, kGlobal + 256, 0);
    r.strong(AccessKind::Atomic, 2, 1, 0, 1, kFlag, Strength::Relaxed);
    r.barrier(1);
    if (fences) r.fence(1, 1, kAll);
    r.load(4, 1, 1, 1, kGlobal, 0);
    r.end();
    EXPECT_EQ(r.pairs(), fences ? Pairs{} : (Pairs{{1, 4}}));
  }
}

TEST(RaceStrong, ALockOrdersWhoHoldsIt) {
  for (bool fences : {true, false}) {
    RaceRun r;
    r.launch(4, 32);
    for (uint32_t block : {2u, 0u, 3u, 1u}) {
      r.strong(AccessKind::Atomic, 1, block, 0, 1, kFlag, Strength::Relaxed);
      if (fences) r.fence(block, 0, 1);
      r.load(2, block, 0, 1, kGlobal, 0);
      r.store(3, block, 0, 1, kGlobal, 0);
      if (fences) r.fence(block, 0, 1);
      r.strong(AccessKind::Atomic, 4, block, 0, 1, kFlag, Strength::Relaxed);
    }
    r.end();
    EXPECT_EQ(r.pairs(), fences ? Pairs{} : (Pairs{{2, 3}, {3, 3}}));
  }
}

// A write of a third thread breaks the chain, a read-modify-write does not.
TEST(RaceStrong, ReadModifyWritesKeepAReleaseAndStoresDoNot) {
  for (AccessKind between : {AccessKind::Atomic, AccessKind::Store}) {
    RaceRun r;
    r.launch(3, 32);
    r.store(1, 0, 0, 1, kGlobal, 0);
    r.strong(AccessKind::Store, 2, 0, 0, 1, kFlag, Strength::Release);
    r.strong(between, 3, 1, 0, 1, kFlag, Strength::Relaxed);
    r.strong(AccessKind::Load, 4, 2, 0, 1, kFlag, Strength::Acquire);
    r.load(5, 2, 0, 1, kGlobal, 0);
    r.end();
    EXPECT_EQ(r.pairs(), between == AccessKind::Atomic ? Pairs{} : (Pairs{{1, 5}}));
  }
}

TEST(RaceStrong, OrderIsPassedOnFromThreadToThread) {
  RaceRun r;
  r.launch(3, 32);
  r.store(1, 0, 0, 1, kGlobal, 0);
  r.strong(AccessKind::Store, 2, 0, 0, 1, kFlag, Strength::Release);
  r.strong(AccessKind::Load, 3, 1, 0, 1, kFlag, Strength::Acquire);
  r.strong(AccessKind::Store, 4, 1, 0, 1, kFlag + 8, Strength::Release);
  r.strong(AccessKind::Load, 5, 2, 0, 1, kFlag + 8, Strength::Acquire);
  r.load(6, 2, 0, 1, kGlobal, 0);
  r.end();
  EXPECT_EQ(r.pairs(), Pairs{});
}

TEST(RaceStrong, WhatFollowsAReleaseIsNotPartOfIt) {
  RaceRun r;
  r.launch(2, 32);
  r.strong(AccessKind::Store, 1, 0, 0, 1, kFlag, Strength::Release);
  r.store(2, 0, 0, 1, kGlobal, 0);
  r.strong(AccessKind::Load, 3, 1, 0, 1, kFlag, Strength::Acquire);
  r.load(4, 1, 0, 1, kGlobal, 0);
  r.end();
  EXPECT_EQ(r.pairs(), (Pairs{{2, 4}}));
}

}  // namespace
}  // namespace kiln::watch
