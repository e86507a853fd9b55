// SPDX-License-Identifier: Apache-2.0
// Do compiled stretches do what the interpreter does? Single shapes of loops, addresses and stores
// whose outcome is known.
#include <fmt/format.h>

#include "compile_case.h"

namespace kiln::engine {
namespace {

// A count that ld.v2 brings is a scalar that no Op has as its own result: it was taken for the
// constant 0, which the frame holds there before the load.
TEST(Compiled, TakesNoLoadedScalarForAConstant) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; mov.u32 %r9, %ctaid.x;"
      "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd2, %rd3; mul.wide.u32 %rd5, %r9, 8;"
      "add.s64 %rd6, %rd1, %rd5; add.u32 %r2, %r1, 77;\n"
      "ld.global.v2.u32 {%r3, %r4}, [%rd6+64];\n"
      "and.b32 %r5, %r2, 255; shl.b32 %r6, %r5, %r4; xor.b32 %r7, %r6, %r2; add.u32 %r8, %r7, 5;"
      "mul.lo.u32 %r10, %r8, %r3; sub.u32 %r11, %r10, %r2; shr.u32 %r12, %r11, %r4;"
      "add.u32 %r13, %r12, %r5; or.b32 %r14, %r13, %r8; st.global.u32 [%rd4], %r14;");
  for (KilnDim3 block : {KilnDim3{64, 1, 1}, KilnDim3{16, 4, 1}}) {
    const Ran compiled = run_compiled(text, block, 0, "always", 3);
    EXPECT_EQ(compiled.out, run_compiled(text, block, 0, "0", 3).out);
    if (compiles()) {
      EXPECT_GT(compiled.facts.entered - compiled.facts.missed, 0u);
    }
  }
}

// Of a signed type, as __ldg of an int has it: all of the loop is compiled.
TEST(Compiled, LoadsSignedIntegers) {
  for (const char* type : {"s32", "u32", "b32"}) {
    SCOPED_TRACE(type);
    const std::string text = kernel_text(
        "u64 p, u64 q, u32 n",
        fmt::format(
            "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x;"
            "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;"
            "mov.u32 %r2, 0; mov.u32 %r3, 0;\n"
            "L: ld.global.nc.{0} %r4, [%rd4]; and.b32 %r5, %r4, 255; mul.wide.u32 %rd6, %r5, 4;"
            "add.s64 %rd7, %rd1, %rd6; ld.global.{0} %r6, [%rd7]; add.s32 %r3, %r3, %r6;"
            "add.s64 %rd4, %rd4, 64; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9; @%p1 bra L;\n"
            "st.global.{0} [%rd5], %r3;",
            type));
    const Ran compiled = run_compiled(text, {64, 1, 1}, 0, "always", 3);
    EXPECT_EQ(compiled.out, run_compiled(text, {64, 1, 1}, 0, "0", 3).out);
    if (compiles()) {
      EXPECT_EQ(compiled.facts.compiled, compiled.facts.stretches);
      EXPECT_GT(compiled.facts.entered - compiled.facts.missed, 0u);
    }
  }
}

// To registers of 64 bits, as indices are.
TEST(Compiled, LoadsToWiderRegisters) {
  for (const char* type : {"u8", "s8", "u16", "s16", "u32", "s32", "b32"}) {
    SCOPED_TRACE(type);
    const std::string text = kernel_text(
        "u64 p, u64 q, u32 n",
        fmt::format(
            "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x;"
            "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;"
            "mov.u32 %r2, 0; mov.u64 %rd8, 0; and.b32 %r3, %r1, 1; setp.eq.u32 %p2, %r3, 0;\n"
            "L: ld.global.{0} %rd6, [%rd4]; @%p2 ld.global.{0} %rd6, [%rd4+64];"
            "and.b64 %rd7, %rd6, 255; shl.b64 %rd7, %rd7, 2; add.s64 %rd7, %rd7, %rd1;"
            "ld.global.{0} %rd7, [%rd7]; add.s64 %rd8, %rd8, %rd7; sub.s64 %rd8, %rd8, %rd6;"
            "add.s64 %rd4, %rd4, 64; add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 9; @%p1 bra L;\n"
            "mov.b64 {{%r4, %r5}}, %rd8; xor.b32 %r4, %r4, %r5; st.global.u32 [%rd5], %r4;",
            type));
    const Ran compiled = run_compiled(text, {64, 1, 1}, 0, "always", 3);
    EXPECT_EQ(compiled.text, "");
    EXPECT_EQ(compiled.out, run_compiled(text, {64, 1, 1}, 0, "0", 3).out);
    if (compiles()) {
      EXPECT_GT(compiled.facts.entered - compiled.facts.missed, 0u);
    }
  }
}

