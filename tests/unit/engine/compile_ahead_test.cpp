// SPDX-License-Identifier: Apache-2.0
// Does compiled code ask for the memory of later iterations, where that is far from what it loads
// now? And only there: elsewhere it would be work for nothing.
#include <fmt/format.h>

#include <numeric>

#include "compile_case.h"
#include "engine/compile/plan.h"

namespace kiln::engine {
namespace {

constexpr uint32_t kAllBlocks = 16, kInBlock = 64,
                   kStride = kAllBlocks * kInBlock;     // a page of words
constexpr uint32_t kLarge = 1 << 21, kSmall = 1 << 20;  // words

// Each thread adds every `stride`th word, `loop` says how: n words at %rd4 and up, into %r7.
std::string sums_by(const std::string& loop) {
  return kernel_text("u64 p, u64 q, u32 n, u32 stride",
                     "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n];"
                     "ld.param.u32 %r2, [stride]; mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x;"
                     "mov.u32 %r4, %ntid.x; mad.lo.u32 %r5, %r3, %r4, %r1;"
                     "mad.wide.u32 %rd3, %r5, 4, %rd2; mad.wide.u32 %rd4, %r5, 4, %rd1;"
                     "cvt.u64.u32 %rd6, %r5; cvt.u64.u32 %rd7, %r2; shl.b64 %rd8, %rd7, 2;"
                     "mov.u32 %r7, 0; mov.u32 %r8, 0;\nLOOP:" +
                         loop +
                         "add.u32 %r8, %r8, 1; setp.lt.u32 %p1, %r8, %r9; @%p1 bra LOOP;"
                         "st.global.u32 [%rd3], %r7;");
}

const std::string kNarrowIndex =
    "mad.wide.u32 %rd4, %r5, 4, %rd1; ld.global.u32 %r6, [%rd4]; add.u32 %r7, %r7, %r6;"
    "add.u32 %r5, %r5, %r2;";
const std::string kWideIndex =
    "shl.b64 %rd5, %rd6, 2; add.s64 %rd4, %rd1, %rd5; ld.global.u32 %r6, [%rd4];"
    "add.u32 %r7, %r7, %r6; add.s64 %rd6, %rd6, %rd7;";
const std::string kWidened =
    "shl.b64 %rd5, %rd6, 2; add.s64 %rd4, %rd1, %rd5; ld.global.u32 %r6, [%rd4];"
    "add.u32 %r7, %r7, %r6; add.u32 %r5, %r5, %r2; cvt.s64.s32 %rd6, %r5;";
const std::string kPointer =
    "ld.global.u32 %r6, [%rd4]; add.u32 %r7, %r7, %r6; add.s64 %rd4, %rd4, %rd8;";
const std::string kConstant =
    "ld.global.u32 %r6, [%rd4]; add.u32 %r7, %r7, %r6; add.s64 %rd4, %rd4, 4096;";
const std::string kDownwards =
    "mul.wide.u32 %rd5, %r5, 4; sub.s64 %rd4, %rd1, %rd5; ld.global.u32 %r6, [%rd4+8388604];"
    "add.u32 %r7, %r7, %r6; add.u32 %r5, %r5, %r2;";

// Returns how many addresses are asked for ahead.
uint32_t asked(const std::string& loop, uint32_t words, uint32_t stride, bool backward = false,
               const char* compile = "1") {
  std::vector<uint32_t> in(words), out(kStride), wanted(kStride);
  std::iota(in.begin(), in.end(), 12345u);
  const uint32_t rounds = (words - kStride) / stride;
  for (uint32_t t = 0; t < kStride; ++t) {
    for (uint32_t i = 0; i < rounds; ++i)
      wanted[t] += in[backward ? words - 1 - t - i * stride : t + i * stride];
  }
  setenv("KILN_ENGINE_COMPILE", compile, 1);
  Session session(sums_by(loop));
  const uint32_t* from = session.allow(in, "in", false);
  uint32_t* to = session.allow(out, "out");
  const Shape3 shape{{kAllBlocks, 1, 1}, {kInBlock, 1, 1}};
  // So often that it is compiled in any case.
  for (uint32_t ran = 0; ran < 300'000; ran += rounds * kStride / kWarpSize * 5)
    EXPECT_EQ(session.launch("k", shape, from, to, rounds, stride).text, "");
  unsetenv("KILN_ENGINE_COMPILE");
  EXPECT_EQ(out, wanted);
  CompiledFacts facts;
  for (const Variant& variant : kVariants) {  // one of them ran
    if (auto program = session.image.kernel("k", variant); program && !facts.entered)
      facts = compiled_facts(**program);
  }
  EXPECT_GT(facts.entered, facts.missed);
  return facts.asked;
}

TEST(CompiledAhead, AsksForMemoryThatIsFarAway) {
  if (!compiles() || !kAsksAhead) GTEST_SKIP();
  for (const std::string& loop : {kNarrowIndex, kWideIndex, kWidened, kPointer, kConstant})
    EXPECT_GT(asked(loop, kLarge, kStride), 0u) << loop;
  EXPECT_GT(asked(kDownwards, kLarge, kStride, true), 0u);
}

// So that tests of small programs see it too.
TEST(CompiledAhead, AsksAnywhereIfAllIsCompiled) {
  if (!compiles() || !kAsksAhead) GTEST_SKIP();
  EXPECT_GT(asked(kNarrowIndex, 1 << 12, kStride, false, "always"), 0u);
  EXPECT_GT(asked(kPointer, 1 << 12, 8, false, "always"), 0u);
}

TEST(CompiledAhead, DoesNotAskForWhatTheCpuForesees) {
  if (!compiles()) GTEST_SKIP();
  EXPECT_EQ(asked(kNarrowIndex, kLarge, kStride / 2), 0u);
  EXPECT_EQ(asked(kPointer, kLarge, 64), 0u);
}

// What the products would be does not fit into 64 bits.
TEST(CompiledAhead, DoesNotMultiplyWithoutEnd) {
  if (!compiles()) GTEST_SKIP();
  const std::string loop =
      "mul.lo.u64 %rd5, %rd6, 0x8000000000000000; shl.b64 %rd5, %rd5, 31;"
      "mul.lo.u64 %rd5, %rd5, 0x7fffffffffffffff; add.s64 %rd4, %rd1, %rd5;"
      "ld.global.u32 %r6, [%rd4]; add.u32 %r7, %r7, %r6; add.s64 %rd6, %rd6, 0x8000000000000000;";
  std::vector<uint32_t> in(64, 5), out(kStride);
  setenv("KILN_ENGINE_COMPILE", "always", 1);
  Session session(sums_by(loop));
  const uint32_t* from = session.allow(in, "in", false);
  uint32_t* to = session.allow(out, "out");
  const Shape3 shape{{kAllBlocks, 1, 1}, {kInBlock, 1, 1}};
  EXPECT_EQ(session.launch("k", shape, from, to, 20u, kStride).text, "");
  unsetenv("KILN_ENGINE_COMPILE");
  EXPECT_EQ(out, std::vector<uint32_t>(kStride, 100));
}

TEST(CompiledAhead, DoesNotAskForSmallMemory) {
  if (!compiles()) GTEST_SKIP();
  EXPECT_EQ(asked(kNarrowIndex, kSmall, kStride), 0u);
  EXPECT_EQ(asked(kConstant, kSmall, kStride), 0u);
}

TEST(CompiledAhead, DoesNotAskInAFewIterations) {
  if (!compiles()) GTEST_SKIP();
  EXPECT_EQ(asked(kWideIndex, kLarge, kLarge / 15), 0u);
}

}  // namespace
}  // namespace kiln::engine
