// SPDX-License-Identifier: Apache-2.0
// Does machine code that goes on as the next warps of its block do what the interpreter does, and
// is it entered once for all of them? Also at borders, where some lanes have nothing to do, beyond
// the end of memory, and where an index wraps around on the way.
#include <fmt/format.h>

#include "compile_case.h"

namespace kiln::engine {
namespace {

constexpr KilnDim3 kBlocks[] = {{256, 1, 1}, {16, 16, 1}, {8, 16, 1},  {96, 1, 1},
                                {100, 1, 1}, {32, 4, 1},  {32, 16, 1}, {64, 4, 1},
                                {32, 4, 2},  {8, 8, 4},   {64, 2, 2},  {16, 2, 3}};
constexpr uint32_t kGrid = 3;  // as run_compiled() launches it

const std::string kIndexOfAll =
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;"
    "mov.u32 %r3, %ntid.x; mov.u32 %r4, %ctaid.x; mad.lo.s32 %r5, %r4, %r3, %r2;"
    "mov.u32 %r29, %tid.y; mov.u32 %r30, %tid.z; mov.u32 %r31, %ntid.y;"
    "mad.lo.s32 %r6, %r30, %r31, %r29; mad.lo.s32 %r7, %r6, 800, %r5; mul.wide.s32 %rd3, %r7, 4;"
    "add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\n";

void expect_same(const std::string& body, uint32_t n, uint32_t words = kWords * 4) {
  const std::string text = kernel_text("u64 p, u64 q, u32 n", kIndexOfAll + body);
  setenv("KILN_ENGINE_THREADS", "1", 1);  // of several blocks at once any may be the first to fault
  for (KilnDim3 block : kBlocks) {
    const Ran compiled = run_compiled(text, block, n, "always", n, words);
    const Ran interpreted = run_compiled(text, block, n, "0", n, words);
    EXPECT_EQ(compiled.text, interpreted.text) << n << " in " << block.x;
    EXPECT_EQ(compiled.out, interpreted.out) << n << " in " << block.x;
  }
  unsetenv("KILN_ENGINE_THREADS");
}

TEST(CompiledWarps, AreEnteredOnceForABlock) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n", kIndexOfAll +
                                 "setp.ge.s32 %p1, %r5, %r1; @%p1 bra END; ld.global.f32 %f1, "
                                 "[%rd4]; ld.global.f32 %f2, [%rd4+4]; add.f32 %f3, %f1, %f2;"
                                 "mul.f32 %f4, %f3, %f1; st.global.f32 [%rd5], %f4;\nEND: ret;");
  for (KilnDim3 block : {KilnDim3{256, 1, 1}, KilnDim3{16, 16, 1}, KilnDim3{32, 8, 1}}) {
    const Ran compiled = run_compiled(text, block, 1 << 20, "always", 3);
    EXPECT_EQ(compiled.out, run_compiled(text, block, 1 << 20, "0", 3).out);
    if (!compiles()) continue;
    EXPECT_GT(compiled.facts.entered, 0u);
    // The first entry may find no region of memory that is known.
    EXPECT_LE(compiled.facts.entered, kGrid + 2) << "of " << kGrid * 8 << " warps";
  }
}

// Numbers that handlers read as 32 lanes are no values of a warp's own.
TEST(CompiledWarps, ShareNumbersOfAllLanes) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      kIndexOfAll +
          "setp.ge.s32 %p1, %r5, %r1; @%p1 bra END; ld.global.f32 %f1, [%rd4];"
          "ld.global.u16 %rs1, [%rd4+2]; fma.rm.f32 %f2, %f1, 0f437C0000, 0f4B400001;"
          "mov.b32 %f3, {0, %rs1}; add.f32 %f2, %f2, %f3; mov.b32 %r8, %f2;"
          "lop3.b32 %r8, %r8, 21845, 3855, 0x96; mov.b32 %r9, {%rs1, 7}; xor.b32 %r8, %r8, %r9;"
          "st.global.u32 [%rd5], %r8;\nEND: ret;");
  const Ran compiled = run_compiled(text, {256, 1, 1}, 1 << 20, "always", 3);
  EXPECT_EQ(compiled.out, run_compiled(text, {256, 1, 1}, 1 << 20, "0", 3).out);
  if (compiles()) {
    EXPECT_GT(compiled.facts.entered, 0u);
    EXPECT_LE(compiled.facts.entered, kGrid + 2) << "of " << kGrid * 8 << " warps";
  }
}

