// SPDX-License-Identifier: Apache-2.0
// Do values of base and step give what lanes would give, also where 32 bits wrap around?
#include "harness.h"

namespace kiln::engine {
namespace {

// Stores what the body leaves in %rd9 (64 bits), one a thread.
std::vector<uint64_t> run(const std::string& body, KilnDim3 block, uint32_t parameter,
                          bool for_rows) {
  Session session(kernel_text(
      "u64 p, u32 n",
      "ld.param.u64 %rd1, [p]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y;\n" +
          body + "\nmov.u32 %r30, %ntid.x; mad.lo.u32 %r31, %r3, %r30, %r2;\n" +
          "mov.u32 %r32, %ctaid.x; mov.u32 %r33, %ntid.y; mul.lo.u32 %r34, %r33, %r30;\n"
          "mov.u32 %r36, %tid.z; mad.lo.u32 %r31, %r36, %r34, %r31;\n"
          "mov.u32 %r35, %ntid.z; mul.lo.u32 %r34, %r34, %r35; mad.lo.u32 %r31, %r32, %r34, "
          "%r31;\n" +
          "mul.wide.u32 %rd30, %r31, 8; add.s64 %rd31, %rd1, %rd30; st.global.u64 [%rd31], %rd9;"));
  session.for_rows = for_rows;
  constexpr uint32_t kBlocks = 3;
  std::vector<uint64_t> out(size_t{block.x} * block.y * block.z * kBlocks, 0);
  LaunchOutcome outcome =
      session.launch("k", {{kBlocks, 1, 1}, block}, session.allow(out, "out"), parameter);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  return out;
}

class BaseAndStep : public testing::TestWithParam<const char*> {};

TEST_P(BaseAndStep, AgreesWithLanes) {
  // The last parameters wrap around between two warps of a block, or between two blocks.
  for (KilnDim3 block : {KilnDim3{32, 1, 1}, KilnDim3{64, 2, 1}, KilnDim3{50, 1, 1},
                         KilnDim3{320, 1, 1}, KilnDim3{96, 2, 2}, KilnDim3{1000, 1, 1}}) {
    for (uint32_t parameter : {0u, 1u, 7u, 0x7ffffff0u, 0xfffffff0u, 0x80000000u, 0xffffffc0u,
                               0x7fffffc0u, 0u - 320u, 0x80000000u - 352u}) {
      EXPECT_EQ(run(GetParam(), block, parameter, true), run(GetParam(), block, parameter, false))
          << GetParam() << " with " << parameter;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Bodies, BaseAndStep,
    testing::Values(
        "add.u32 %r4, %r2, %r1; cvt.u64.u32 %rd9, %r4;",
        "add.s32 %r4, %r2, %r1; cvt.s64.s32 %rd9, %r4;",
        "mad.lo.s32 %r4, %r2, %r1, %r3; mul.wide.s32 %rd9, %r4, 12;",
        "sub.u32 %r4, %r1, %r2; mul.wide.u32 %rd8, %r4, 3; sub.u64 %rd9, %rd8, 5;",
        "add.s32 %r4, %r2, %r1; mul.wide.s32 %rd8, %r4, 4; shl.b64 %rd7, %rd8, 3; add.s64 %rd9, "
        "%rd7, %rd8;",
        "shl.b32 %r4, %r2, 28; add.u32 %r5, %r4, %r1; cvt.u64.u32 %rd9, %r5;",
        "add.s32 %r4, %r2, %r1; mad.wide.s32 %rd9, %r4, -8, %rd1; sub.s64 %rd9, %rd9, %rd1;",
        "add.s32 %r4, %r2, %r1; setp.lt.s32 %p1, %r4, 20; selp.b64 %rd9, 1, 2, %p1;",
        "add.u32 %r4, %r2, %r1; setp.gt.u32 %p1, 20, %r4; selp.b64 %rd9, 1, 2, %p1;",
        "mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ntid.x; mad.lo.s32 %r6, %r4, %r5, %r2; add.s32 %r7, "
        "%r6, %r1; "
        "mul.wide.s32 %rd9, %r7, 4;",
        "mov.u32 %r4, %laneid; add.u32 %r5, %r4, %r2; add.u32 %r6, %r5, %r1; mul.wide.u32 %rd9, "
        "%r6, 3;",
        "mov.u32 %r4, %laneid; sub.u32 %r5, %r2, %r4; mul.wide.u32 %rd8, %r5, 5; mul.wide.u32 "
        "%rd7, %r3, %r1; "
        "add.s64 %rd9, %rd8, %rd7;",
        "mov.u32 %r4, %warpid; mul.lo.u32 %r5, %r4, %r1; add.u32 %r6, %r5, %r2; mul.wide.u32 %rd9, "
        "%r6, 2;",
        "mov.u32 %r4, %tid.z; mad.lo.u32 %r5, %r4, %r1, %r3; shl.b32 %r6, %r5, 3; mad.wide.u32 "
        "%rd9, %r2, %r6, 11;",
        "mul.lo.u32 %r4, %r1, 3; mov.u64 %rd9, 0; mov.u32 %r6, 0; L: cvt.u64.u32 %rd8, %r4; "
        "add.s64 %rd9, %rd9, %rd8; "
        "add.u32 %r5, %r2, %r1; cvt.u64.u32 %rd7, %r5; add.s64 %rd9, %rd9, %rd7; add.u32 %r6, %r6, "
        "1; "
        "setp.lt.u32 %p1, %r6, 3; @%p1 bra L;",
        "add.s32 %r4, %r2, %r1; mov.u64 %rd9, 1; setp.lt.s32 %p1, %r4, 40; @%p1 bra L; "
        "mul.wide.s32 %rd9, %r4, 2; L:",
        "add.s32 %r4, %r2, %r1; mov.u64 %rd9, 1; setp.gt.s32 %p1, %r4, 63; @!%p1 bra L; "
        "mul.wide.s32 %rd9, %r4, 2; L:",
        "add.s32 %r4, %r2, %r1; cvt.s64.s32 %rd8, %r4; setp.ge.s64 %p1, %rd8, 8; cvt.u32.u64 %r5, "
        "%rd8; "
        "cvt.u64.u32 %rd7, %r5; selp.b64 %rd9, %rd7, %rd8, %p1;"));

}  // namespace
}  // namespace kiln::engine
