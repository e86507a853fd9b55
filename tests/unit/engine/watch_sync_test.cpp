// SPDX-License-Identifier: Apache-2.0
// Does a sink see who meets whom: named barriers, members of a warp, clusters, mbarriers, fences?
#include <bit>
#include <map>

#include "recorder.h"

namespace kiln::engine {
namespace {

TEST(WatchSync, ANamedBarrierTellsArrivalsFromWaits) {
  Watched w(kernel_text("u64 p", R"(
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra CONSUME;
    bar.arrive 2, 64;
    bra END;
    CONSUME:
    barrier.sync 2, 64;
    END:
    barrier.red.popc.aligned.u32 %r2, 0, %p1;
  )"),
            kSyncEvents);
  ASSERT_EQ(w.session.launch("k", {{1, 1, 1}, {64, 1, 1}}, nullptr).code, 0);
  std::vector<SyncEvent> named, all;
  for (const SyncEvent& each : w.recorder.syncs) (each.id == 2 ? named : all).push_back(each);
  ASSERT_EQ(named.size(), 3u);
  EXPECT_FALSE(named[0].waits);
  EXPECT_TRUE(named[0].aligned) << "bar is aligned";
  EXPECT_EQ(named[0].expected, 64u);
  EXPECT_TRUE(named[1].waits);
  EXPECT_FALSE(named[1].aligned);
  EXPECT_TRUE(named[2].completed);
  EXPECT_EQ(named[2].by.program, nullptr);
  ASSERT_EQ(all.size(), 3u) << "two warps vote, and one barrier completes";
  EXPECT_TRUE(all[0].aligned);
  EXPECT_EQ(all[0].expected, 0u);
}

// Lanes that come later park the first ones at the shuffle.
TEST(WatchSync, AShuffleSaysItsMembersAndSourcesOnce) {
  Watched w(kernel_text("u64 p", R"(
    mov.u32 %r1, %laneid;
    setp.lt.u32 %p1, %r1, 16;
    @%p1 bra L;
    add.u32 %r2, %r1, 1;
    bra M;
    L:
    add.u32 %r2, %r1, 2;
    M:
    shfl.sync.down.b32 %r3, %r2, 1, 31, 0xffffffff;
  )"),
            kSyncEvents);
  ASSERT_EQ(w.session.launch("k", {}, nullptr).code, 0);
  ASSERT_EQ(w.recorder.syncs.size(), 1u);
  const SyncEvent& shuffle = w.recorder.syncs[0];
  EXPECT_EQ(shuffle.kind, SyncKind::Exchange);
  EXPECT_EQ(shuffle.by.mask, kFullMask);
  EXPECT_EQ(shuffle.expected, kFullMask);
  ASSERT_EQ(w.recorder.sources[0].size(), kWarpSize);
  for (int i = 0; i < 31; ++i) EXPECT_EQ(w.recorder.sources[0][static_cast<size_t>(i)], i + 1);
  EXPECT_EQ(w.recorder.sources[0][31], -1);
}

TEST(WatchSync, GroupsWithMembersOfTheirOwnArriveApart) {
  Watched w(kernel_text("u64 p", R"(
    mov.u32 %r1, %laneid;
    setp.lt.u32 %p1, %r1, 16;
    selp.b32 %r2, 0xffff, 0xffff0000, %p1;
    vote.sync.ballot.b32 %r3, %p1, %r2;
    bar.warp.sync %r2;
    match.any.sync.b32 %r4, %r1, 0xffffffff;
  )"),
            kSyncEvents);
  ASSERT_EQ(w.session.launch("k", {}, nullptr).code, 0);
  const auto& s = w.recorder.syncs;
  ASSERT_EQ(s.size(), 5u);
  EXPECT_EQ(s[0].kind, SyncKind::Exchange);
  EXPECT_EQ(s[0].by.mask, 0xffffu);
  EXPECT_EQ(s[0].expected, 0xffffu);
  EXPECT_EQ(s[1].expected, 0xffff0000u);
  EXPECT_EQ(s[2].kind, SyncKind::Warp);
  EXPECT_EQ(s[3].by.mask, 0xffff0000u);
  EXPECT_EQ(s[4].kind, SyncKind::Exchange);
  EXPECT_EQ(s[4].by.mask, kFullMask);
}

// A caller that its own mask does not name.
TEST(WatchSync, AMaskWithoutItsCallerIsSeen) {
  Watched w(kernel_text("u64 p", "vote.sync.any.pred %p2, %p1, 0x0000ffff;"), kSyncEvents);
  ASSERT_EQ(w.session.launch("k", {}, nullptr).code, 0);
  ASSERT_EQ(w.recorder.syncs.size(), 1u);
  EXPECT_EQ(w.recorder.syncs[0].by.mask & ~w.recorder.syncs[0].expected, 0xffff0000u);
}

TEST(WatchSync, AClustersBarrierHasPhases) {
  Watched w(kernel_text("u64 p", R"(
    barrier.cluster.arrive.relaxed.aligned;
    barrier.cluster.wait.aligned;
    barrier.cluster.arrive;
    barrier.cluster.wait;
  )"),
            kSyncEvents);
  const LaunchOutcome outcome =
      w.session.launch("k", {{2, 1, 1}, {64, 1, 1}, 0, 0, {2, 1, 1}}, nullptr);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  // By phase: arrivals and passes of each warp of both blocks.
  std::map<uint32_t, std::map<std::pair<uint64_t, uint32_t>, std::pair<int, int>>> seen;
  for (const SyncEvent& each : w.recorder.syncs) {
    ASSERT_EQ(each.kind, SyncKind::Cluster);
    auto& [arrived, passed] = seen[each.phase][{each.by.block, each.by.warp}];
    ++(each.completed ? passed : arrived);
    EXPECT_EQ(each.waits, each.completed);
    if (each.completed) {
      EXPECT_EQ(each.strength, Strength::Acquire);
    } else {
      EXPECT_EQ(each.strength, each.phase == 0 ? Strength::Relaxed : Strength::Release);
    }
    EXPECT_EQ(each.aligned, each.phase == 0);
  }
  ASSERT_EQ(seen.size(), 2u);
  for (const auto& [phase, warps] : seen) {
    ASSERT_EQ(warps.size(), 4u);
    for (const auto& [who, counts] : warps) EXPECT_EQ(counts, std::make_pair(1, 1)) << phase;
  }
}

// Warp 1 arrives and waits; it runs on from the barrier first. Thread 0 brings the rest.
constexpr const char* kMbarrier = R"(
    .shared .align 8 .b8 object[8];
    mov.u32 %r1, %tid.x;
    mov.u32 %r9, object;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra MADE;
    mbarrier.init.shared.b64 [%r9], 33;
    MADE:
    bar.sync 0;
    setp.lt.u32 %p2, %r1, 32;
    @%p2 bra FIRST;
    mbarrier.arrive.shared.b64 %rd1, [%r9];
    WAIT:
    mbarrier.test_wait.shared.b64 %p3, [%r9], %rd1;
    @!%p3 bra WAIT;
    bra END;
    FIRST:
    @%p1 bra END;
    mbarrier.arrive.expect_tx.release.cluster.shared.b64 _, [%r9], 64;
    mbarrier.complete_tx.relaxed.cta.shared.b64 [%r9], 64;
    END:
    bar.sync 0;
    @%p1 bra LAST;
    mbarrier.inval.shared.b64 [%r9];
    LAST:
  )";

TEST(WatchSync, AnMbarrierIsFollowedThroughItsPhase) {
  Watched w(kernel_text("u64 p", kMbarrier), kMbarrierEvents);
  const LaunchOutcome outcome = w.session.launch("k", {{1, 1, 1}, {64, 1, 1}}, nullptr);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  std::map<MbarrierStep, std::vector<MbarrierEvent>> by_step;
  for (const MbarrierEvent& each : w.recorder.mbarriers) {
    EXPECT_EQ(each.address >> 56, kSharedTag);
    EXPECT_EQ(each.address, w.recorder.mbarriers[0].address);
    by_step[each.step].push_back(each);
  }
  ASSERT_EQ(by_step[MbarrierStep::Init].size(), 1u);
  EXPECT_EQ(by_step[MbarrierStep::Init][0].count, 33u);
  const auto& arrivals = by_step[MbarrierStep::Arrive];
  ASSERT_EQ(arrivals.size(), 33u) << "each lane once";
  for (const MbarrierEvent& each : arrivals) {
    EXPECT_EQ(each.count, 1u);
    EXPECT_EQ(each.order.strength, Strength::Release);
    EXPECT_FALSE(each.completed) << "the bytes are missing";
  }
  EXPECT_EQ(arrivals[0].order.scope, Scope::Block);
  EXPECT_EQ(arrivals[32].order.scope, Scope::Cluster);
  EXPECT_EQ(arrivals[32].bytes, 64);
  const auto& complete = by_step[MbarrierStep::Complete];
  ASSERT_EQ(complete.size(), 1u);
  EXPECT_EQ(complete[0].bytes, 64);
  EXPECT_TRUE(complete[0].completed);
  EXPECT_EQ(complete[0].parity, 0u);
  uint32_t passed = 0;
  for (const MbarrierEvent& each : by_step[MbarrierStep::Test]) {
    EXPECT_EQ(each.order.strength, Strength::Acquire);
    if (!each.passed) continue;
    EXPECT_EQ(passed & each.by.mask, 0u) << "a lane passes once";
    passed |= each.by.mask;
  }
  EXPECT_EQ(passed, kFullMask);
  EXPECT_FALSE(by_step[MbarrierStep::Test][0].passed) << "the first one asks too early";
  EXPECT_EQ(by_step[MbarrierStep::Invalidate].size(), 1u);
}

TEST(WatchSync, ABulkCopyBringsBytesToItsMbarrier) {
  Watched w(kernel_text("u64 p", R"(
    .shared .align 128 .b8 tile[128];
    .shared .align 8 .b8 object[8];
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, tile;
    mov.u32 %r2, object;
    mbarrier.init.shared.b64 [%r2], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 64, [%r2];
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 32;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group.read 0;
    fence.proxy.async;
  )"));
  std::vector<uint32_t> memory(32, 3);
  auto* aligned = reinterpret_cast<uint32_t*>(
      (reinterpret_cast<uintptr_t>(w.session.allow(memory, "m")) + 15) / 16 * 16);
  const LaunchOutcome outcome = w.session.launch("k", {{1, 1, 1}, {1, 1, 1}}, aligned);
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  ASSERT_EQ(w.recorder.mbarriers.size(), 3u);
  EXPECT_EQ(w.recorder.mbarriers[2].step, MbarrierStep::Complete);
  EXPECT_TRUE(w.recorder.mbarriers[2].async);
  EXPECT_TRUE(w.recorder.mbarriers[2].completed);
  EXPECT_EQ(w.recorder.mbarriers[2].bytes, 64);
  const auto& a = w.recorder.asyncs;
  ASSERT_EQ(a.size(), 4u) << "two copies, a commit, a wait";
  for (const AsyncEvent& each : a) EXPECT_EQ(each.kind, AsyncKind::Bulk);
  EXPECT_EQ(a[2].step, AsyncStep::Commit);
  EXPECT_EQ(a[3].step, AsyncStep::Wait);
  EXPECT_TRUE(a[3].reads_only);
  EXPECT_EQ(a[3].pending, 0);
  ASSERT_EQ(w.recorder.fences.size(), 1u);
  EXPECT_EQ(w.recorder.fences[0].proxy, Proxy::Async);
  EXPECT_EQ(w.recorder.fences[0].order, Strength::Weak);
}

// Its arrival comes when the copies are complete; the thread does not wait for them.
TEST(WatchSync, AnArrivalOfCopiesIsNoWait) {
  Watched w(kernel_text("u64 p", R"(
    .shared .align 16 .b8 tile[16];
    .shared .align 8 .b8 object[8];
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, tile;
    mov.u32 %r2, object;
    mbarrier.init.shared.b64 [%r2], 1;
    cp.async.ca.shared.global [%r1], [%rd1], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r2];
  )"));
  std::vector<uint32_t> memory(1, 3);
  ASSERT_EQ(w.session.launch("k", {{1, 1, 1}, {1, 1, 1}}, w.session.allow(memory, "m")).code, 0);
  ASSERT_EQ(w.recorder.asyncs.size(), 1u);
  EXPECT_EQ(w.recorder.asyncs[0].step, AsyncStep::Issue);
  ASSERT_EQ(w.recorder.mbarriers.size(), 2u);
  EXPECT_EQ(w.recorder.mbarriers[1].step, MbarrierStep::Arrive);
  EXPECT_TRUE(w.recorder.mbarriers[1].async);
}

// Only the groups are wanted: the sink gets nothing else.
TEST(WatchSync, GroupsArriveWithoutOtherEvents) {
  Watched w(kernel_text("u64 p", "cp.async.bulk.commit_group;\nbar.sync 0;"), kAsyncEvents);
  ASSERT_EQ(w.session.launch("k", {}, nullptr).code, 0);
  EXPECT_EQ(w.recorder.asyncs.size(), 1u);
  EXPECT_TRUE(w.recorder.syncs.empty());
  EXPECT_TRUE(w.recorder.exits.empty());
}

TEST(WatchSync, FencesSayOrderAndScope) {
  Watched w(kernel_text("u64 p",
                        "fence.sc.sys;\nmembar.cta;\nfence.acq_rel.cluster;\n"
                        "fence.mbarrier_init.release.cluster;"),
            kFenceEvents);
  ASSERT_EQ(w.session.launch("k", {{1, 1, 1}, {64, 1, 1}}, nullptr).code, 0);
  ASSERT_EQ(w.recorder.fences.size(), 8u) << "each warp once";
  const auto& f = w.recorder.fences;
  EXPECT_EQ(f[0].order, Strength::Sequential);
  EXPECT_EQ(f[0].scope, Scope::System);
  EXPECT_EQ(f[1].order, Strength::Sequential) << "membar is fence.sc";
  EXPECT_EQ(f[1].scope, Scope::Block);
  EXPECT_EQ(f[2].order, Strength::AcquireRelease);
  EXPECT_EQ(f[2].scope, Scope::Cluster);
  EXPECT_EQ(f[3].order, Strength::Release);
}

TEST(WatchSync, AStrongVectorGivesEachOfItsValues) {
  Watched w(kernel_text("u64 p",
                        "ld.param.u64 %rd1, [p];\nld.volatile.global.v2.u32 {%r1, %r2}, [%rd1];"),
            kValueEvents);
  std::vector<uint32_t> memory{7, 9};
  ASSERT_EQ(w.session.launch("k", {{1, 1, 1}, {1, 1, 1}}, w.session.allow(memory, "m")).code, 0);
  EXPECT_EQ(w.recorder.values, (std::vector<uint64_t>{7, 9}));
}

}  // namespace
}  // namespace kiln::engine
