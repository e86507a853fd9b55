// SPDX-License-Identifier: Apache-2.0
// Is there code for all that a process launches? For blocks of all shapes, images of all widths,
// and after other kernels.
#include <fmt/format.h>

#include "compile_case.h"

namespace kiln::engine {
namespace {

// All is compiled before the first block, and runs on one thread: every thread has to find the
// memory once, which counts as a miss.
struct AtOnce {
  AtOnce() {
    setenv("KILN_ENGINE_COMPILE", "always", 1);
    setenv("KILN_ENGINE_THREADS", "1", 1);
  }
  ~AtOnce() {
    unsetenv("KILN_ENGINE_THREADS");
    unsetenv("KILN_ENGINE_COMPILE");
  }
  AtOnce(const AtOnce&) = delete;
  AtOnce& operator=(const AtOnce&) = delete;
};

// Machine code is for rows of one length. A kernel that is launched in blocks of many shapes has
// code of its own for each, instead of three versions for all.
TEST(CompiledVersions, AreThereForRowsOfEveryLength) {
  if (!compiles()) GTEST_SKIP();
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n];"
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %tid.y;"
      "mad.lo.u32 %r1, %r3, %r2, %r1; mad.lo.u32 %r5, %r4, %r9, %r1; mul.wide.u32 %rd3, %r5, 4;"
      "add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; setp.lt.u32 %p1, %r1, 2;"
      "@%p1 bra END; ld.global.u32 %r6, [%rd4+-8]; ld.global.u32 %r7, [%rd4+4];"
      "mad.lo.u32 %r6, %r6, 33, %r7; st.global.u32 [%rd5], %r6;\nEND:");
  constexpr uint32_t kColumns = 512;
  std::vector<uint32_t> in = numbers(3), out(size_t{kColumns} * 32), wanted(out.size());
  for (uint32_t y = 0; y < 4; ++y) {
    for (uint32_t at = y * kColumns + 2; at < (y + 1) * kColumns; ++at)
      wanted[at] = in[at - 2] * 33 + in[at + 1];
  }
  const AtOnce at_once;
  Session session(text);
  const uint32_t* from = session.allow(in, "in", false);
  uint32_t* to = session.allow(out, "out");
  for (const uint32_t columns : {32u, 16u, 8u, 4u, 32u, 8u}) {
    std::fill(out.begin(), out.end(), 0);
    const Shape3 shape{{kColumns / columns, 1, 1}, {columns, 4, 1}};
    for (int i = 0; i < 20; ++i) EXPECT_EQ(session.launch("k", shape, from, to, kColumns).text, "");
    EXPECT_EQ(out, wanted) << columns;
    const Variant variant{.row_lanes = static_cast<uint8_t>(columns)};
    const CompiledFacts facts = compiled_facts(**session.image.kernel("k", variant));
    if (columns >= 8) {
      EXPECT_GT(facts.entered, facts.missed) << columns;
    }
    EXPECT_LT(facts.missed * 4, facts.entered + 40) << columns;
  }
}