// Of a row, or of the rows of one %tid.z.
TEST(CompiledWarps, AreEnteredOnceForARowOrASlice) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n", kIndexOfAll +
                                 "setp.ge.s32 %p1, %r5, %r1; @%p1 bra END; ld.global.f32 %f1, "
                                 "[%rd4]; ld.global.f32 %f2, [%rd4+4]; add.f32 %f3, %f1, %f2;"
                                 "mul.f32 %f4, %f3, %f1; st.global.f32 [%rd5], %f4;\nEND: ret;");
  struct {
    KilnDim3 block;
    uint32_t slices;
  } const cases[] = {{{128, 4, 1}, 4}, {{32, 8, 2}, 2}, {{8, 8, 2}, 2}, {{16, 8, 2}, 2}};
  for (const auto& [block, slices] : cases) {
    const Ran compiled = run_compiled(text, block, 1 << 20, "always", 3);
    EXPECT_EQ(compiled.text, "") << "all of it is there";
    EXPECT_EQ(compiled.out, run_compiled(text, block, 1 << 20, "0", 3).out);
    if (!compiles()) continue;
    EXPECT_GT(compiled.facts.entered, 0u);
    EXPECT_LE(compiled.facts.entered, kGrid * slices + 2) << block.x << " x " << block.y;
  }
}

TEST(CompiledWarps, ComputeAlongBehindTwoBranches) {
  for (uint32_t n : {2u, 33u, 47u, 97u, 300u}) {
    expect_same(
        "setp.lt.s32 %p1, %r5, 1; setp.lt.s32 %p2, %r6, 1; or.pred %p3, %p1, %p2; @%p3 bra END;"
        "add.s32 %r8, %r1, -1; setp.ge.s32 %p4, %r5, %r8; @%p4 bra END;"
        "ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd4+4]; ld.global.f32 %f3, [%rd4+-4];"
        "add.f32 %f4, %f2, %f3; ld.global.f32 %f5, [%rd4+-3200]; add.f32 %f6, %f4, %f5;"
        "st.global.f32 [%rd5], %f6;\nEND: ret;",
        n);
  }
}

TEST(CompiledWarps, ComputeAlongAtABorder) {
  for (uint32_t n : {2u, 33u, 47u, 64u, 97u, 300u, 767u}) {
    expect_same(
        "setp.lt.s32 %p1, %r5, 1; setp.lt.s32 %p2, %r6, 1; or.pred %p3, %p1, %p2;"
        "add.s32 %r8, %r1, -1; setp.ge.s32 %p4, %r5, %r8; or.pred %p3, %p3, %p4; @%p3 bra END;"
        "ld.global.f32 %f1, [%rd4]; ld.global.f32 %f2, [%rd4+4]; ld.global.f32 %f3, [%rd4+-4];"
        "add.f32 %f4, %f2, %f3; ld.global.f32 %f5, [%rd4+-3200]; add.f32 %f6, %f4, %f5;"
        "mul.f32 %f7, %f6, 0f3E000000; fma.rn.f32 %f8, %f1, 0f3F000000, %f7;"
        "st.global.f32 [%rd5], %f8; st.global.f32 [%rd5+65536], %f6;\nEND: ret;",
        n);
  }
}