// Up to the last element of an array: lanes that have left the loop would read behind it. One
// element too many is a fault.
TEST(Compiled, LoadsUpToTheEndOfAnArray) {
  for (const char* type : {"u32 %r4", "v2.u32 {%r4, %r6}", "f64 %fd1"}) {
    const bool is_wide = std::string_view(type) != "u32 %r4", is_real = type[0] == 'f';
    const uint32_t bytes = is_wide ? 8 : 4;
    for (uint32_t count : {1u, 33u, 63u, 64u, 70u, 95u, 97u, 191u, 200u}) {
      for (uint32_t more : {0u, 1u}) {
        SCOPED_TRACE(fmt::format("{} {} {}", type, count, more));
        const std::string text = kernel_text(
            "u64 p, u64 q, u32 n",
            fmt::format("ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x;"
                        "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd5, %rd2, %rd3; mov.u32 %r2, %r1;"
                        "mul.wide.u32 %rd4, %r1, {1}; add.s64 %rd4, %rd1, %rd4;"
                        "mov.u32 %r3, 0; mov.u32 %r6, 0; mov.f64 %fd2, 0d0000000000000000;"
                        "setp.ge.u32 %p1, %r2, {2}; @%p1 bra E;\n"
                        "L: ld.global.{0}, [%rd4+{3}]; {4} add.s64 %rd4, %rd4, {5};"
                        "add.u32 %r2, %r2, 64; setp.lt.u32 %p1, %r2, {2}; @%p1 bra L;\n"
                        "E: mov.b64 {{%r7, %r8}}, %fd2; xor.b32 %r7, %r7, %r8;"
                        "add.u32 %r3, %r3, %r7; st.global.u32 [%rd5], %r3;",
                        type, bytes, count + more, (kWords * 4 - count * bytes),
                        is_real ? "add.f64 %fd2, %fd2, %fd1;"
                                : "mad.lo.u32 %r3, %r3, 7, %r4; add.u32 %r3, %r3, %r6;",
                        bytes * 64));
        const Ran compiled = run_compiled(text, {64, 1, 1}, 0, "always", 3);
        const Ran interpreted = run_compiled(text, {64, 1, 1}, 0, "0", 3);
        EXPECT_EQ(compiled.text, interpreted.text);
        EXPECT_EQ(compiled.text.empty(), more == 0);
        EXPECT_EQ(compiled.out, interpreted.out);
        if (compiles() && count >= 64) {
          EXPECT_GT(compiled.facts.entered, 0u);
        }
      }
    }
  }
}