// Code is for the steps that values have, as by the width of an image. A kernel that is launched
// for images of many widths has code for each, once.
TEST(CompiledVersions, AreThereForLaterLaunches) {
  if (!compiles()) GTEST_SKIP();
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n];"
      "mov.u32 %r1, %tid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r1, %r3, 16, %r1;"
      "mov.u32 %r2, %tid.y; mov.u32 %r4, %ctaid.y; mad.lo.u32 %r2, %r4, 16, %r2;"
      "setp.ge.u32 %p1, %r1, %r9; @%p1 bra END; mad.lo.u32 %r5, %r2, %r9, %r1;"
      "mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;"
      "ld.global.u32 %r6, [%rd4]; ld.global.u32 %r7, [%rd4+4]; mad.lo.u32 %r6, %r6, 33, %r7;"
      "xor.b32 %r6, %r6, %r2; st.global.u32 [%rd5], %r6;\nEND:");
  constexpr uint32_t kRows = 64, kWidths[] = {100, 64, 128, 80, 36, 112};
  const std::vector<uint32_t> in = numbers(4);
  std::vector<uint32_t> out(size_t{kRows} * 128);
  const AtOnce at_once;
  Session session(text);
  std::vector<uint32_t> given = in;
  const uint32_t* from = session.allow(given, "in", false);
  uint32_t* to = session.allow(out, "out");
  const auto launch_all = [&] {
    for (const uint32_t width : kWidths) {
      std::fill(out.begin(), out.end(), 0);
      const Shape3 shape{{(width + 15) / 16, kRows / 16, 1}, {16, 16, 1}};
      for (int i = 0; i < 6; ++i) {
        EXPECT_EQ(session.launch("k", shape, from, to, width).text, "");
      }
      std::vector<uint32_t> wanted(out.size());
      for (uint32_t at = 0; at < width * kRows; ++at)
        wanted[at] = (in[at] * 33 + in[at + 1]) ^ (at / width);
      EXPECT_EQ(out, wanted) << width;
    }
    return compiled_facts(**session.image.kernel("k", {.row_lanes = 16}));
  };
  const CompiledFacts first = launch_all();
  EXPECT_GE(first.later, 2u);
  launch_all();
  const CompiledFacts before = launch_all(), after = launch_all();
  EXPECT_EQ(after.later, before.later);
  EXPECT_EQ(after.compiling_ns, before.compiling_ns);
  // All widths at the third and the fourth time.
  EXPECT_LT((after.missed - before.missed) * 4, after.entered - before.entered);
}

// The same for a kernel that leaves out the border of its images, as filters do: any code holds for
// the first rows, and none where the border is between two lanes. An image that is nothing but such
// warps does not keep the later ones from having their code.
TEST(CompiledVersions, AreThereForLaterLaunchesThatLeaveOutTheBorder) {
  if (!compiles()) GTEST_SKIP();
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n, u32 m",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r3, [n];"
      "ld.param.u32 %r4, [m]; mov.u32 %r5, %ntid.x; mov.u32 %r6, %ctaid.x; mov.u32 %r7, %tid.x;"
      "mad.lo.s32 %r1, %r6, %r5, %r7; mov.u32 %r8, %ntid.y; mov.u32 %r9, %ctaid.y;"
      "mov.u32 %r10, %tid.y; mad.lo.s32 %r2, %r9, %r8, %r10; setp.lt.s32 %p1, %r1, 1;"
      "setp.lt.s32 %p2, %r2, 1; or.pred %p3, %p1, %p2; add.s32 %r11, %r3, -1;"
      "setp.ge.s32 %p4, %r1, %r11; or.pred %p5, %p3, %p4; add.s32 %r12, %r4, -1;"
      "setp.ge.s32 %p6, %r2, %r12; or.pred %p7, %p5, %p6; @%p7 bra END;"
      "mul.lo.s32 %r13, %r2, %r3; add.s32 %r14, %r13, %r1; mul.wide.s32 %rd5, %r14, 4;"
      "add.s64 %rd6, %rd1, %rd5; ld.global.u32 %r16, [%rd6+-4]; ld.global.u32 %r17, [%rd6+4];"
      "mad.lo.s32 %r18, %r16, 33, %r17; sub.s32 %r19, %r13, %r3; add.s32 %r20, %r19, %r1;"
      "mul.wide.s32 %rd7, %r20, 4; add.s64 %rd8, %rd1, %rd7; ld.global.u32 %r21, [%rd8];"
      "xor.b32 %r22, %r18, %r21; add.s64 %rd10, %rd2, %rd5; st.global.u32 [%rd10], %r22;\nEND:");
  constexpr uint32_t kRows = 96, kWidths[] = {384, 256, 64, 320, 448};
  std::vector<uint32_t> in(size_t{kRows} * 448), out(in.size());
  for (uint32_t& each : in) each = static_cast<uint32_t>(&each - in.data()) * 2654435761u;
  const AtOnce at_once;
  Session session(text);
  const uint32_t* from = session.allow(in, "in", false);
  uint32_t* to = session.allow(out, "out");
  const auto facts_of = [&](uint32_t width) {
    std::fill(out.begin(), out.end(), 0);
    const Shape3 shape{{width / 32, kRows / 8, 1}, {32, 8, 1}};
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(session.launch("k", shape, from, to, width, kRows).text, "");
    std::vector<uint32_t> wanted(out.size());
    for (uint32_t y = 1; y < kRows - 1; ++y) {
      for (uint32_t at = y * width + 1; at < (y + 1) * width - 1; ++at)
        wanted[at] = (in[at - 1] * 33 + in[at + 1]) ^ in[at - width];
    }
    EXPECT_EQ(out, wanted) << width;
    return compiled_facts(**session.image.kernel("k", {.row_lanes = 32}));
  };
  for (int i = 0; i < 3; ++i) {
    for (const uint32_t width : kWidths) facts_of(width);
  }
  for (const uint32_t width : {320u, 256u, 448u, 384u}) {
    const CompiledFacts before = facts_of(width), after = facts_of(width);
    EXPECT_EQ(after.later, before.later) << width;
    const uint64_t held = after.entered - before.entered - (after.missed - before.missed);
    EXPECT_GE(held, uint64_t{4} * (width / 32) * (kRows / 8)) << width;  // once per block
  }
}

