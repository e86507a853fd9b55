// SPDX-License-Identifier: Apache-2.0
// Do lanes, warps and blocks that wait for each other all end, as CUDA promises?
#include <gmock/gmock.h>

#include "harness.h"

namespace kiln::engine {
namespace {

using ::testing::HasSubstr;

// Every thread takes the lock, adds to a plain counter, and gives it back. Lanes of a warp that
// lose spin at a lower place of the program than the one that holds the lock.
const char* const kSpinLock = R"(
    ld.param.u64 %rd1, [p];
    TAKE:
    atom.global.cas.b32 %r1, [%rd1], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra TAKE;
    membar.gl;
    ld.volatile.global.u32 %r2, [%rd1+4];
    add.u32 %r2, %r2, 1;
    st.volatile.global.u32 [%rd1+4], %r2;
    membar.gl;
    atom.global.exch.b32 %r3, [%rd1], 0;
)";

TEST(Progress, ASpinLockPassesThroughTheLanesOfAWarp) {
  Session session(kernel_text("u64 p", kSpinLock));
  std::vector<uint32_t> state(2, 0);
  LaunchOutcome outcome =
      session.launch("k", {{1, 1, 1}, {32, 1, 1}}, session.allow(state, "state"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(state[1], 32u);
}

TEST(Progress, ASpinLockPassesThroughAllBlocks) {
  Session session(kernel_text("u64 p", kSpinLock));
  std::vector<uint32_t> state(2, 0);
  LaunchOutcome outcome =
      session.launch("k", {{12, 1, 1}, {96, 1, 1}}, session.allow(state, "state"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(state[1], 12u * 96);
}

// Each round ends at a barrier, so that no warp ever uses up its turn.
TEST(Progress, AnEndlessLoopWithABarrierMeetsTheStepLimit) {
  Session session(kernel_text("u64 p", "AGAIN:\nbar.sync 0;\nbra AGAIN;\n"));
  std::vector<uint32_t> state(1, 0);
  setenv("KILN_ENGINE_STEP_LIMIT", "1000", 1);
  const LaunchOutcome outcome =
      session.launch("k", {{1, 1, 1}, {64, 1, 1}}, session.allow(state, "state"));
  unsetenv("KILN_ENGINE_STEP_LIMIT");
  EXPECT_EQ(outcome.code, kLaunchTimeout) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("Step limit reached"));
}

// Whole warps, a warp whose lanes come to the barrier at two places, a reduction at the same
// barrier, and one warp that ends early: each round adds what all threads see of the last one.
TEST(Progress, WholeAndPartedWarpsMeetAtOneBarrier) {
  const char* const kRounds = R"(
    .shared .align 4 .b8 all[512];
    ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, 0; mov.u32 %r9, all;
    shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %r9; st.shared.u32 [%r3], %r1;
    xor.b32 %r4, %r3, 128; setp.gt.u32 %p1, %r1, 95; setp.eq.u32 %p2, %r1, 70;
    bar.sync 0;
    @%p1 bra END;
    AGAIN:
    bar.red.popc.u32 %r7, 0, %p2;
    @%p2 bra ALONE;
    bar.sync 0;
    bra MET;
    ALONE:
    bar.sync 0;
    MET:
    ld.shared.u32 %r5, [%r3]; setp.lt.u32 %p3, %r1, 64;
    @%p3 ld.shared.u32 %r5, [%r4];
    bar.sync 0;
    add.u32 %r5, %r5, %r7; st.shared.u32 [%r3], %r5;
    add.u32 %r2, %r2, 1; setp.lt.u32 %p4, %r2, 200; @%p4 bra AGAIN;
    END:
    ld.shared.u32 %r5, [%r3]; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r5;
)";
  for (const char* compile : {"0", "always"}) {
    setenv("KILN_ENGINE_COMPILE", compile, 1);
    Session session(kernel_text("u64 p", kRounds));
    std::vector<uint32_t> out(128, 0);
    const LaunchOutcome outcome =
        session.launch("k", {{2, 1, 1}, {128, 1, 1}}, session.allow(out, "out"));
    unsetenv("KILN_ENGINE_COMPILE");
    ASSERT_EQ(outcome.text, "");
    for (uint32_t i = 0; i < 128; ++i) ASSERT_EQ(out[i], i < 96 ? i + 200 : i) << i;
  }
}

TEST(Progress, WholeWarpsThatWaitAtTwoBarriersAreReported) {
  Session session(
      kernel_text("u64 p",
                  "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32;\nbar.sync 0;\n@%p1 bar.sync 1;\n"
                  "@!%p1 bar.sync 0;\n"));
  std::vector<uint32_t> state(1, 0);
  const LaunchOutcome outcome =
      session.launch("k", {{1, 1, 1}, {96, 1, 1}}, session.allow(state, "state"));
  EXPECT_THAT(outcome.text, HasSubstr("Barrier deadlock"));
  EXPECT_THAT(outcome.text, HasSubstr("32 threads wait at barrier 1"));
  EXPECT_THAT(outcome.text, HasSubstr("64 threads wait at barrier 0"));
}

// Warp 0 consumes what warp 1 produces, one item at a time, through a flag in shared memory; the
// consumer runs first.
TEST(Progress, AProducerAndAConsumerWarpTakeTurns) {
  Session session(kernel_text("u64 p", R"(
    .shared .align 4 .b8 mail[8];
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mov.u32 %r9, mail;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra ZEROED;
    st.shared.u32 [%r9], 0;
    ZEROED:
    bar.sync 0;
    mov.u32 %r5, 0;
    mov.u32 %r6, 0;
    setp.ge.u32 %p2, %r1, 32;
    @%p2 bra PRODUCE;
    CONSUME:
    ld.volatile.shared.u32 %r2, [%r9];
    setp.eq.u32 %p3, %r2, 0;
    @%p3 bra CONSUME;
    ld.volatile.shared.u32 %r3, [%r9+4];
    add.u32 %r6, %r6, %r3;
    bar.warp.sync 0xffffffff;
    st.volatile.shared.u32 [%r9], 0;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p4, %r5, 50;
    @%p4 bra CONSUME;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r6;
    bra END;
    PRODUCE:
    ld.volatile.shared.u32 %r2, [%r9];
    setp.ne.u32 %p3, %r2, 0;
    @%p3 bra PRODUCE;
    add.u32 %r5, %r5, 1;
    st.volatile.shared.u32 [%r9+4], %r5;
    bar.warp.sync 0xffffffff;
    st.volatile.shared.u32 [%r9], 1;
    setp.lt.u32 %p4, %r5, 50;
    @%p4 bra PRODUCE;
    END:
  )"));
  std::vector<uint32_t> sums(32, 0);
  LaunchOutcome outcome = session.launch("k", {{1, 1, 1}, {64, 1, 1}}, session.allow(sums, "sums"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  for (uint32_t sum : sums) EXPECT_EQ(sum, 50u * 51 / 2);
}

// Decoupled look-back: each block spins on the flag of the one before it, and the last block's sum
// is everything.
TEST(Progress, ALookBackScanEnds) {
  Session session(kernel_text("u64 p", R"(
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %tid.x;
    setp.ne.u32 %p1, %r2, 0;
    @%p1 bra END;
    mul.wide.u32 %rd2, %r1, 8;
    add.u64 %rd3, %rd1, %rd2;
    mov.u32 %r5, 0;
    setp.eq.u32 %p2, %r1, 0;
    @%p2 bra PUBLISH;
    SPIN:
    ld.acquire.gpu.global.u32 %r3, [%rd3+-8];
    setp.eq.u32 %p3, %r3, 0;
    @%p3 bra SPIN;
    ld.global.u32 %r5, [%rd3+-4];
    PUBLISH:
    add.u32 %r5, %r5, %r1;
    st.global.u32 [%rd3+4], %r5;
    st.release.gpu.global.u32 [%rd3], 1;
    END:
  )"));
  std::vector<uint32_t> cells(2 * 300, 0);
  LaunchOutcome outcome =
      session.launch("k", {{300, 1, 1}, {128, 1, 1}}, session.allow(cells, "cells"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(cells[2 * 299 + 1], 299u * 300 / 2);
}

// A grid-wide barrier as cooperative groups make it: a count in global memory, and a spin until all
// blocks are there.
TEST(Progress, AGridOfResidentBlocksMeets) {
  Session session(kernel_text("u64 p", R"(
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %nctaid.x;
    mov.u32 %r7, 0;
    AGAIN:
    add.u32 %r7, %r7, %r2;
    bar.sync 0;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra MET;
    membar.gl;
    atom.global.add.u32 %r3, [%rd1], 1;
    SPIN:
    ld.acquire.gpu.global.u32 %r4, [%rd1];
    setp.lt.u32 %p2, %r4, %r7;
    @%p2 bra SPIN;
    MET:
    bar.sync 0;
    mad.lo.u32 %r5, %r2, 5, 0;
    setp.lt.u32 %p3, %r7, %r5;
    @%p3 bra AGAIN;
  )"));
  std::vector<uint32_t> count(1, 0);
  Shape3 shape{{100, 1, 1}, {64, 1, 1}};
  shape.flags = KILN_LAUNCH_COOPERATIVE;
  LaunchOutcome outcome = session.launch("k", shape, session.allow(count, "count"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(count[0], 500u);
}

TEST(Deadlock, NamesKernelBlockThreadsAndLines) {
  Session session(module_text(R"(.file 1 "user.cu"
    .visible .entry half_way() {
      .reg .pred %p<2>; .reg .b32 %r<3>;
      .loc 1 10 3
      mov.u32 %r1, %tid.x;
      setp.lt.u32 %p1, %r1, 40;
      @%p1 bra A;
      .loc 1 12 5
      bar.sync 1, 96;
      ret;
      A:
      .loc 1 14 5
      bar.sync 2, 96;
      ret;
    })"));
  LaunchOutcome outcome = session.launch("half_way", {{3, 1, 1}, {64, 1, 1}});
  EXPECT_EQ(outcome.code, kLaunchFailure);
  EXPECT_THAT(outcome.text, HasSubstr("half_way"));
  EXPECT_THAT(outcome.text, HasSubstr("in block ("));
  EXPECT_THAT(outcome.text, HasSubstr("user.cu:12"));
  EXPECT_THAT(outcome.text, HasSubstr("user.cu:14"));
  EXPECT_THAT(outcome.text, HasSubstr("thread (40,0,0)"));
  EXPECT_THAT(outcome.text, HasSubstr("40 threads wait at barrier 2"));
}

TEST(Deadlock, AShuffleThatNotAllReachIsOne) {
  Session session(kernel_text("u64 p", R"(
    mov.u32 %r1, %laneid;
    setp.lt.u32 %p1, %r1, 7;
    @%p1 bra A;
    shfl.sync.idx.b32 %r2, %r1, 0, 31, 0xffffffff;
    bra END;
    A: bar.sync 3, 64;
    END:
  )"));
  LaunchOutcome outcome = session.launch("k", {}, uint64_t{0});
  EXPECT_EQ(outcome.code, kLaunchFailure);
  EXPECT_THAT(outcome.text, HasSubstr("deadlock"));
}

// Nobody completes the phase: 31 lanes ask for it in a loop, lane 0 has gone to a barrier.
TEST(Deadlock, AnMbarrierWhosePhaseDoesNotEnd) {
  Session session(module_text(R"(.file 1 "user.cu"
    .visible .entry waits() {
      .reg .pred %p<3>; .reg .b32 %r<3>;
      .shared .align 8 .b64 bar;
      mov.u32 %r1, %tid.x; mov.u32 %r2, bar;
      setp.eq.u32 %p1, %r1, 0;
      @%p1 mbarrier.init.shared.b64 [%r2], 2;
      bar.sync 0;
      @!%p1 bra A;
      .loc 1 20 5
      bar.sync 3;
      A:
      .loc 1 22 5
      mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
      @!%p2 bra A;
      ret;
    })"));
  LaunchOutcome outcome = session.launch("waits", {{2, 1, 1}, {32, 1, 1}});
  EXPECT_EQ(outcome.code, kLaunchFailure);
  EXPECT_THAT(outcome.text,
              HasSubstr("31 threads wait at an mbarrier whose phase does not end in"));
  EXPECT_THAT(outcome.text, HasSubstr("user.cu:22"));
  EXPECT_THAT(outcome.text, HasSubstr("1 threads wait at barrier 3"));
  EXPECT_THAT(outcome.text, HasSubstr("user.cu:20"));
}

TEST(Deadlock, ABarrierOfTheClusterThatNotAllReach) {
  Session session(module_text(R"(.file 1 "user.cu"
    .visible .entry waits() {
      .reg .pred %p<3>; .reg .b32 %r<3>;
      .shared .align 8 .b64 bar;
      mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, bar;
      setp.eq.u32 %p1, %r1, 0;
      @%p1 bra A;
      mbarrier.init.shared.b64 [%r2], 1;
      B:
      .loc 1 30 5
      mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
      @!%p2 bra B;
      A:
      barrier.cluster.arrive;
      .loc 1 32 5
      barrier.cluster.wait;
      ret;
    })"));
  Shape3 two{{2, 1, 1}, {32, 1, 1}};
  two.cluster = {2, 1, 1};
  LaunchOutcome outcome = session.launch("waits", two);
  EXPECT_EQ(outcome.code, kLaunchFailure);
  EXPECT_THAT(outcome.text, HasSubstr("no thread of the cluster can continue"));
  EXPECT_THAT(outcome.text, HasSubstr("32 threads wait at the barrier of the cluster in"));
  EXPECT_THAT(outcome.text, HasSubstr("of block (0,0,0)"));
  EXPECT_THAT(outcome.text, HasSubstr("user.cu:32"));
  EXPECT_THAT(outcome.text, HasSubstr("of block (1,0,0)"));
  EXPECT_THAT(outcome.text, HasSubstr("user.cu:30"));
}

// As nvcc 13 writes cooperative_groups::this_grid().sync(); block 1 has left before.
TEST(Deadlock, ABarrierOfTheGridThatNotAllReach) {
  Session session(module_text(R"(.file 1 "user.cu"
    .visible .entry waits() {
      .reg .pred %p<6>; .reg .b32 %r<26>; .reg .b64 %rd<11>;
      mov.u32 %r1, %ctaid.x;
      setp.eq.s32 %p1, %r1, 1;
      @%p1 bra OUT;
      mov.u32 %r3, %envreg2; cvt.u64.u32 %rd4, %r3;
      mov.u32 %r4, %envreg1; cvt.u64.u32 %rd5, %r4;
      bfi.b64 %rd1, %rd5, %rd4, 32, 32;
      barrier.sync 0;
      mov.u32 %r6, %tid.x;
      setp.ne.s32 %p3, %r6, 0;
      @%p3 bra ALL;
      add.s64 %rd6, %rd1, 4;
      mov.u32 %r12, %nctaid.x;
      setp.eq.s32 %p4, %r1, 0;
      mov.u32 %r21, -2147483647;
      sub.s32 %r22, %r21, %r12;
      selp.b32 %r11, %r22, 1, %p4;
      .loc 1 40 3
      atom.add.release.gpu.u32 %r10, [%rd6], %r11;
      LOOP:
      ld.acquire.gpu.u32 %r23, [%rd6];
      xor.b32 %r24, %r23, %r10;
      setp.gt.s32 %p5, %r24, -1;
      @%p5 bra LOOP;
      .loc 1 41 3
      ALL:
      barrier.sync 0;
      OUT:
      ret;
    })"));
  Shape3 three{{3, 1, 1}, {64, 1, 1}};
  three.flags = KILN_LAUNCH_COOPERATIVE;
  LaunchOutcome outcome = session.launch("waits", three);
  EXPECT_EQ(outcome.code, kLaunchFailure);
  EXPECT_THAT(outcome.text, HasSubstr("1 threads wait at the barrier of the grid in"));
  EXPECT_THAT(outcome.text, HasSubstr("user.cu:40"));
  EXPECT_THAT(outcome.text, HasSubstr("63 threads wait at barrier 0"));
}

}  // namespace
}  // namespace kiln::engine