// What a branch keeps some lanes from is still kept from them where machine code stops before it,
// because not all of it may be written.
TEST(Compiled, StoresForNoOtherLanesAtABorder) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      ".shared .align 4 .b8 tile[1024]; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];"
      "ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r8, %ntid.x;"
      "mad.lo.u32 %r3, %r2, %r8, %r1; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3;"
      "add.s64 %rd5, %rd2, %rd3; shl.b32 %r4, %r1, 2; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;\n"
      "ld.global.u32 %r6, [%rd4]; add.u32 %r7, %r6, 3; xor.b32 %r7, %r7, %r3;"
      "st.shared.u32 [%r5], %r7; mul.lo.u32 %r10, %r7, 77; add.u32 %r11, %r10, %r6;"
      "ld.shared.u32 %r12, [%r5]; add.u32 %r11, %r11, %r12; sub.u32 %r14, %r12, %r7;"
      "add.u32 %r14, %r14, %r3; setp.ge.u32 %p1, %r14, %r9;"
      "@%p1 bra S; st.global.u32 [%rd5], %r11;\nS: add.u32 %r13, %r11, %r12;");
  for (uint32_t n : {150u, 133u, 64u}) {
    const Ran compiled = run_compiled(text, {64, 1, 1}, n, "always", 5, n);
    EXPECT_EQ(compiled.text, "");
    EXPECT_EQ(compiled.out, run_compiled(text, {64, 1, 1}, n, "0", 5, n).out);
  }
}

// Of stores that stand together none has happened where machine code stops before one of them.
TEST(Compiled, LosesNoStoreBeforeOneThatItCannotDo) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      ".shared .align 4 .b8 tile[2048]; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];"
      "ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;"
      "mad.lo.u32 %r3, %r2, 64, %r1; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3;"
      "shl.b32 %r4, %r1, 2; mov.u32 %r5, tile; add.u32 %r5, %r5, %r4;"
      "ld.global.u32 %r6, [%rd4]; mul.lo.u32 %r14, %r1, 37; and.b32 %r14, %r14, 63;"
      "mad.lo.u32 %r14, %r2, 64, %r14; mul.wide.u32 %rd5, %r14, 8; add.s64 %rd6, %rd2, %rd5;\n"
      "add.u32 %r7, %r6, 3; st.shared.u32 [%r5], %r7; setp.gt.u32 %p1, %r9, 1000;"
      "xor.b32 %r7, %r7, %r3; @%p1 bra S; add.u32 %r7, %r7, 1;\n"
      "S: st.shared.u32 [%r5], %r7; st.global.u32 [%rd6], %r6; add.u32 %r8, %r7, %r6;"
      "ld.shared.u32 %r12, [%r5]; st.global.u32 [%rd6+4], %r12; add.u32 %r13, %r12, %r8;");
  const Ran compiled = run_compiled(text, {64, 1, 1}, 7, "always", 5);
  EXPECT_EQ(compiled.text, "");
  EXPECT_EQ(compiled.out, run_compiled(text, {64, 1, 1}, 7, "0", 5).out);
}

// Several lanes at one place, with and without what was there before.
TEST(Compiled, CountsInSharedMemory) {
  const std::string index =
      ".shared .align 4 .b8 own[1024]; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];"
      "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.y; mad.lo.u32 %r1, %r3, %r2, "
      "%r1; mov.u32 %r4, own; shl.b32 %r5, %r1, 2; add.u32 %r5, %r4, %r5; st.shared.u32 [%r5], %r1;"
      "mov.u32 %r11, 0; mov.u32 %r6, %r1; bar.sync 0;\n";
  const std::string end =
      "bar.sync 0; ld.shared.u32 %r12, [%r5]; xor.b32 %r12, %r12, %r11; mov.u32 %r13, %ctaid.x;"
      "mad.lo.u32 %r13, %r13, 256, %r1; mul.wide.u32 %rd5, %r13, 4; add.s64 %rd6, %rd2, %rd5;"
      "st.global.u32 [%rd6], %r12;";
  for (const char* what : {"add.u32", "and.b32", "or.b32", "xor.b32", "add.s32"}) {
    const std::string count = fmt::format(
        "mul.wide.u32 %rd3, %r6, 4; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r7, [%rd4];"
        "and.b32 %r8, %r7, 15; shl.b32 %r8, %r8, 2; add.u32 %r9, %r4, %r8;"
        "atom.shared.{} %r10, [%r9], %r7;",
        what);
    const std::string loop =
        "L: " + count + "add.u32 %r6, %r6, 256; setp.lt.u32 %p1, %r6, 4096; @%p1 bra L;\n";
    const std::string keeps = count + "xor.b32 %r11, %r11, %r10; add.u32 %r6, %r6, 64;" + count +
                              "sub.u32 %r11, %r11, %r10;\n";
    for (const std::string& body : {loop, keeps}) {
      const std::string text = kernel_text("u64 p, u64 q, u32 n", index + body + end);
      for (KilnDim3 block : kShapes) {
        const Ran compiled = run_compiled(text, block, 0, "always", 5);
        EXPECT_EQ(compiled.out, run_compiled(text, block, 0, "0", 5).out)
            << what << " in " << block.x;
        if (compiles()) {
          EXPECT_GT(compiled.facts.entered - compiled.facts.missed, 0u);
        }
      }
    }
  }
}

