// SPDX-License-Identifier: Apache-2.0
// Which lane does shfl read, and does it say so? Against the manual's own few lines, with operands
// that are one for all lanes and others that each lane has of its own; interpreted and compiled.
#include <fmt/format.h>

#include <cstdlib>

#include "harness.h"

namespace kiln::engine {
namespace {

struct Lane {
  uint32_t from;
  bool in_range;
};

// PTX ISA, shfl.sync.
Lane lane_read(const std::string& direction, uint32_t lane, uint32_t by, uint32_t clamp) {
  const int mask = static_cast<int>(clamp >> 8 & 31), most_bits = static_cast<int>(clamp & 31);
  const int here = static_cast<int>(lane), b = static_cast<int>(by & 31);
  const int most = (here & mask) | (most_bits & ~mask), least = here & mask;
  int j = here;
  bool in_range = false;
  if (direction == "up") {
    j = here - b;
    in_range = j >= most;
  } else if (direction == "down") {
    j = here + b;
    in_range = j <= most;
  } else if (direction == "bfly") {
    j = here ^ b;
    in_range = j <= most;
  } else {
    j = least | (b & ~mask);
    in_range = j <= most;
  }
  return {in_range ? static_cast<uint32_t>(j) : lane, in_range};
}

constexpr uint32_t kClamps[] = {31, 0, 7, 0x1800, 0x181f, 0x1e01, 0x1f00, 0x1f1f, 0x101f};
constexpr uint32_t kDistances[] = {0, 1, 2, 3, 4, 5, 8, 11, 16, 24, 31, 33};

// What each lane gets in `own`: the operands of all launches, or those of each lane by itself.
void expect_lanes(const std::string& direction, bool is_uniform, uint32_t spread) {
  SCOPED_TRACE(fmt::format("{} {} {}", direction, is_uniform, spread));
  const char* loads = "ld.global.u32 %r6, [%rd2]; ld.global.u32 %r7, [%rd2+256];";
  Session session(kernel_text(
      "u64 out, u64 own, u32 by, u32 clamp",
      fmt::format("ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [own]; mov.u32 %r1, %tid.x;"
                  "ld.param.u32 %r6, [by]; ld.param.u32 %r7, [clamp];"
                  "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd1, %rd1, %rd3; add.s64 %rd2, %rd2, %rd3;"
                  "{} mad.lo.u32 %r2, %r1, 77, 5;"
                  "shfl.sync.{}.b32 %r3|%p1, %r2, %r6, %r7, 0xffffffff;"
                  "selp.u32 %r4, 1, 0, %p1; st.global.u32 [%rd1], %r3; st.global.u32 [%rd1+256], "
                  "%r4;",
                  is_uniform ? "" : loads, direction)));
  std::vector<uint32_t> out(128), own(128);
  uint32_t *to = session.allow(out, "out"), *from = session.allow(own, "own", false);
  for (uint32_t clamp : kClamps) {
    for (uint32_t by : kDistances) {
      for (uint32_t i = 0; i < 64; ++i) {
        own[i] = by + i * spread;
        own[64 + i] = clamp ^ (i * spread & 0x100);
      }
      const LaunchOutcome outcome =
          session.launch("k", {{1, 1, 1}, {64, 1, 1}}, to, from, by, clamp);
      ASSERT_EQ(outcome.text, "");
      for (uint32_t i = 0; i < 64; ++i) {
        const Lane read = lane_read(direction, i % 32, is_uniform ? by : own[i],
                                    is_uniform ? clamp : own[64 + i]);
        ASSERT_EQ(out[i], (i / 32 * 32 + read.from) * 77 + 5) << i << " by " << by << " " << clamp;
        ASSERT_EQ(out[64 + i], read.in_range ? 1u : 0u) << i << " by " << by << " " << clamp;
      }
    }
  }
}

// Of numbers: machine code has instructions for it. Into another register, and in place.
void expect_butterfly(uint32_t by) {
  SCOPED_TRACE(by);
  Session session(kernel_text(
      "u64 out",
      fmt::format("ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;"
                  "add.s64 %rd1, %rd1, %rd3; mov.u32 %r5, 0; mov.u32 %r8, 0;"
                  "ld.global.u32 %r2, [%rd1]; mov.u32 %r7, %r2;\n"
                  "L: shfl.sync.bfly.b32 %r3|%p1, %r2, {0}, 31, -1; add.u32 %r8, %r8, %r3;"
                  "shfl.sync.bfly.b32 %r7|%p2, %r7, {0}, 31, -1; and.pred %p1, %p1, %p2;"
                  "add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 3; @%p3 bra L;\n"
                  "selp.u32 %r4, 1, 0, %p1; st.global.u32 [%rd1], %r8;"
                  "st.global.u32 [%rd1+256], %r7; st.global.u32 [%rd1+512], %r4;",
                  by)));
  std::vector<uint32_t> out(192);
  for (uint32_t i = 0; i < 64; ++i) out[i] = i * 77 + 5;
  const LaunchOutcome outcome =
      session.launch("k", {{1, 1, 1}, {64, 1, 1}}, session.allow(out, "out"));
  ASSERT_EQ(outcome.text, "");
  for (uint32_t i = 0; i < 64; ++i) {
    const uint32_t right = (i ^ (by & 31)) * 77 + 5;
    ASSERT_EQ(out[i], 3 * right) << i;
    ASSERT_EQ(out[64 + i], right) << i;  // there, back and there again
    ASSERT_EQ(out[128 + i], 1u) << i;
  }
}

// The same in every direction, of all distances: to another register and in place, and whether the
// lane was in range.
void expect_numbers(const std::string& direction, uint32_t clamp) {
  SCOPED_TRACE(fmt::format("{} {:#x}", direction, clamp));
  std::string body =
      "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;"
      "add.s64 %rd1, %rd1, %rd3; ld.global.u32 %r2, [%rd1];";
  for (size_t k = 0; k < std::size(kDistances); ++k)
    body += fmt::format(
        "mov.u32 %r7, %r2; shfl.sync.{0}.b32 %r3|%p1, %r2, {1}, {2}, -1;"
        "shfl.sync.{0}.b32 %r7, %r7, {1}, {2}, -1; selp.u32 %r4, 1, 0, %p1; sub.u32 %r7, %r7, %r3;"
        "mad.lo.u32 %r3, %r3, 2, %r4; add.u32 %r3, %r3, %r7; st.global.u32 [%rd1+{3}], %r3;\n",
        direction, kDistances[k], clamp, 256 + 256 * k);
  Session session(kernel_text("u64 out", body));
  std::vector<uint32_t> out(64 * (1 + std::size(kDistances)));
  for (uint32_t i = 0; i < 64; ++i) out[i] = i * 77 + 5;
  const LaunchOutcome outcome =
      session.launch("k", {{1, 1, 1}, {64, 1, 1}}, session.allow(out, "out"));
  ASSERT_EQ(outcome.text, "");
  for (uint32_t i = 0; i < 64; ++i) {
    for (size_t k = 0; k < std::size(kDistances); ++k) {
      const Lane read = lane_read(direction, i % 32, kDistances[k], clamp);
      ASSERT_EQ(out[64 * (k + 1) + i], ((i / 32 * 32 + read.from) * 77 + 5) * 2 + read.in_range)
          << i << " by " << kDistances[k];
    }
  }
}

void expect_all() {
  for (const char* direction : {"up", "down", "bfly", "idx"}) {
    expect_lanes(direction, true, 0);
    expect_lanes(direction, false, 0);
    expect_lanes(direction, false, 37);
    for (uint32_t clamp : kClamps) expect_numbers(direction, clamp);
  }
  for (uint32_t by : kDistances) expect_butterfly(by);
}

TEST(Shuffle, ReadsTheLaneThatTheManualSays) { expect_all(); }

TEST(Shuffle, CompiledToo) {
  setenv("KILN_ENGINE_COMPILE", "always", 1);
  expect_all();
  unsetenv("KILN_ENGINE_COMPILE");
}

// A loop over the columns of a row that the compiler has unrolled: lanes come to the same shuffle
// at two places, and on a GPU they exchange all the same.
TEST(Shuffle, IsOneForLanesThatComeToItAtSeveralPlaces) {
  const std::string text = kernel_text(
      "u64 out",
      "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;"
      "add.s64 %rd3, %rd1, %rd2; mul.lo.u32 %r2, %r1, 10; mov.u32 %r20, 0;"
      "setp.lt.u32 %p1, %r1, 20; @%p1 bra A;"
      "add.u32 %r3, %r2, 1; shfl.sync.up.b32 %r4|%p2, %r3, 1, 0, -1; add.u32 %r5, %r4, 5;"
      "shfl.sync.idx.b32 %r6|%p3, %r5, 3, 31, -1; setp.gt.u32 %p4, %r1, 30;"
      "vote.sync.ballot.b32 %r7, %p4, -1; vote.sync.any.pred %p5, %p4, -1; bra END;\n"
      "A: add.u32 %r13, %r2, 2; shfl.sync.up.b32 %r4|%p2, %r13, 1, 0, -1; add.u32 %r15, %r4, 6;"
      "shfl.sync.idx.b32 %r6|%p3, %r15, 3, 31, -1; setp.lt.u32 %p6, %r1, 2;"
      "vote.sync.ballot.b32 %r7, %p6, -1; setp.lt.u32 %p7, %r1, 0; vote.sync.any.pred %p5, %p7, "
      "-1;\n"
      "END: selp.u32 %r8, 1000000, 0, %p5; add.u32 %r9, %r6, %r8; st.global.u32 [%rd3], %r4;"
      "st.global.u32 [%rd3+128], %r9; st.global.u32 [%rd3+256], %r7;");
  for (const char* compile : {"0", "always"}) {
    setenv("KILN_ENGINE_COMPILE", compile, 1);
    Session session(text);
    std::vector<uint32_t> out(96);
    EXPECT_EQ(session.launch("k", {{1, 1, 1}, {32, 1, 1}}, session.allow(out, "out")).text, "");
    unsetenv("KILN_ENGINE_COMPILE");
    for (uint32_t lane = 0; lane < 32; ++lane) {
      const auto brought = [](uint32_t by) { return by * 10 + (by < 20 ? 2 : 1); };
      EXPECT_EQ(out[lane], brought(lane ? lane - 1 : 0)) << lane;
      EXPECT_EQ(out[32 + lane], brought(2) + 6 + 1000000) << lane;
      EXPECT_EQ(out[64 + lane], 0x80000003u) << lane;
    }
  }
}

// What 32 threads leave in three words each, interpreted and compiled.
void expect_meeting(const std::string& text, uint32_t (*want)(uint32_t lane, uint32_t word)) {
  for (const char* compile : {"0", "always"}) {
    setenv("KILN_ENGINE_COMPILE", compile, 1);
    Session session(text);
    std::vector<uint32_t> out(96);
    EXPECT_EQ(session.launch("k", {{1, 1, 1}, {32, 1, 1}}, session.allow(out, "out")).text, "");
    unsetenv("KILN_ENGINE_COMPILE");
    for (uint32_t i = 0; i < 96; ++i)
      EXPECT_EQ(out[i], want(i % 32, i / 32)) << compile << " " << i;
  }
}

constexpr const char* kBeforeMeeting =
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;"
    "add.s64 %rd3, %rd1, %rd2; mov.u32 %r7, 0; mov.u32 %r8, 0;";
constexpr const char* kBehindMeeting =
    "END: st.global.u32 [%rd3], %r6; st.global.u32 [%rd3+128], %r7; st.global.u32 [%rd3+256], %r8;";

// Lanes that have met others go on to where those still stand: that is the next exchange of theirs.
TEST(Shuffle, IsAnotherForLanesThatComeToItASecondTime) {
  // The upper half comes later, and to a place before the lower one's.
  expect_meeting(
      kernel_text("u64 out",
                  std::string(kBeforeMeeting) +
                      "add.u32 %r6, %r1, 100; setp.lt.u32 %p1, %r1, 16; @%p1 bra B;"
                      "mov.u32 %r2, 0;\nL: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 9000;"
                      "@%p2 bra L; shfl.sync.bfly.b32 %r6|%p3, %r6, 16, 31, -1;"
                      "add.u32 %r6, %r6, 1000;\n"
                      "B: shfl.sync.bfly.b32 %r6|%p3, %r6, 16, 31, -1;"
                      "add.u32 %r6, %r6, 1; setp.ge.u32 %p4, %r1, 16; @%p4 bra END;"
                      "shfl.sync.bfly.b32 %r6|%p3, %r6, 16, 31, -1;"
                      "add.u32 %r6, %r6, 20000;\n" +
                      kBehindMeeting),
      [](uint32_t lane, uint32_t word) -> uint32_t {
        if (word) return 0;
        // What it had itself, by way of the other.
        return lane < 16 ? lane + 100 + 1000 + 20000 : lane + 100 + 1 + 1;
      });
}

TEST(WarpBarrier, WaitsForTheMembersOfEveryLane) {
  // Both halves wait for their own, and some of the upper one come later.
  expect_meeting(
      kernel_text("u64 out", ".shared .align 4 .b8 x[128];" + std::string(kBeforeMeeting) +
                                 "mov.u32 %r10, x; shl.b32 %r11, %r1, 2; add.u32 %r10, %r10, %r11;"
                                 "mov.u32 %r6, 7; st.shared.u32 [%r10], %r6;"
                                 "setp.lt.u32 %p1, %r1, 16; selp.b32 %r12, 0xffff, 0xffff0000, %p1;"
                                 "setp.lt.u32 %p2, %r1, 24; @%p2 bra B; mov.u32 %r2, 0;\n"
                                 "L: add.u32 %r2, %r2, 1; setp.lt.u32 %p3, %r2, 9000; @%p3 bra L;\n"
                                 "B: add.u32 %r13, %r1, 50; st.shared.u32 [%r10], %r13;"
                                 "bar.warp.sync %r12; xor.b32 %r14, %r11, 32; mov.u32 %r15, x;"
                                 "add.u32 %r15, %r15, %r14; ld.shared.u32 %r6, [%r15];\n" +
                                 kBehindMeeting),
      [](uint32_t lane, uint32_t word) { return word ? 0 : (lane ^ 8) + 50; });
}

// Some of the lower half wait for what the upper one does behind its own meeting: it does not wait
// for them.
TEST(WarpBarrier, LetsGroupsPassThatAreComplete) {
  setenv("KILN_ENGINE_STEP_LIMIT", "10000000", 1);
  for (const char* meet : {"bar.warp.sync %r12;", "vote.sync.ballot.b32 %r13, %p1, %r12;"}) {
    expect_meeting(
        kernel_text(
            "u64 out",
            ".shared .align 4 .b8 x[4];" + std::string(kBeforeMeeting) +
                "mov.u32 %r6, 0; st.shared.u32 [x], %r6; bar.warp.sync -1;"
                "setp.lt.u32 %p1, %r1, 16; selp.b32 %r12, 0xffff, 0xffff0000, %p1;"
                "setp.lt.u32 %p2, %r1, 8; @!%p2 bra B;\n"
                "L: ld.volatile.shared.u32 %r6, [x]; setp.eq.u32 %p3, %r6, 0; @%p3 bra L;\n"
                "B: " +
                meet + "@%p1 bra END; mov.u32 %r6, 9; st.volatile.shared.u32 [x], %r6; bra END;\n" +
                kBehindMeeting),
        [](uint32_t lane, uint32_t word) -> uint32_t {
          return word == 0 && (lane < 8 || lane >= 16) ? 9 : 0;
        });
  }
  unsetenv("KILN_ENGINE_STEP_LIMIT");
}

// Each lane names the next one as well, which names somebody else: undefined, but it ends.
TEST(WarpBarrier, EndsWhereMembersDoNotAgree) {
  for (const char* wait :
       {"bar.warp.sync %r4;", "vote.sync.any.pred %p2, %p1, %r4;",
        "redux.sync.add.u32 %r5, %r1, %r4;", "match.any.sync.b32 %r5, %r1, %r4;"}) {
    for (const char* compile : {"0", "always"}) {
      SCOPED_TRACE(fmt::format("{} {}", wait, compile));
      setenv("KILN_ENGINE_COMPILE", compile, 1);
      setenv("KILN_ENGINE_STEP_LIMIT", "100000", 1);
      Session session(kernel_text(
          "u64 p", fmt::format("mov.u32 %r1, %laneid; mov.u32 %r2, 1; shl.b32 %r3, %r2, %r1;"
                               "shf.l.wrap.b32 %r4, %r3, %r3, 1; or.b32 %r4, %r4, %r3;"
                               "setp.lt.u32 %p1, %r1, 16; @%p1 bra L; {0} ret;\nL: {0} ret;",
                               wait)));
      const LaunchOutcome outcome = session.launch("k", {{1, 1, 1}, {32, 1, 1}}, uint64_t{0});
      unsetenv("KILN_ENGINE_COMPILE");
      unsetenv("KILN_ENGINE_STEP_LIMIT");
      EXPECT_EQ(outcome.text.find("Step limit"), std::string::npos) << outcome.text;
    }
  }
}

TEST(Match, IsOneForLanesThatComeToItAtSeveralPlaces) {
  expect_meeting(
      kernel_text("u64 out",
                  std::string(kBeforeMeeting) +
                      "and.b32 %r2, %r1, 3; cvt.u64.u32 %rd4, %r1; shr.u64 %rd4, %rd4, 4;"
                      "shl.b64 %rd4, %rd4, 40; mov.u32 %r3, 9; setp.lt.u32 %p1, %r1, 20;"
                      "@%p1 bra A; match.any.sync.b32 %r6, %r2, -1;"
                      "match.any.sync.b64 %r7, %rd4, -1; match.all.sync.b32 %r8|%p2, %r3, "
                      "-1; bra END;\n"
                      "A: match.any.sync.b32 %r6, %r2, -1; match.any.sync.b64 %r7, %rd4, "
                      "-1; match.all.sync.b32 %r8|%p2, %r3, -1;\n" +
                      kBehindMeeting),
      [](uint32_t lane, uint32_t word) -> uint32_t {
        if (word == 0) return 0x11111111u << lane % 4;
        return word == 2 ? ~0u : lane < 16 ? 0xffffu : 0xffff0000u;
      });
}

TEST(Reduction, IsOneForLanesThatComeToItAtSeveralPlaces) {
  const std::string reduce =
      "redux.sync.add.u32 %r6, %r1, -1; redux.sync.max.s32 %r7, %r2, -1;"
      "redux.sync.max.f32 %f2, %f1, -1; mov.b32 %r8, %f2;";
  expect_meeting(kernel_text("u64 out", std::string(kBeforeMeeting) +
                                            "sub.u32 %r2, 5, %r1; cvt.rn.f32.u32 %f1, %r1;"
                                            "setp.lt.u32 %p1, %r1, 20; @%p1 bra A;" +
                                            reduce + "bra END;\nA: " + reduce + kBehindMeeting),
                 [](uint32_t, uint32_t word) -> uint32_t {
                   return word == 0 ? 31 * 32 / 2 : word == 1 ? 5 : 0x41f80000;  // 31
                 });
}

TEST(Election, IsOneForLanesThatComeToItAtSeveralPlaces) {
  const std::string elect = "elect.sync %r6|%p2, -1; selp.u32 %r7, 1, 0, %p2;";
  expect_meeting(
      kernel_text("u64 out", std::string(kBeforeMeeting) + "setp.lt.u32 %p1, %r1, 20; @%p1 bra A;" +
                                 elect + "bra END;\nA: " + elect + kBehindMeeting),
      [](uint32_t lane, uint32_t word) -> uint32_t { return word == 1 && lane == 0; });
}

}  // namespace
}  // namespace kiln::engine