// The first and the last row of an image compute nothing, and what they would load is not there:
// that is no reason to interpret the warps that they are in.
const std::string kBetweenRows =
    "or.pred %p3, %p1, %p2; @%p3 bra END; ld.global.f32 %f1, [%rd5+-3200];"
    "ld.global.f32 %f2, [%rd5+3200]; ld.global.f32 %f3, [%rd4]; add.f32 %f4, %f1, %f2;"
    "ld.global.f32 %f5, [%rd5]; add.f32 %f6, %f4, %f5; mul.f32 %f7, %f6, 0f3E000000;"
    "fma.rn.f32 %f8, %f3, 0f3F000000, %f7; st.global.f32 [%rd5], %f8;\nEND: ret;";

TEST(CompiledWarps, LoadForThoseAloneThatCompute) {
  const std::string body = "setp.lt.s32 %p1, %r6, 1; setp.ge.s32 %p2, %r6, %r1; " + kBetweenRows;
  for (uint32_t rows : {15u, 7u, 3u, 1u}) expect_same(body, rows, (rows + 1) * 800);
  const std::string text = kernel_text("u64 p, u64 q, u32 n", kIndexOfAll + body);
  const Ran compiled = run_compiled(text, {16, 16, 1}, 15, "always", 3, 16 * 800);
  EXPECT_EQ(compiled.text, "");
  if (compiles()) {
    // The first version takes for granted that lanes agree, and the first entry may find no region.
    EXPECT_LE(compiled.facts.missed, compiled.facts.entered / 2 + 1);
    EXPECT_LE(compiled.facts.missed, 2 * kGrid + 1) << "of " << kGrid * 8 << " warps";
  }
}

// Some of those that compute do load what is not there: the interpreter says which. It is far away,
// for the memory next to this one may be the kernel's too.
TEST(CompiledWarps, FindFaultsOfThoseThatCompute) {
  setenv("KILN_ENGINE_THREADS", "1", 1);
  for (const char* guard : {"setp.gt.s32 %p1, %r6, 0; setp.gt.s32 %p2, %r5, 5; ",
                            "setp.lt.s32 %p1, %r6, 15; setp.lt.s32 %p2, %r5, 3; ",
                            "setp.ne.s32 %p1, %r6, 3; setp.lt.s32 %p2, %r5, 7; "}) {
    const std::string text =
        kernel_text("u64 p, u64 q, u32 n",
                    kIndexOfAll + guard +
                        "or.pred %p3, %p1, %p2; @%p3 bra END; ld.global.f32 %f1, [%rd4];"
                        "ld.global.f32 %f2, [%rd5+-268435456]; add.f32 %f4, %f1, %f2;"
                        "mul.f32 %f7, %f4, 0f3E000000; fma.rn.f32 %f8, %f2, 0f3F000000, %f7;"
                        "st.global.f32 [%rd5], %f8;\nEND: ret;");
    for (KilnDim3 block : {KilnDim3{16, 16, 1}, KilnDim3{8, 16, 1}, KilnDim3{32, 16, 1}}) {
      const Ran compiled = run_compiled(text, block, 15, "always", 3, 16 * 800);
      const Ran interpreted = run_compiled(text, block, 15, "0", 3, 16 * 800);
      EXPECT_EQ(compiled.text, interpreted.text) << guard << " in " << block.x;
      EXPECT_NE(compiled.text, "") << guard << " in " << block.x;
    }
  }
  unsetenv("KILN_ENGINE_THREADS");
}

// Of the warps behind the first some reach beyond the end: those before have stored.
TEST(CompiledWarps, FindFaultsInLaterWarps) {
  const std::string body =
      "ld.global.f32 %f1, [%rd4]; add.f32 %f2, %f1, %f1; mul.f32 %f3, %f2, %f1;"
      "sub.f32 %f4, %f3, %f2; st.global.f32 [%rd5], %f4;\nEND: ret;";
  for (uint32_t words : {40u, 64u, 130u, 255u, 500u}) expect_same(body, 0, words);
}