// f64 in loops: numbers, infinities that become NaNs, and NaNs with bits of their own, which only
// the interpreter keeps.
TEST(Compiled, ComputesWithDoubles) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u64 %rd9, [q]; mov.u32 %r1, %tid.x;"
      "mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.y; mad.lo.u32 %r1, %r3, %r2, %r1;"
      "mov.u32 %r9, %ctaid.x; mad.lo.u32 %r4, %r9, 256, %r1; mul.wide.u32 %rd3, %r4, 8;"
      "add.s64 %rd4, %rd2, %rd3; mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd1, %rd5;"
      "ld.param.u32 %r8, [n]; mov.u32 %r5, 0; cvt.rn.f64.u32 %fd1, %r1; mov.f64 %fd2, %fd1;\n"
      "L: ld.global.f32 %f1, [%rd6]; ld.global.u32 %r6, [%rd6+4096]; setp.eq.u32 %p1, %r8, 0;"
      "cvt.f64.f32 %fd3, %f1; cvt.rn.f64.s32 %fd4, %r6; selp.f64 %fd3, %fd3, %fd4, %p1;"
      "fma.rn.f64 %fd1, %fd3, %fd4, %fd1; mul.rn.f64 %fd5, %fd2, %fd2; sub.rn.f64 %fd5, %fd5, %fd1;"
      "abs.f64 %fd6, %fd5; sqrt.rn.f64 %fd6, %fd6; max.f64 %fd2, %fd6, %fd4; neg.f64 %fd7, %fd2;"
      "min.f64 %fd2, %fd7, %fd1; div.rn.f64 %fd2, %fd2, %fd4; setp.gt.f64 %p2, %fd2, %fd1;"
      "selp.f64 %fd2, %fd1, %fd2, %p2; cvt.rzi.s32.f64 %r7, %fd2; cvt.rn.f32.f64 %f2, %fd2;"
      "add.s64 %rd6, %rd6, 4; add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 40; @%p1 bra L;\n"
      "mov.b32 %r10, %f2; xor.b32 %r7, %r7, %r10; cvt.u64.u32 %rd7, %r7; mov.b64 %rd8, %fd2;"
      "xor.b64 %rd7, %rd7, %rd8; mov.b64 %rd8, %fd1; add.s64 %rd7, %rd7, %rd8;"
      "st.global.u64 [%rd4], %rd7;");
  for (KilnDim3 block : kShapes) {
    for (uint32_t n : {0u, 1u}) {
      const Ran compiled = run_compiled(text, block, n, "always", 9);
      EXPECT_EQ(compiled.text, "");
      EXPECT_EQ(compiled.out, run_compiled(text, block, n, "0", 9).out) << block.x;
      // Without NaNs from memory, machine code goes on to the end.
      if (compiles() && n == 1) {
        EXPECT_GT(compiled.facts.entered - compiled.facts.missed, 0u);
      }
    }
  }
}