// The distance between the local variables of two lanes is part of the code. It does not depend on
// the kernel that used the memory before.
TEST(CompiledVersions, AreThereAfterAKernelWithMoreLocalMemory) {
  if (!compiles()) GTEST_SKIP();
  std::string text = kernel_text(
      "u64 q, u32 n",
      ".local .align 4 .b8 own[40]; ld.param.u64 %rd1, [q]; ld.param.u32 %r9, [n];"
      "mov.u32 %r1, %tid.x; mov.u32 %r4, 0; mov.u64 %rd3, own; st.local.u32 [own], %r1;\n"
      "L: and.b32 %r2, %r4, 7; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd3, %rd2;"
      "ld.local.u32 %r3, [%rd2]; mad.lo.u32 %r3, %r3, 33, %r4; st.local.u32 [%rd2+4], %r3;"
      "add.u32 %r4, %r4, 1; setp.lt.u32 %p1, %r4, %r9; @%p1 bra L;"
      "mul.wide.u32 %rd4, %r1, 4; add.s64 %rd4, %rd1, %rd4; st.global.u32 [%rd4], %r3;");
  constexpr uint32_t kMore[] = {100, 200, 500, 1000};
  for (const uint32_t bytes : kMore) {
    const std::string other =
        kernel_text("u64 q", fmt::format(".local .align 4 .b8 own[{}]; ld.param.u64 %rd1, [q];"
                                         "mov.u32 %r1, %tid.x; st.local.u32 [own+16], %r1;"
                                         "mul.wide.u32 %rd4, %r1, 4; add.s64 %rd4, %rd1, %rd4;"
                                         "ld.local.u32 %r3, [own+16]; st.global.u32 [%rd4], %r3;",
                                         bytes));
    text += other.substr(other.find(".visible"));
    text.replace(text.rfind(" k("), 3, fmt::format(" k{}(", bytes));
  }
  const AtOnce at_once;
  Session session(text);
  std::vector<uint32_t> out(256), wanted;
  uint32_t* to = session.allow(out, "out");
  const auto facts_of = [&] {
    CompiledFacts all;
    for (const Variant& variant : kVariants) {  // one of them ran
      const CompiledFacts facts = compiled_facts(**session.image.kernel("k", variant));
      all.entered += facts.entered, all.missed += facts.missed;
    }
    return all;
  };
  const auto launch_k = [&] {
    EXPECT_EQ(session.launch("k", {{32, 1, 1}, {256, 1, 1}}, to, 12u).text, "");
    return facts_of();
  };
  CompiledFacts last = launch_k();
  for (const uint32_t bytes : kMore) {
    const std::string other = fmt::format("k{}", bytes);
    EXPECT_EQ(session.launch(other.c_str(), {{1, 1, 1}, {256, 1, 1}}, to).text, "");
    const CompiledFacts now = launch_k();
    EXPECT_EQ(now.missed, last.missed) << bytes;
    EXPECT_GE(now.entered - last.entered, 32u * 8) << bytes;  // once per warp
    last = now;
  }
  for (uint32_t lane = 0; lane < 256; ++lane) {
    uint32_t own[10] = {lane}, value = 0;
    for (uint32_t i = 0; i < 12; ++i) value = own[i % 8 + 1] = own[i % 8] * 33 + i;
    wanted.push_back(value);
  }
  EXPECT_EQ(out, wanted);
}

}  // namespace
}  // namespace kiln::engine
