// SPDX-License-Identifier: Apache-2.0
// Is a warp that goes on from the one before it a warp like any other: its faults, its divergence,
// its waiting?
#include <gmock/gmock.h>

#include <algorithm>

#include "harness.h"

namespace kiln::engine {
namespace {

using testing::HasSubstr;

// %r4: the index in the grid; %rd4: the address of its element of 4 bytes at `p`.
constexpr const char* kHoistIndex =
    "ld.param.u64 %rd1, [p]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mad.lo.s32 %r4, %r1, %r2, %r3; mul.wide.s32 %rd2, %r4, 4; add.s64 %rd4, %rd1, %rd2;\n";

TEST(NextWarp, FaultNamesItsOwnThread) {
  Session session(kernel_text("u64 p", std::string(kHoistIndex) + "st.global.u32 [%rd4], %r4;"));
  std::vector<uint32_t> out(256 + 200);
  LaunchOutcome outcome = session.launch("k", {{2, 1, 1}, {256, 1, 1}}, session.allow(out, "out"));
  EXPECT_EQ(outcome.code, kIllegalAddress);
  EXPECT_THAT(outcome.text, HasSubstr("by thread (200,0,0) in block (1,0,0)"));
  for (uint32_t i = 0; i < 256 + 192; ++i) ASSERT_EQ(out[i], i);
}

TEST(NextWarp, WaitsForALaterOne) {
  // Warp 2 waits for what warp 5 stores; the others pass by.
  Session session(kernel_text(
      "u64 p",
      std::string(kHoistIndex) +
          "shr.u32 %r5, %r3, 5; setp.ne.u32 %p1, %r5, 2; @%p1 bra PASS;\n"
          "SPIN: ld.volatile.global.u32 %r6, [%rd1+640]; setp.eq.u32 %p2, %r6, 0; @%p2 bra SPIN;\n"
          "PASS: add.s32 %r7, %r4, 1; st.volatile.global.u32 [%rd4], %r7;"));
  std::vector<uint32_t> out(256);
  LaunchOutcome outcome = session.launch("k", {{1, 1, 1}, {256, 1, 1}}, session.allow(out, "out"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  for (uint32_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i + 1);
}

TEST(NextWarp, DivergesByItself) {
  // In each warp another lane goes its own way; the last warp has 10 lanes.
  Session session(kernel_text(
      "u64 p",
      std::string(kHoistIndex) +
          "and.b32 %r5, %r3, 31; shr.u32 %r6, %r3, 5; setp.eq.u32 %p1, %r5, %r6; @%p1 bra OTHER;\n"
          "st.global.u32 [%rd4], %r4; bra END; OTHER: neg.s32 %r7, %r4; st.global.u32 [%rd4], %r7; "
          "END:"));
  constexpr uint32_t kThreads = 266, kBlocks = 40;
  std::vector<uint32_t> out(kThreads * kBlocks);
  LaunchOutcome outcome =
      session.launch("k", {{kBlocks, 1, 1}, {kThreads, 1, 1}}, session.allow(out, "out"));
  ASSERT_EQ(outcome.code, 0) << outcome.text;
  for (uint32_t i = 0; i < out.size(); ++i) {
    const uint32_t thread = i % kThreads;
    ASSERT_EQ(out[i], thread % 32 == thread / 32 ? 0u - i : i);
  }
}

TEST(Blocks, AreEachRunOnce) {
  // More of them than the threads take at a time, in numbers that do not divide.
  Session session(kernel_text(
      "u64 p", std::string(kHoistIndex) +
                   "ld.global.u32 %r5, [%rd4]; add.s32 %r5, %r5, 1; st.global.u32 [%rd4], %r5;"));
  for (uint32_t blocks : {33u, 2049u, 20011u}) {
    std::vector<uint32_t> out(size_t{blocks} * 64);
    session.regions.clear();
    LaunchOutcome outcome =
        session.launch("k", {{blocks, 1, 1}, {64, 1, 1}}, session.allow(out, "out"));
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_EQ(std::count(out.begin(), out.end(), 1u), static_cast<long>(out.size()));
  }
}

// A product of %ctaid.x and %ctaid.y rises along x, in each row of the grid by another amount.
TEST(Blocks, HaveProductsOfTheirOwnRow) {
  const std::string text = kernel_text(
      "u64 p", std::string(kHoistIndex) +
                   "mov.u32 %r5, %ctaid.y; mov.u32 %r6, %ctaid.z; mov.u32 %r7, %nctaid.x;\n"
                   "mov.u32 %r8, %nctaid.y; mad.lo.s32 %r9, %r6, %r8, %r5; mul.lo.s32 %r10, %r7, "
                   "%r2;\nmad.lo.s32 %r11, %r9, %r10, %r4; mul.wide.s32 %rd5, %r11, 8;\n"
                   "add.s64 %rd6, %rd1, %rd5; mul.lo.s32 %r12, %r4, %r5; shl.b32 %r13, %r4, %r6;\n"
                   "add.s32 %r14, %r12, %r13; mul.wide.s32 %rd7, %r4, %r9; cvt.u64.u32 %rd8, "
                   "%r14;\nshl.b64 %rd9, %rd7, 32; add.s64 %rd10, %rd9, %rd8;\n"
                   "st.global.u64 [%rd6], %rd10;");
  for (const char* mode : {"0", "1", "always"}) {
    setenv("KILN_ENGINE_COMPILE", mode, 1);
    Session session(text);
    for (const KilnDim3 grid : {KilnDim3{64, 100, 1}, KilnDim3{5, 3, 40}, KilnDim3{3, 300, 2}}) {
      constexpr uint32_t kThreads = 64;
      const uint32_t width = grid.x * kThreads;
      std::vector<uint64_t> out(size_t{width} * grid.y * grid.z);
      session.regions.clear();
      const LaunchOutcome outcome =
          session.launch("k", {grid, {kThreads, 1, 1}}, session.allow(out, "out"));
      ASSERT_EQ(outcome.code, 0) << outcome.text;
      size_t wrong = 0;
      for (uint64_t i = 0; i < out.size(); ++i) {
        const uint64_t x = i % width, row = i / width, y = row % grid.y, z = row / grid.y;
        const auto low = static_cast<uint32_t>(x * y + (z < 32 ? x << z : 0));
        wrong += out[i] != ((x * row) << 32 | low);
      }
      EXPECT_EQ(wrong, 0u) << mode << ", " << grid.x << " x " << grid.y << " x " << grid.z;
    }
    unsetenv("KILN_ENGINE_COMPILE");
  }
}

}  // namespace
}  // namespace kiln::engine