// An image whose border is inside of warps, between them, or nowhere.
TEST(Compiled, ClampsBaseAndStepAtABorder) {
  std::string body =
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n]; mov.u32 %r2, %tid.x;"
      "mov.u32 %r3, %ntid.x; mov.u32 %r4, %ctaid.x; mad.lo.u32 %r5, %r4, %r3, %r2;"
      "mov.u32 %r6, %tid.y; sub.u32 %r7, %r1, 1; mov.f32 %f1, 0f00000000;"
      "setp.gt.s32 %p1, %r5, %r1; @%p1 bra END;\n";
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      body += fmt::format(
          "add.s32 %r8, %r5, {}; max.s32 %r9, %r8, 0; min.s32 %r9, %r9, %r7; add.s32 %r10, %r6, {};"
          "max.s32 %r11, 0, %r10; min.s32 %r11, %r7, %r11; mul.lo.s32 %r12, %r11, %r1;"
          "add.s32 %r13, %r9, %r12; mul.wide.s32 %rd3, %r13, 4; add.s64 %rd4, %rd1, %rd3;"
          "ld.global.f32 %f2, [%rd4]; fma.rn.f32 %f1, %f2, 0f3F000000, %f1;\n",
          dx, dy);
    }
  }
  body +=
      "mad.lo.u32 %r14, %r6, 256, %r5; mul.wide.u32 %rd5, %r14, 4; add.s64 %rd6, %rd2, %rd5;"
      "st.global.f32 [%rd6], %f1;\nEND: ret;";
  const std::string text = kernel_text("u64 p, u64 q, u32 n", body);
  for (uint32_t n : {1u, 7u, 33u, 64u, 120u}) {
    for (KilnDim3 block : kShapes) {
      const Ran compiled = run_compiled(text, block, n, "always", n);
      EXPECT_EQ(compiled.out, run_compiled(text, block, n, "0", n).out) << n << " in " << block.x;
      if (compiles()) {
        EXPECT_GT(compiled.facts.entered, 0u);
      }
    }
  }
}

// Lanes disagree at a branch whose predicate is written anew behind it, in the same code, and read
// by something that the interpreter runs.
TEST(Compiled, KeepsThePredicateOfABranch) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x;"
      "mov.u32 %r3, %tid.y; mad.lo.u32 %r1, %r3, %r2, %r1; mov.u32 %r4, %ctaid.x;"
      "mad.lo.u32 %r5, %r4, 256, %r1; mul.wide.u32 %rd3, %r5, 4; add.s64 %rd4, %rd1, %rd3;"
      "add.s64 %rd5, %rd2, %rd3; ld.global.u32 %r6, [%rd4]; mov.u32 %r7, 1;"
      "and.b32 %r8, %r5, 16; setp.eq.u32 %p1, %r8, 0; @!%p1 bra E;\n"
      "popc.b32 %r9, %r6; add.u32 %r7, %r7, %r9;\n"
      "E: setp.gt.u32 %p1, %r6, 1000; atom.global.add.u32 %r10, [%rd5+65536], %r6;"
      "@%p1 add.u32 %r7, %r7, 100; st.global.u32 [%rd5], %r7;");
  for (KilnDim3 block : kShapes) {
    const Ran compiled = run_compiled(text, block, 0, "always", 5);
    EXPECT_EQ(compiled.text, "");
    EXPECT_EQ(compiled.out, run_compiled(text, block, 0, "0", 5).out) << block.x;
    if (compiles()) {
      EXPECT_GT(compiled.facts.entered, 0u);
    }
  }
}

// Faults inside of compiled loops are the interpreter's.
TEST(Compiled, FindsTheSameFaults) {
  const char* bodies[] = {// Beyond the end in some round; at an address that is not aligned.
                          "add.s64 %rd3, %rd3, 4096;", "add.s64 %rd3, %rd3, 2;"};
  for (const char* body : bodies) {
    const std::string text = kernel_text(
        "u64 p, u64 q, u32 n",
        std::string("ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; "
                    "add.s64 %rd3, %rd1, %rd2; mov.f32 %f1, 0f00000000; mov.u32 %r2, 0;\n"
                    "L: ld.global.f32 %f2, [%rd3]; fma.rn.f32 %f1, %f2, %f2, %f1; ") +
            body + " add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 100; @%p1 bra L;");
    const Ran compiled = run_compiled(text, {64, 1, 1}, 0, "always", 1);
    EXPECT_EQ(compiled.text, run_compiled(text, {64, 1, 1}, 0, "0", 1).text);
    EXPECT_FALSE(compiled.text.empty());
  }
}

