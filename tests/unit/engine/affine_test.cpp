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

// Rows of 16, 8 and fewer threads: a warp has several of them, the last one may be cut off.
TEST_P(BaseAndStep, AgreesWithLanesInNarrowRows) {
  for (KilnDim3 block :
       {KilnDim3{16, 16, 1}, KilnDim3{8, 8, 1}, KilnDim3{16, 3, 1}, KilnDim3{2, 16, 1},
        KilnDim3{1, 64, 1}, KilnDim3{4, 8, 3}, KilnDim3{8, 12, 1}, KilnDim3{16, 2, 2}}) {
    for (uint32_t parameter : {0u, 1u, 7u, 0x7ffffff0u, 0xfffffff0u, 0x80000000u, 0xfffffffcu,
                               0x7ffffffcu, 0u - 3u, 0x80000000u - 9u, 2000u, 9000u}) {
      EXPECT_EQ(run(GetParam(), block, parameter, true), run(GetParam(), block, parameter, false))
          << GetParam() << " with " << parameter << " in " << block.x << " x " << block.y;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Bodies, BaseAndStep,
    testing::Values(
        "add.u32 %r4, %r2, %r1; cvt.u64.u32 %rd9, %r4;",
        "mov.u32 %r4, %tid.y; mul.lo.u32 %r5, %r4, 1000; sub.u32 %r6, %r1, %r5; cvt.u64.u32 %rd9, "
        "%r6;",
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
        "cvt.u64.u32 %rd7, %r5; selp.b64 %rd9, %rd7, %rd8, %p1;",
        "mad.lo.s32 %r4, %r3, %r1, %r2; mul.wide.s32 %rd9, %r4, 4;",
        "add.s32 %r4, %r3, %r1; sub.s32 %r5, %r4, %r2; setp.le.s32 %p1, %r5, 6; selp.b64 %rd9, 3, "
        "4, %p1;",
        "sub.u32 %r4, %r1, %r3; setp.lt.u32 %p1, %r4, %r1; shl.b32 %r5, %r4, 30; cvt.u64.u32 %rd8, "
        "%r5; selp.b64 %rd9, %rd8, 2, %p1;",
        "mul.lo.u32 %r4, %r3, %r1; add.u32 %r5, %r4, %r2; mad.wide.u32 %rd9, %r5, 7, %rd1; "
        "sub.s64 %rd9, %rd9, %rd1; neg.s64 %rd9, %rd9;"));

// What a kernel writes to `out` that reads and writes rows in every way, with and without steps.
std::vector<uint32_t> run_accesses(const std::string& body, KilnDim3 block, bool for_rows,
                                   std::string* fault) {
  Session session(kernel_text(
      "u64 p, u64 q, u32 n",
      ".shared .align 16 .b8 tile[8192];\n"
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n];\n"
      "mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ntid.x; mov.u32 %r20, tile;\n"
      "mad.lo.u32 %r5, %r3, %r4, %r2;\n" +
          body));
  session.for_rows = for_rows;
  std::vector<uint32_t> in(4096), out(4096, 0);
  for (uint32_t i = 0; i < in.size(); ++i) in[i] = i * 2654435761u;
  LaunchOutcome outcome = session.launch("k", {{1, 1, 1}, block}, session.allow(in, "in", false),
                                         session.allow(out, "out"), 40u);
  // Without the address, which is another one each time.
  *fault = outcome.text.substr(0, outcome.text.find("Address"));
  return out;
}

class RowAccess : public testing::TestWithParam<const char*> {};

TEST_P(RowAccess, AgreesWithLanes) {
  for (KilnDim3 block : {KilnDim3{16, 16, 1}, KilnDim3{8, 8, 1}, KilnDim3{16, 3, 1},
                         KilnDim3{4, 16, 1}, KilnDim3{1, 32, 1}, KilnDim3{8, 4, 1}}) {
    std::string with_rows, with_lanes;
    EXPECT_EQ(run_accesses(GetParam(), block, true, &with_rows),
              run_accesses(GetParam(), block, false, &with_lanes))
        << GetParam() << " in " << block.x << " x " << block.y;
    EXPECT_EQ(with_rows, with_lanes) << GetParam();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Bodies, RowAccess,
    testing::Values(
        // Neighbours in a row; one place for each row; the same row for all; backwards; apart.
        "mad.lo.u32 %r6, %r3, %r1, %r2; mul.wide.u32 %rd3, %r6, 4; add.s64 %rd4, %rd1, %rd3; "
        "ld.global.u32 %r7, [%rd4+12]; mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd2, %rd5; "
        "st.global.u32 [%rd6], %r7;",
        "mul.wide.u32 %rd3, %r3, 160; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r7, [%rd4]; "
        "mul.wide.u32 %rd5, %r2, 4; add.s64 %rd6, %rd1, %rd5; ld.global.u32 %r8, [%rd6+64]; "
        "add.u32 %r7, %r7, %r8; mul.wide.u32 %rd7, %r5, 4; add.s64 %rd8, %rd2, %rd7; "
        "st.global.u32 [%rd8], %r7;",
        "sub.u32 %r6, 300, %r5; mul.wide.u32 %rd3, %r6, 8; add.s64 %rd4, %rd1, %rd3; "
        "ld.global.u64 %rd9, [%rd4]; mul.wide.u32 %rd5, %r5, 8; add.s64 %rd6, %rd2, %rd5; "
        "st.global.u64 [%rd6], %rd9;",
        "mul.wide.u32 %rd3, %r5, 2; add.s64 %rd4, %rd1, %rd3; ld.global.u16 %rs1, [%rd4]; "
        "mul.wide.u32 %rd5, %r5, 12; add.s64 %rd6, %rd2, %rd5; st.global.u16 [%rd6+2], %rs1;",
        "mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], %r5;",
        "mul.wide.u32 %rd3, %r2, 4; add.s64 %rd4, %rd2, %rd3; st.global.u32 [%rd4], %r5;",
        // Shared memory, with 32-bit addresses.
        "shl.b32 %r6, %r5, 2; add.u32 %r7, %r20, %r6; mul.lo.u32 %r8, %r5, 77; "
        "st.shared.u32 [%r7], %r8; bar.sync 0; shl.b32 %r9, %r3, 6; add.u32 %r10, %r20, %r9; "
        "ld.shared.u32 %r11, [%r10+8]; shl.b32 %r12, %r2, 2; add.u32 %r13, %r20, %r12; "
        "ld.shared.u32 %r14, [%r13+64]; sub.u32 %r15, %r11, %r14; mul.wide.u32 %rd5, %r5, 4; "
        "add.s64 %rd6, %rd2, %rd5; st.global.u32 [%rd6], %r15;",
        // Some lanes alone; vectors; an atomic.
        "setp.gt.u32 %p1, %r2, 2; mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd2, %rd5; "
        "add.s64 %rd7, %rd1, %rd5; @%p1 ld.global.u32 %r7, [%rd7]; @%p1 st.global.u32 [%rd6], %r7;",
        "mul.wide.u32 %rd5, %r5, 8; add.s64 %rd6, %rd2, %rd5; add.s64 %rd7, %rd1, %rd5; "
        "ld.global.v2.u32 {%r7, %r8}, [%rd7]; st.global.v2.u32 [%rd6], {%r8, %r7};",
        "mul.wide.u32 %rd5, %r3, 4; add.s64 %rd6, %rd2, %rd5; "
        "atom.global.add.u32 %r7, [%rd6], %r2; mul.wide.u32 %rd7, %r5, 4; add.s64 %rd8, %rd2, "
        "%rd7; "
        "st.global.u32 [%rd8+4096], %r7;",
        // Beyond the end, and not aligned: the same fault.
        "mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd2, %rd5; st.global.u32 [%rd6+16300], %r5;",
        "mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd1, %rd5; ld.global.u32 %r7, [%rd6+2];",
        "mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd1, %rd5; st.global.u32 [%rd6], %r5;",
        "shl.b32 %r6, %r5, 2; add.u32 %r7, %r20, %r6; st.shared.u32 [%r7+8180], %r5;"));

}  // namespace
}  // namespace kiln::engine
