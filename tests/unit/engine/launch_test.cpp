// SPDX-License-Identifier: Apache-2.0
// Which launches are refused, and do blocks, warps and barriers run as CUDA promises?
#include <gmock/gmock.h>

#include <cstdlib>
#include <numeric>
#include <thread>

#include "harness.h"

namespace kiln::engine {
namespace {

using testing::HasSubstr;

constexpr const char* kStoreIndex = R"(
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.s32 %r4, %r1, %r2, %r3;
  mul.wide.s32 %rd2, %r4, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r4;
)";

TEST(Launch, EveryThreadOfEveryBlockRunsOnce) {
  Session session(kernel_text("u64 p", kStoreIndex));
  std::vector<uint32_t> out(100 * 96, ~0u), wanted(out.size());
  std::iota(wanted.begin(), wanted.end(), 0u);
  LaunchOutcome outcome = session.launch("k", {{100, 1, 1}, {96, 1, 1}}, session.allow(out, "out"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(out, wanted);
}

TEST(Launch, LastWarpMayBePartial) {
  Session session(kernel_text("u64 p", kStoreIndex));
  std::vector<uint32_t> out(3 * 45, ~0u), wanted(out.size());
  std::iota(wanted.begin(), wanted.end(), 0u);
  EXPECT_EQ(session.launch("k", {{3, 1, 1}, {45, 1, 1}}, session.allow(out, "out")).code, 0);
  EXPECT_EQ(out, wanted);
}

TEST(Launch, ThreadsOfABlockOfThreeDimensionsHaveTheirIndices) {
  Session session(kernel_text("u64 p", R"(
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
    mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y;
    mad.lo.u32 %r6, %r3, %r5, %r2;
    mad.lo.u32 %r6, %r6, %r4, %r1;
    mad.lo.u32 %r7, %r2, 100, %r1;
    mad.lo.u32 %r7, %r3, 10000, %r7;
    mad.wide.u32 %rd2, %r6, 4, %rd1;
    st.global.u32 [%rd2], %r7;
  )"));
  for (KilnDim3 block :
       {KilnDim3{5, 3, 4}, KilnDim3{32, 2, 2}, KilnDim3{64, 3, 1}, KilnDim3{16, 8, 1}}) {
    std::vector<uint32_t> out(block.x * block.y * block.z, ~0u);
    session.regions.clear();
    ASSERT_EQ(session.launch("k", {{1, 1, 1}, block}, session.allow(out, "out")).code, 0);
    uint32_t at = 0;
    for (uint32_t z = 0; z < block.z; ++z) {
      for (uint32_t y = 0; y < block.y; ++y) {
        for (uint32_t x = 0; x < block.x; ++x) EXPECT_EQ(out[at++], z * 10000 + y * 100 + x);
      }
    }
  }
}

TEST(Launch, WrongConfigurationsAreRefused) {
  Session session(kernel_text("u64 p", kStoreIndex));
  std::vector<uint32_t> out(1);
  auto* p = session.allow(out, "out");
  EXPECT_EQ(session.launch("k", {{0, 1, 1}, {32, 1, 1}}, p).code, kInvalidValue);
  EXPECT_EQ(session.launch("k", {{1, 65536, 1}, {32, 1, 1}}, p).code, kInvalidValue);
  EXPECT_EQ(session.launch("k", {{1, 1, 1}, {0, 1, 1}}, p).code, kInvalidValue);
  EXPECT_EQ(session.launch("k", {{1, 1, 1}, {1025, 1, 1}}, p).code, kInvalidValue);
  EXPECT_EQ(session.launch("k", {{1, 1, 1}, {32, 1, 65}}, p).code, kInvalidValue);
  LaunchOutcome large = session.launch("k", {{1, 1, 1}, {32, 1, 1}, 228 * 1024}, p);
  EXPECT_EQ(large.code, kInvalidValue);
  EXPECT_THAT(large.text, HasSubstr("bytes of shared memory"));
}

TEST(Launch, UnknownInstructionIsRefusedByNameAndPlace) {
  Session session(
      module_text(".file 1 \"user.cu\"\n.visible .entry k()\n{\n.reg .b32 %r<3>;\n.loc 1 17 "
                  "3\nfrob.u32 %r1, %r2;\nret;\n}\n"
                  ".visible .entry good()\n{\nret;\n}\n"));
  LaunchOutcome outcome = session.launch("k", {});
  EXPECT_EQ(outcome.code, kNotSupported);
  EXPECT_THAT(outcome.text, HasSubstr("unknown instruction 'frob.u32'"));
  EXPECT_THAT(outcome.text, HasSubstr("user.cu:17"));
  EXPECT_EQ(session.launch("good", {}).code, 0) << "one kernel must not spoil the others";
}

TEST(Launch, WhatNeedsBlackwellNamesATargetThatWorks) {
  Session session(
      ".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n"
      "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nret;\n}\n");
  LaunchOutcome outcome = session.launch("k", {});
  EXPECT_EQ(outcome.code, kNotSupported);
  EXPECT_THAT(outcome.text, HasSubstr("tcgen05"));
  EXPECT_THAT(outcome.text, HasSubstr("compile it for sm_90 (wgmma) or sm_80 (mma)"));
}

// Each lane counts n times, and keeps the last number that it got.
constexpr const char* kCount = R"(
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r5, [n];
  mov.u32 %r1, %tid.x; mov.u32 %r2, 0; and.b32 %r3, %r1, 3;
  mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3;
  L: atom.global.add.u32 %r4, [%rd4], 1;
  red.global.add.f32 [%rd1+16], 0f3F000000; red.global.max.s32 [%rd1+20], %r4;
  add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, %r5; @%p1 bra L;
  mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd2, %rd5; st.global.u32 [%rd6], %r4;
)";

// A grid that runs alone needs no locked instructions; one that another joins does.
TEST(Atomics, CountWhetherOneGridRunsOrSeveral) {
  for (const size_t grids : {size_t{1}, size_t{4}}) {
    constexpr uint32_t kLaunches = 40, kRounds = 500;
    std::vector<uint32_t> places(8, 0);
    std::vector<int> codes(grids, -1);
    std::vector<std::vector<uint32_t>> last(grids, std::vector<uint32_t>(64, 0));
    std::vector<std::thread> threads;
    for (size_t t = 0; t < grids; ++t) {
      threads.emplace_back([&, t] {
        Session session(kernel_text("u64 p, u64 q, u32 n", kCount));
        auto* p = session.allow(places, "places");
        auto* q = session.allow(last[t], "last");
        // The first one is long, and is joined by the others.
        const uint32_t launches = t == 0 ? 1 : kLaunches;
        for (uint32_t i = 0; i < launches; ++i)
          codes[t] = session
                         .launch("k", {{1, 1, 1}, {64, 1, 1}}, p, q,
                                 uint32_t{kRounds * kLaunches / launches})
                         .code;
      });
    }
    for (std::thread& each : threads) each.join();
    const auto count = static_cast<uint32_t>(grids * kLaunches * kRounds * 16);
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(places[i], count) << i;
    float sum;
    std::memcpy(&sum, &places[4], 4);
    EXPECT_EQ(sum, static_cast<float>(count) * 2);
    EXPECT_EQ(places[5], count - 1);
    for (size_t t = 0; t < grids; ++t) EXPECT_EQ(codes[t], 0);
    if (grids == 1) {
      EXPECT_EQ(last[0][63], count - 1);
    }
  }
}

TEST(Barrier, SharedMemoryIsSeenByTheWholeBlock) {
  Session session(kernel_text("u64 p", R"(
    .shared .align 4 .b8 tile[4096];
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x;
    mov.u32 %r3, tile;
    mad.lo.u32 %r4, %r1, 4, %r3;
    st.shared.u32 [%r4], %r1;
    bar.sync 0;
    sub.u32 %r5, %r2, %r1; sub.u32 %r5, %r5, 1;
    mad.lo.u32 %r6, %r5, 4, %r3;
    ld.shared.u32 %r7, [%r6];
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r7;
  )"));
  std::vector<uint32_t> out(1000, ~0u);
  ASSERT_EQ(session.launch("k", {{1, 1, 1}, {1000, 1, 1}}, session.allow(out, "out")).code, 0);
  for (uint32_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], 999 - i);
}

TEST(Barrier, OneThatNotAllReachIsReportedAndNoHang) {
  Session session(kernel_text("u64 p", R"(
    mov.u32 %r1, %tid.x;
    setp.lt.u32 %p1, %r1, 32;
    @%p1 bra A;
    bar.sync 1, 64;
    bra B;
    A: bar.sync 2, 64;
    B:
  )"));
  LaunchOutcome outcome = session.launch("k", {{1, 1, 1}, {64, 1, 1}}, uint64_t{0});
  EXPECT_EQ(outcome.code, kLaunchFailure);
  EXPECT_THAT(outcome.text, HasSubstr("Barrier deadlock"));
  EXPECT_THAT(outcome.text, HasSubstr("32 threads wait at barrier 1"));
  EXPECT_THAT(outcome.text, HasSubstr("32 threads wait at barrier 2"));
}

TEST(Barrier, ThreadsThatHaveEndedAreNotWaitedFor) {
  Session session(kernel_text("u64 p", R"(
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 40;
    @%p1 bra END;
    bar.sync 0;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r1;
    END:
  )"));
  std::vector<uint32_t> out(40, ~0u);
  EXPECT_EQ(session.launch("k", {{1, 1, 1}, {128, 1, 1}}, session.allow(out, "out")).code, 0);
  EXPECT_EQ(out[39], 39u);
}

// A lane that spins until another lane of its own warp has written must not keep that lane from
// running.
TEST(Progress, LanesOfOneWarpMayWaitForEachOther) {
  Session session(kernel_text("u64 p", R"(
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p1, %r1, 31;
    @%p1 bra WRITE;
    SPIN:
    ld.volatile.global.u32 %r2, [%rd1];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra SPIN;
    bra END;
    WRITE:
    st.volatile.global.u32 [%rd1], 1;
    END:
  )"));
  std::vector<uint32_t> flag(1, 0);
  EXPECT_EQ(session.launch("k", {{1, 1, 1}, {32, 1, 1}}, session.allow(flag, "flag")).code, 0);
}

// Block 0 waits for the last block, as a look-back scan does in the other direction.
TEST(Progress, BlocksMayWaitForLaterBlocks) {
  Session session(kernel_text("u64 p", R"(
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %ctaid.x; mov.u32 %r3, %nctaid.x; sub.u32 %r3, %r3, 1;
    setp.eq.u32 %p1, %r1, %r3;
    @%p1 bra WRITE;
    SPIN:
    ld.acquire.gpu.global.u32 %r2, [%rd1];
    setp.eq.u32 %p2, %r2, 0;
    @%p2 bra SPIN;
    bra END;
    WRITE:
    st.release.gpu.global.u32 [%rd1], 1;
    END:
  )"));
  std::vector<uint32_t> flag(1, 0);
  EXPECT_EQ(session.launch("k", {{20, 1, 1}, {64, 1, 1}}, session.allow(flag, "flag")).code, 0);
}

TEST(Progress, AnEndlessLoopMeetsTheStepLimit) {
  setenv("KILN_ENGINE_STEP_LIMIT", "100000", 1);
  Session session(kernel_text("u64 p", "LOOP: add.u32 %r1, %r1, 1; bra LOOP;"));
  LaunchOutcome outcome = session.launch("k", {}, uint64_t{0});
  unsetenv("KILN_ENGINE_STEP_LIMIT");
  EXPECT_EQ(outcome.code, kLaunchTimeout);
  EXPECT_THAT(outcome.text, HasSubstr("KILN_ENGINE_STEP_LIMIT"));
}

TEST(Calls, EndlessRecursionIsAStackOverflow) {
  Session session(module_text(R"(
    .func f() { call f, (); ret; }
    .visible .entry k() { call f, (); ret; }
  )"));
  LaunchOutcome outcome = session.launch("k", {});
  EXPECT_EQ(outcome.code, kLaunchFailure);
  EXPECT_THAT(outcome.text, HasSubstr("Stack overflow"));
}

// Its place is the same for all callers, and beside the kernel's own.
TEST(Calls, AFunctionMayHaveASharedVariable) {
  Session session(module_text(R"(
    .func (.param .b32 r) count(.param .b32 first) {
      .reg .b32 %v, %f; .reg .b64 %t, %a; .reg .pred %p;
      .shared .align 4 .b8 slot[128];
      mov.u32 %v, %tid.x;
      cvt.u64.u32 %t, %v;
      mov.u64 %a, slot;
      mad.lo.u64 %a, %t, 4, %a;
      ld.param.u32 %f, [first];
      setp.ne.u32 %p, %f, 0;
      @%p st.shared.u32 [%a], %v;
      ld.shared.u32 %v, [%a];
      add.u32 %v, %v, 1;
      st.shared.u32 [%a], %v;
      st.param.b32 [r], %v;
      ret;
    }
    .visible .entry k(.param .u64 p) {
      .reg .b32 %v, %w; .reg .b64 %o, %t, %a;
      .shared .align 4 .b8 mine[128];
      .param .b32 x; .param .b32 r;
      ld.param.u64 %o, [p];
      mov.u32 %v, %tid.x;
      cvt.u64.u32 %t, %v;
      mov.u64 %a, mine;
      mad.lo.u64 %a, %t, 4, %a;
      mad.lo.u64 %o, %t, 8, %o;
      st.shared.u32 [%a], 7;
      st.param.b32 [x], 1;
      call.uni (r), count, (x);
      st.param.b32 [x], 0;
      call.uni (r), count, (x);
      ld.param.b32 %w, [r];
      ld.shared.u32 %v, [%a];
      st.global.u32 [%o], %v;
      st.global.u32 [%o+4], %w;
      ret;
    }
  )"));
  std::vector<uint32_t> out(64, 0);
  LaunchOutcome outcome = session.launch("k", {{1, 1, 1}, {32, 1, 1}}, session.allow(out, "out"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(out[2 * lane], 7u);
    EXPECT_EQ(out[2 * lane + 1], lane + 2);
  }
}

TEST(Atomics, AllBlocksAddToOneWord) {
  Session session(kernel_text("u64 p", R"(
    ld.param.u64 %rd1, [p];
    atom.global.add.u32 %r1, [%rd1], 1;
    red.global.add.f32 [%rd1+4], 0f3F800000;
    atom.global.cas.b32 %r2, [%rd1+8], 0, 7;
    mov.u32 %r3, %tid.x;
    red.global.max.u32 [%rd1+12], %r3;
  )"));
  std::vector<uint32_t> out(4, 0);
  ASSERT_EQ(session.launch("k", {{64, 1, 1}, {256, 1, 1}}, session.allow(out, "out")).code, 0);
  EXPECT_EQ(out[0], 64u * 256);
  float sum;
  std::memcpy(&sum, &out[1], 4);
  EXPECT_EQ(sum, 64.0f * 256);
  EXPECT_EQ(out[2], 7u);
  EXPECT_EQ(out[3], 255u);
}

TEST(Variables, InitialValuesAndAddresses) {
  Session session(module_text(R"(
    .global .align 4 .u32 table[4] = {10, 20, 30, 40};
    .const .align 8 .f64 half = 0.5;
    .global .align 8 .u64 pointer = table;
    .visible .entry k(.param .u64 p) {
      .reg .b64 %rd<5>; .reg .b32 %r<3>; .reg .f64 %fd<2>;
      ld.param.u64 %rd1, [p];
      ld.global.u64 %rd2, [pointer];
      ld.u32 %r1, [%rd2+8];
      st.global.u32 [%rd1], %r1;
      ld.const.f64 %fd1, [half];
      st.global.f64 [%rd1+8], %fd1;
      ret;
    }
  )"));
  std::vector<double> out(2, 0);
  LaunchOutcome outcome = session.launch("k", {{1, 1, 1}, {1, 1, 1}}, session.allow(out, "out"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  uint32_t first;
  std::memcpy(&first, &out[0], 4);
  EXPECT_EQ(first, 30u);
  EXPECT_EQ(out[1], 0.5);
}

}  // namespace
}  // namespace kiln::engine