TEST(Compiled, EndlessLoopsReachTheStepLimit) {
  setenv("KILN_ENGINE_STEP_LIMIT", "1000000", 1);
  const std::string text =
      kernel_text("u64 p, u64 q, u32 n",
                  "mov.u32 %r1, 1; mov.f32 %f1, 0f3F800000;\n"
                  "L: fma.rn.f32 %f1, %f1, %f1, %f1; add.f32 %f2, %f1, %f1; mul.f32 %f3, %f2, %f1; "
                  "add.u32 %r1, %r1, 2; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;");
  const Ran ran = run_compiled(text, {32, 1, 1}, 0, "always", 1);
  unsetenv("KILN_ENGINE_STEP_LIMIT");
  EXPECT_NE(ran.text.find("Step limit reached"), std::string::npos) << ran.text;
  if (compiles()) {
    EXPECT_GT(ran.facts.entered, 0u);
  }
}

// Lanes of one warp go through loops of their own, with branches inside: what the others hold stays
// as it was. `group`: which lanes go together.
std::string loops_apart(const std::string& group) {
  return kernel_text(
      "u64 p, u64 q, u32 n",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x;"
      "mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.y; mad.lo.u32 %r1, %r3, %r2, %r1;"
      "mov.u32 %r4, %ctaid.x; mad.lo.u32 %r4, %r4, 256, %r1;\n"
      "mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; mov.f32 %f1, 0f3F800000;"
      "mov.u32 %r10, 0; mov.u32 %r11, %r4; mov.u64 %rd5, %rd3; setp.gt.u32 %p3, %r1, 11;" +
          group +
          "mov.u32 %r12, 7; setp.eq.u32 %p1, %r5, 0; @%p1 bra A; setp.eq.u32 %p1, %r5, 1;"
          "@%p1 bra B; bra J;\n"
          "A: ld.global.u32 %r6, [%rd4]; ld.global.f32 %f2, [%rd4+512]; add.u32 %r11, %r11, %r6;"
          "and.b32 %r7, %r10, 3; setp.eq.u32 %p2, %r7, 1; @%p2 bra A1;"
          "fma.rn.f32 %f1, %f2, %f1, %f2; xor.b32 %r12, %r12, %r6; bra A2;\n"
          "A1: cvt.u64.u32 %rd6, %r6; mad.wide.u32 %rd5, %r11, 3, %rd5; xor.b64 %rd5, %rd5, %rd6;"
          "setp.gt.u32 %p3, %r6, %r11;\n"
          "A2: add.s64 %rd4, %rd4, 4; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, %r9;"
          "@%p1 bra A; bra J;\n"
          "B: mov.u32 %r13, 0;\n"
          "B1: mad.lo.u32 %r14, %r13, 12, %r11; and.b32 %r14, %r14, 4095; mul.wide.u32 %rd7, %r14, "
          "4; add.s64 %rd7, %rd1, %rd7; ld.global.u32 %r6, [%rd7]; add.u32 %r11, %r11, %r6;"
          "add.u32 %r13, %r13, 1; setp.lt.u32 %p1, %r13, 5; @%p1 bra B1;"
          "min.u32 %r12, %r12, %r11; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, %r9;"
          "@%p1 bra B;\n"
          "J: mul.wide.u32 %rd8, %r4, 32; add.s64 %rd9, %rd2, %rd8; selp.u32 %r15, 5, 9, %p3;"
          "st.global.u32 [%rd9], %r11; st.global.u32 [%rd9+4], %r12; st.global.f32 [%rd9+8], %f1;"
          "st.global.u32 [%rd9+12], %r15; st.global.u64 [%rd9+16], %rd5;"
          "sub.s64 %rd4, %rd4, %rd1;"
          "st.global.u64 [%rd9+24], %rd4; st.global.u32 [%rd9+24], %r10;");
}