TEST(CompiledWarps, GoBackwards) {
  expect_same(
      "sub.s32 %r8, 15000, %r7; mul.wide.s32 %rd6, %r8, 4; add.s64 %rd7, %rd2, %rd6;"
      "add.s64 %rd8, %rd1, %rd6; ld.global.f32 %f1, [%rd8]; ld.global.f32 %f2, [%rd4];"
      "add.f32 %f3, %f1, %f2; mul.f32 %f4, %f3, %f1; st.global.f32 [%rd7], %f4;\nEND: ret;",
      0);
}

// 32 bits that wrap around between two warps, or inside of one, are no base and step of 64.
// Sums and products of %ctaid.x go on by an addition: with numbers for which they fit into 32 bits,
// wrap around, and come near to it.
TEST(CompiledWarps, HaveTheValuesOfTheirBlock) {
  for (uint32_t n : {0u, 1u, 3u, 70'000u, 1u << 22, 0xfffffff9u, 0x7fffffffu}) {
    expect_same(
        "shl.b32 %r8, %r5, 3; sub.s32 %r9, %r8, %r4; mad.lo.s32 %r10, %r9, %r1, %r5;"
        "mul.wide.s32 %rd6, %r10, %r1; cvt.s64.s32 %rd7, %r9; mad.wide.s32 %rd8, %r5, %r1, %rd7;"
        "mul.wide.u32 %rd9, %r10, 12; sub.s64 %rd10, %rd9, %rd8; shl.b64 %rd11, %rd10, 5;"
        "cvt.u32.u64 %r11, %rd11; mul.lo.s32 %r12, %r11, %r1; cvt.u64.u32 %rd12, %r12;"
        "xor.b64 %rd13, %rd6, %rd7; xor.b64 %rd13, %rd13, %rd11; xor.b64 %rd13, %rd13, %rd12;"
        "shr.u64 %rd14, %rd13, 32; xor.b64 %rd13, %rd13, %rd14; cvt.u32.u64 %r13, %rd13;"
        "ld.global.u32 %r14, [%rd4]; xor.b32 %r13, %r13, %r14; st.global.u32 [%rd5], %r13;"
        "\nEND: ret;",
        n);
  }
}

// What depends on the row alone is one value, and another one in the next warp.
TEST(CompiledWarps, HaveTheValuesOfTheirRow) {
  for (uint32_t n : {0u, 3u, 7u, 1u << 30, 0xfffffff0u}) {
    expect_same(
        "mad.lo.s32 %r8, %r6, 12, %r1; mul.lo.s32 %r9, %r8, %r5; cvt.rn.f32.s32 %f1, %r8;"
        "mul.wide.s32 %rd6, %r8, 16; and.b64 %rd6, %rd6, 1020; add.s64 %rd7, %rd1, %rd6;"
        "mul.wide.u32 %rd8, %r6, 8; add.s64 %rd9, %rd1, %rd8; ld.global.f32 %f2, [%rd9];"
        "setp.gt.s32 %p1, %r6, 2; @%p1 bra BEHIND; fma.rn.f32 %f1, %f1, %f2, %f2;\n"
        "BEHIND: ld.global.u32 %r10, [%rd7]; mov.b32 %r11, %f1; xor.b32 %r12, %r9, %r10;"
        "mov.u32 %r13, %laneid; mad.lo.s32 %r12, %r13, 77, %r12;"
        "xor.b32 %r12, %r12, %r11; st.global.u32 [%rd5], %r12;\nEND: ret;",
        n);
  }
}

TEST(CompiledWarps, NoticeAnIndexThatWrapsAround) {
  for (uint32_t back : {32u, 64u, 100u, 128u, 200u}) {
    expect_same(
        fmt::format("add.u32 %r8, %r5, {}; mul.wide.u32 %rd6, %r8, 4; shr.u64 %rd7, %rd6, 32;"
                    "cvt.u32.u64 %r9, %rd7; ld.global.u32 %r10, [%rd4]; add.u32 %r11, %r10, %r9;"
                    "xor.b32 %r12, %r11, %r8; st.global.u32 [%rd5], %r12;\nEND: ret;",
                    0u - back),
        0);
  }
}

}  // namespace
}  // namespace kiln::engine