TEST(Compiled, RunsLoopsWithBranchesForSomeLanes) {
  const char* groups[] = {"and.b32 %r5, %r1, 3;",                         // every second lane
                          "shr.u32 %r5, %r1, 3; rem.u32 %r5, %r5, 3;",    // eight at a time
                          "mov.u32 %r5, %r1; min.u32 %r5, %r5, 1;",       // one, and all others
                          "and.b32 %r5, %r1, 1; add.u32 %r9, %r9, %r5;",  // another count
                          "and.b32 %r5, %r1, 1; and.b32 %r8, %r1, 6; add.u32 %r9, %r9, %r8;"};
  for (const char* group : groups) {
    const std::string text = loops_apart(group);
    for (KilnDim3 block : kShapes) {
      for (uint32_t n : {1u, 2u, 33u, 300u}) {
        const Ran compiled = run_compiled(text, block, n, "always", n);
        const Ran interpreted = run_compiled(text, block, n, "0", n);
        EXPECT_EQ(compiled.text, interpreted.text);
        EXPECT_TRUE(compiled.out == interpreted.out) << group << n;
        if (compiles() && n == 300) {
          EXPECT_GT(compiled.facts.masked, 0u) << group;
        }
      }
    }
  }
}

// An unrolled kernel is compiled in parts: its values would not have room in one.
TEST(CompiledRuns, OfManyOpsHaveParts) {
  std::string body = "ld.global.u32 %r10, [%rd4]; mov.u32 %r11, %r1;\n";
  for (int i = 0; i < 700; ++i)
    body += "mad.lo.u32 %r10, %r10, 5, %r11; xor.b32 %r11, %r11, %r10;\n";
  body += "st.global.u32 [%rd6], %r10; st.global.u32 [%rd6+4], %r11;";
  const std::string text = kernel_text("u64 p, u64 q, u32 n", kBegin + body);
  const Ran ran = run_compiled(text, {64, 1, 1}, 3, "always", 1);
  EXPECT_EQ(ran.text, "");
  EXPECT_EQ(ran.out, run_compiled(text, {64, 1, 1}, 3, "0", 1).out);
  if (compiles()) {
    EXPECT_GT(ran.facts.stretches, 2u);
    EXPECT_EQ(ran.facts.compiled, ran.facts.stretches);
  }
}

// A predicate that one pass wrote was the next one's input, so that its lanes left too early. Loops
// of more values than a pass has registers for, for each kind of CPU; the barrier keeps the store
// out of their code.
TEST(CompiledValues, PredicatesLastForAllPasses) {
  for (uint32_t values : {2u, 5u, 9u, 18u}) {
    SCOPED_TRACE(values);
    std::string body = "setp.gt.u32 %p2, %r9, 10; .reg .f32 %v<20>; mov.u32 %r10, 0;";
    for (uint32_t i = 0; i < values; ++i)
      body += fmt::format("ld.global.f32 %v{}, [%rd4+{}];", i, i * 4);
    body += "\nL: mov.pred %p1, %p2;";
    for (uint32_t i = 0; i < values; ++i)
      body += fmt::format("fma.rn.f32 %v{0}, %v{0}, %v{0}, 0f3F800000;", i);
    body += "mov.pred %p2, 0; @%p1 bra L; bar.sync 0;\n";
    for (uint32_t i = 0; i < values; ++i)
      body += fmt::format("mov.b32 %r11, %v{}; mad.lo.u32 %r10, %r10, 3, %r11;", i);
    expect_same_values(body + "selp.u32 %r11, 1, 2, %p2; st.global.v2.u32 [%rd6], {%r10, %r11};",
                       false);
  }
}

// One after the other on a thread: each writes its own numbers.
TEST(CompiledValues, BlocksGoOnAsTheNext) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      "ld.param.u64 %rd1, [q]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.x;"
      "mad.lo.u32 %r4, %r2, %r3, %r1; mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ctaid.y;"
      "mov.u32 %r7, %ctaid.z; mov.u32 %r8, %nctaid.x; mov.u32 %r9, %nctaid.y;"
      "mad.lo.u32 %r10, %r7, %r9, %r6; mad.lo.u32 %r10, %r10, %r8, %r5; mov.u32 %r11, %ntid.y;"
      "mul.lo.u32 %r11, %r11, %r3; mad.lo.u32 %r12, %r10, %r11, %r4; mul.wide.u32 %rd2, %r12, 4;"
      "add.s64 %rd3, %rd1, %rd2; mad.lo.u32 %r13, %r6, 100, %r5; mad.lo.u32 %r13, %r7, 10000, %r13;"
      "mad.lo.u32 %r13, %r4, 1000000, %r13; st.global.u32 [%rd3], %r13;");
  for (const char* compile : {"0", "1", "always"}) {
    for (KilnDim3 block : {KilnDim3{64, 1, 1}, {16, 16, 1}, {8, 2, 1}, {40, 1, 1}, {32, 2, 1}}) {
      setenv("KILN_ENGINE_COMPILE", compile, 1);
      setenv("KILN_ENGINE_THREADS", "1", 1);
      Session session(text);
      const uint32_t threads = block.x * block.y;
      std::vector<uint32_t> in(4, 0), out(size_t{threads} * 7 * 5 * 3, 0), expected;
      session.launch("k", {{7, 5, 3}, block}, session.allow(in, "in", false),
                     session.allow(out, "out"), 0u);
      unsetenv("KILN_ENGINE_COMPILE");
      unsetenv("KILN_ENGINE_THREADS");
      for (uint32_t i = 0; i < 7 * 5 * 3; ++i) {
        for (uint32_t t = 0; t < threads; ++t)
          expected.push_back(i % 7 + i / 7 % 5 * 100 + i / 35 * 10000 + t * 1000000);
      }
      EXPECT_EQ(out, expected) << compile << ", " << block.x;
    }
  }
}

// Columns of two arrays, in a loop that nvcc has unrolled: the next row's address is this one's and
// the stride. The stride was taken for the pointer that all addresses come from, so they had to lie
// in one region, and the code failed each time.
TEST(Compiled, FindsTheArraysOfAddressesThatRiseByARegister) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x;"
      "mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 128, %r1; mul.wide.u32 %rd3, %r3, 4;"
      "add.s64 %rd10, %rd1, %rd3; add.s64 %rd11, %rd2, %rd3; mul.wide.u32 %rd8, %r9, 256;"
      "mov.u32 %r4, 0; mov.u32 %r5, 1;\n"
      "L: ld.global.u32 %r6, [%rd10]; ld.global.u32 %r7, [%rd11]; mad.lo.u32 %r5, %r5, %r6, %r7;"
      "st.global.u32 [%rd11], %r5; add.s64 %rd12, %rd10, %rd8; add.s64 %rd13, %rd11, %rd8;"
      "ld.global.u32 %r10, [%rd12]; ld.global.u32 %r11, [%rd13]; mad.lo.u32 %r5, %r5, %r10, %r11;"
      "st.global.u32 [%rd13], %r5; add.s64 %rd10, %rd12, %rd8; add.s64 %rd11, %rd13, %rd8;"
      "add.u32 %r4, %r4, 2; setp.lt.u32 %p1, %r4, 8; @%p1 bra L;");
  for (const uint32_t threads : {128u, 32u, 100u}) {
    const Ran compiled = run_compiled(text, {threads, 1, 1}, 6, "always", 3);
    EXPECT_EQ(compiled.text, "");
    EXPECT_EQ(compiled.out, run_compiled(text, {threads, 1, 1}, 6, "0", 3).out) << threads;
    if (compiles() && threads % 32 == 0) {
      EXPECT_GT(compiled.facts.entered, 0u) << threads;
      EXPECT_EQ(compiled.facts.missed, 0u) << threads;
    }
  }
}

}  // namespace
}  // namespace kiln::engine
