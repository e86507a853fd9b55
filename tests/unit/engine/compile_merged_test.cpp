// SPDX-License-Identifier: Apache-2.0
// Where a branch became a mask in machine code, or a value is one for all lanes because it is for
// the least and the most of them, what if that does not hold half way? The interpreter goes on as
// if nothing had been computed.
#include <fmt/format.h>

#include "compile_case.h"

namespace kiln::engine {
namespace {

const std::string kBeforeMasks =
    ".shared .align 4 .b8 x[4096]; .shared .align 4 .b8 y[4096]; ld.param.u64 %rd1, [p];"
    "ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; mov.u32 %r10, %ctaid.x;"
    "mad.lo.u32 %r11, %r10, 512, %r1; mul.wide.u32 %rd3, %r11, 4; add.s64 %rd4, %rd1, %rd3;"
    "add.s64 %rd5, %rd2, %rd3; mov.u32 %r12, x; mov.u32 %r13, y; shl.b32 %r2, %r1, 2;"
    "add.u32 %r14, %r12, %r2; add.u32 %r15, %r13, %r2; ld.global.u32 %r16, [%rd4];"
    "mul.lo.u32 %r17, %r16, 3; st.shared.u32 [%r14], %r16; st.shared.u32 [%r15], %r17;\n";

void expect_same_masks(const std::string& body) {
  const std::string text = kernel_text("u64 p, u64 q, u32 n", body);
  for (uint32_t threads : {64u, 256u, 100u}) {
    const Ran compiled = run_compiled(text, {threads, 1, 1}, 100, "always", 100);
    const Ran interpreted = run_compiled(text, {threads, 1, 1}, 100, "0", 100);
    EXPECT_EQ(compiled.text, interpreted.text) << threads;
    EXPECT_EQ(compiled.out, interpreted.out) << threads << "\n" << body;
    if (compiles()) {
      EXPECT_GT(compiled.facts.entered, 0u);
    }
  }
}

// Behind a branch the predicate says something else than which lanes came.
TEST(CompiledMasks, OutliveTheirPredicate) {
  for (const char* barrier : {"bar.sync 0;", "st.shared.u32 [%r15], %r2;"}) {
    expect_same_masks(
        kBeforeMasks + "and.b32 %r20, %r16, 1; setp.eq.u32 %p1, %r20, 0; mov.u32 %r22, 7;" +
        barrier +
        "@%p1 bra T; and.b32 %r21, %r16, 2; setp.eq.u32 %p1, %r21, 0; add.u32 %r22, %r17, 5;"
        "add.u32 %r23, %r17, %r1; xor.b32 %r22, %r22, %r23;\n"
        "T: selp.u32 %r24, 100, 200, %p1; add.u32 %r25, %r22, %r24;"
        "st.global.u32 [%rd5], %r25;");
  }
}

// Two branches by the same predicate, which is written in between.
TEST(CompiledMasks, OfLoadsAreThoseOfTheirBranch) {
  expect_same_masks(
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r3, %tid.x; mov.u32 %r10, %ctaid.x;"
      "mad.lo.u32 %r11, %r10, 512, %r3; mul.wide.u32 %rd3, %r11, 4; add.s64 %rd4, %rd1, %rd3;"
      "add.s64 %rd5, %rd2, %rd3; ld.global.u32 %r16, [%rd4]; mov.u32 %r20, 7; mov.u32 %r22, 9;"
      "and.b32 %r30, %r16, 0x10000; setp.eq.u32 %p1, %r30, 0; @%p1 bra T;"
      "ld.global.u32 %r20, [%rd4+64];\nT: selp.u32 %r21, 1, 2, %p1; and.b32 %r30, %r16, 0x20000;"
      "setp.eq.u32 %p1, %r30, 0; @%p1 bra U; ld.global.u32 %r22, [%rd4+128];\n"
      "U: selp.u32 %r23, 3, 4, %p1; add.u32 %r24, %r20, %r21; add.u32 %r25, %r22, %r23;"
      "xor.b32 %r26, %r24, %r25; st.global.u32 [%rd5], %r26;");
}

// Something has been stored, a value has been taken over, and then it turns out that the warp is in
// two rows: all runs again from the branch.
TEST(CompiledMasks, LeaveNothingHalfDone) {
  for (const char* part :
       {"and.b32 %r24, %r20, 31;", "shr.u32 %r24, %r20, 5;", "max.u32 %r24, %r20, 40;",
        "div.u32 %r24, %r20, 300;", "rem.u32 %r24, %r20, 300;"}) {
    SCOPED_TRACE(part);
    expect_same_masks(
        kBeforeMasks +
        "add.u32 %r20, %r1, 16; st.shared.u32 [%r14], %r20; ld.shared.u32 %r20, [%r14];"
        "add.u32 %r22, %r16, 7; mov.u32 %r23, 1; bar.sync 0; st.shared.u32 [%r15], %r17;"
        "shl.b32 %r33, %r20, 2; add.u32 %r33, %r33, %r12; ld.shared.u32 %r34, [%r33];"
        "xor.b32 %r16, %r16, %r34; and.b32 %r30, %r16, 0x10000; setp.eq.u32 %p1, %r30, 0;"
        "@%p1 bra T; add.u32 %r22, %r22, 5;" +
        part +
        "add.u32 %r23, %r24, %r16;\nT: add.u32 %r25, %r22, %r23; st.global.u32 [%rd5], %r25;");
  }
}

// A handler is called behind the branch, for all lanes: of what was computed before, and of what
// the branch leads around.
TEST(CompiledMasks, CallHandlersForTheirLanes) {
  for (const char* part : {"", "and.b32 %r24, %r20, 31;", "div.u32 %r24, %r20, 300;"}) {
    SCOPED_TRACE(part);
    expect_same_masks(
        kBeforeMasks +
        "add.u32 %r20, %r1, 16; add.u32 %r22, %r16, 7; mov.u32 %r24, 1; mov.f32 %f3, 0f40400000;"
        "bar.sync 0; ld.shared.u32 %r34, [%r15]; and.b32 %r35, %r34, 1023; add.u32 %r35, %r35, 1;"
        "cvt.rn.f32.u32 %f1, %r35; add.f32 %f1, %f1, 0f3F800000; and.b32 %r30, %r16, 0x10000;"
        "setp.eq.u32 %p1, %r30, 0; @%p1 bra T; lg2.approx.f32 %f2, %f1;" +
        part +
        "mul.f32 %f4, %f2, %f1; sin.approx.f32 %f3, %f4; add.u32 %r22, %r22, %r24;\n"
        "T: mov.b32 %r25, %f3; xor.b32 %r25, %r25, %r22; mov.b32 %r26, %f1;"
        "add.u32 %r25, %r25, %r26; st.global.u32 [%rd5], %r25;");
  }
}

// The same of a load behind two branches to one place, whose memory is not where it was.
TEST(CompiledMasks, LeaveNothingHalfDoneBehindTwoBranches) {
  expect_same_masks(
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r3, %tid.x; mov.u32 %r10, %ctaid.x;"
      "mad.lo.u32 %r11, %r10, 512, %r3; mul.wide.u32 %rd3, %r11, 4; add.s64 %rd4, %rd1, %rd3;"
      "add.s64 %rd5, %rd2, %rd3; ld.global.u32 %r16, [%rd4]; mul.lo.u32 %r24, %r16, 77;"
      "and.b32 %r34, %r16, 0x40000; setp.eq.u32 %p3, %r34, 0; selp.b64 %rd8, %rd1, %rd2, %p3;"
      "and.b32 %r35, %r16, 255; mul.wide.u32 %rd6, %r35, 4; add.s64 %rd7, %rd8, %rd6;"
      "st.global.u32 [%rd5+24576], %r24; and.b32 %r33, %r16, 0x10000; setp.eq.u32 %p9, %r33, 0;"
      "@%p9 bra END; add.u32 %r24, %r24, 1; ld.global.u32 %r25, [%rd7+32768];"
      "and.b32 %r33, %r25, 65536; setp.eq.u32 %p8, %r33, 0; @!%p8 bra END;"
      "add.u32 %r26, %r24, %r25; st.global.u32 [%rd5], %r26;\nEND: ret;");
}

// The code of masks runs, and is not left again at once.
void expect_masks_stay(const std::string& body, const char* mode = "always") {
  const std::string text = kernel_text("u64 p, u64 q, u32 n", body);
  for (uint32_t threads : {64u, 256u}) {
    const Ran compiled = run_compiled(text, {threads, 1, 1}, 100, mode, 100);
    const Ran interpreted = run_compiled(text, {threads, 1, 1}, 100, "0", 100);
    EXPECT_EQ(compiled.text, interpreted.text) << threads;
    EXPECT_EQ(compiled.out, interpreted.out) << threads << "\n" << body;
    if (compiles()) {
      EXPECT_GT(compiled.facts.entered, 0u);
      EXPECT_LE(compiled.facts.missed, compiled.facts.entered / 2) << threads << "\n" << body;
    }
  }
}

// What lanes that go around a load have for an address does not matter: padding of a sparse row,
// or what is beyond the border of an image.
TEST(CompiledMasks, LanesThatGoAroundLoadNothing) {
  const char* const before =
      "LOOP: add.u32 %r20, %r1, %r19; and.b32 %r20, %r20, 1023; mul.wide.u32 %rd6, %r20, 4;"
      "add.s64 %rd7, %rd1, %rd6; ld.global.u32 %r21, [%rd7]; and.b32 %r22, %r21, 0x10000;"
      "setp.eq.u32 %p1, %r22, 0; and.b32 %r23, %r21, 255; selp.u32 %r24, 0x88000000, %r23, %p1;"
      "setp.lt.s32 %p2, %r24, 0; mul.wide.s32 %rd8, %r24, 4; add.s64 %rd9, %rd1, %rd8;"
      "shl.b32 %r25, %r24, 2; add.u32 %r25, %r25, %r12; @%p2 bra OUT;";
  const char* const behind =
      "\nOUT: add.u32 %r19, %r19, 7; setp.lt.u32 %p3, %r19, 200; @%p3 bra LOOP;"
      "cvt.u32.u64 %r30, %rd10; add.u32 %r18, %r18, %r30; st.global.u32 [%rd5], %r18;";
  for (const char* part :
       {"ld.global.u32 %r26, [%rd9]; add.u32 %r18, %r18, %r26;",
        "mul.wide.s32 %rd8, %r24, 4; add.s64 %rd9, %rd1, %rd8; ld.global.u32 %r26, [%rd9+4];"
        "add.u32 %r18, %r18, %r26;",
        "ld.shared.u32 %r26, [%r25]; add.u32 %r18, %r18, %r26;",
        "ld.shared.u32 %r26, [%r25+4]; xor.b32 %r26, %r26, 3; add.u32 %r18, %r18, %r26;",
        "ld.global.u8 %r26, [%rd9+1]; add.u32 %r18, %r18, %r26;",
        "ld.global.u16 %r26, [%rd9]; add.u32 %r18, %r18, %r26;",
        "ld.global.u32 %r26, [%rd9]; and.b32 %r27, %r26, 2; setp.ne.u32 %p4, %r27, 0;"
        "@%p4 bra OUT; ld.global.u32 %r27, [%rd9+8]; add.u32 %r18, %r18, %r27;",
        "ld.global.u32 %r26, [%rd9]; add.u32 %r26, %r26, %r18; st.shared.u32 [%r25+1024], %r26;"}) {
    SCOPED_TRACE(part);
    expect_masks_stay(kBeforeMasks + "mov.u32 %r18, 0; mov.u32 %r19, 0; mov.u64 %rd10, 1;\n" +
                      before + part + behind);
  }
}

// Two branches, and no lane that goes by the first goes by the second: there is no memory where it
// would load.
TEST(CompiledMasks, NobodyLoadsBehindTwoBranches) {
  expect_same_masks(
      kBeforeMasks +
      "mov.u32 %r18, 0; mov.u32 %r19, 0; mov.u64 %rd11, 0;\n"
      "LOOP: add.u32 %r20, %r1, %r19; and.b32 %r20, %r20, 1023; mul.wide.u32 %rd6, %r20, 4;"
      "add.s64 %rd7, %rd1, %rd6; ld.global.u32 %r21, [%rd7]; and.b32 %r22, %r21, 0x10000;"
      "setp.eq.u32 %p1, %r22, 0; mul.wide.u32 %rd8, %r21, 4; add.s64 %rd9, %rd11, %rd8;"
      "@%p1 bra OUT; and.b32 %r23, %r21, 0x10000; setp.ne.u32 %p2, %r23, 0; @%p2 bra OUT;"
      "ld.global.u32 %r26, [%rd9]; add.u32 %r18, %r18, %r26;\n"
      "OUT: add.u32 %r19, %r19, 7; setp.lt.u32 %p3, %r19, 200; @%p3 bra LOOP;"
      "st.global.u32 [%rd5], %r18;");
}

// A pointer that moves serves stores of which the first never run, as in a loop that was unrolled.
TEST(CompiledMasks, OneOfManyStoresIsEnough) {
  expect_masks_stay(
      kBeforeMasks +
      "ld.param.u32 %r30, [n]; mov.u32 %r19, 0; and.b32 %r31, %r16, 15;"
      "mul.wide.u32 %rd6, %r31, 4096;\n"
      "LOOP: add.s64 %rd7, %rd5, %rd6; setp.lt.u32 %p1, %r30, 1000; @%p1 bra FEW;"
      "st.global.u32 [%rd7], %r16; add.s64 %rd7, %rd7, 4; st.global.u32 [%rd7], %r16;"
      "add.s64 %rd7, %rd7, 4;\nFEW: and.b32 %r20, %r16, %r19; setp.eq.u32 %p2, %r20, 0;"
      "mov.u32 %r21, 0; @%p2 bra OUT; add.u32 %r21, %r16, %r19;\n"
      "OUT: st.global.u32 [%rd7], %r21; add.u32 %r19, %r19, 1;"
      "setp.lt.u32 %p3, %r19, 20; @%p3 bra LOOP;");
}

// A loop over the elements of an image, of which each takes its index apart.
TEST(CompiledRows, MayBeTakenApartInLoops) {
  const char* const head =
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r30, [n]; mov.u32 %r3, %tid.x;"
      "mov.u32 %r10, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %nctaid.x;"
      "mad.lo.u32 %r11, %r10, %r4, %r3; mul.lo.u32 %r6, %r4, %r5; sub.u32 %r31, %r30, 36;"
      "mov.u32 %r18, 0;\n";
  for (const char* by : {"64", "96", "300", "7", "%r31"}) {
    for (const char* stores : {"st.global.u32 [%rd7], %r23;", "add.u32 %r18, %r18, %r23;"}) {
      SCOPED_TRACE(fmt::format("{} {}", by, stores));
      expect_same_masks(
          head +
          fmt::format("LOOP: div.u32 %r20, %r11, {0}; rem.u32 %r21, %r11, {0};"
                      "mad.lo.u32 %r22, %r20, 40, %r21; and.b32 %r22, %r22, 4095;"
                      "mul.wide.u32 %rd5, %r22, 4; add.s64 %rd6, %rd1, %rd5;"
                      "ld.global.u32 %r23, [%rd6]; mul.wide.u32 %rd5, %r11, 4;"
                      "add.s64 %rd7, %rd2, %rd5; add.u32 %r23, %r23, %r20; {1}"
                      "add.u32 %r11, %r11, %r6; setp.lt.u32 %p1, %r11, 4000; @%p1 bra LOOP;"
                      "mad.lo.u32 %r11, %r10, %r4, %r3; mul.wide.u32 %rd5, %r11, 4;"
                      "add.s64 %rd7, %rd2, %rd5; add.u32 %r18, %r18, %r11;"
                      "setp.eq.u32 %p2, %r18, 0; @%p2 bra END; st.global.u32 [%rd7+20000], %r18;\n"
                      "END: ret;",
                      by, stores));
    }
  }
}

// At the border of a tile some lanes load what is beyond it, and at the border of the image some of
// these take something else.
TEST(CompiledMasks, MayBeInsideOfOthers) {
  const char* const before =
      "mov.u32 %r18, 3; mov.u32 %r19, 5; bar.sync 0; ld.shared.u32 %r20, [%r15];"
      "and.b32 %r21, %r20, 0x30000; setp.eq.u32 %p1, %r21, 0; and.b32 %r22, %r20, 0x50000;"
      "setp.eq.u32 %p2, %r22, 0; and.b32 %r23, %r20, 0x90000; setp.ne.u32 %p3, %r23, 0;"
      "mov.u32 %r25, %r20;";
  for (const char* part :
       {"@%p1 bra OUT; mov.u32 %r25, %r17; @%p2 bra IN; ld.global.u32 %r25, [%rd4+64];\n"
        "IN: st.shared.u32 [%r14+1024], %r25;\nOUT: ",
        "@!%p1 bra OUT; @%p2 bra IN; ld.global.u32 %r25, [%rd4+64];\n"
        "IN: st.shared.u32 [%r14+1024], %r25; mov.u32 %r25, 7;\nOUT: ",
        "@%p1 bra OUT; mov.u32 %r26, %r17; @!%p2 bra IN; ld.global.u32 %r26, [%rd4+64];"
        "add.u32 %r26, %r26, 1;\nIN: add.u32 %r18, %r26, %r20;\nOUT: ",
        "@%p1 bra OUT; mov.u32 %r26, %r17; @%p2 bra IN; mov.u32 %r27, 9; @%p3 bra INNER;"
        "ld.global.u32 %r27, [%rd4+64];\nINNER: add.u32 %r26, %r27, 1; xor.b32 %r26, %r26, %r1;\n"
        "IN: add.u32 %r18, %r26, %r20;\nOUT: ",
        "@%p1 bra OUT; mov.u32 %r26, %r17; @%p2 bra IN; add.u32 %r26, %r26, 1;\n"
        "IN: mov.u32 %r27, %r26; @!%p3 bra OUT; add.u32 %r18, %r27, %r20;\nOUT: ",
        "@%p1 bra OUT; @%p2 bra IN; ld.global.u32 %r19, [%rd4+64];\n"
        "IN: add.u32 %r18, %r20, 1;\nOUT: ",
        "@%p1 bra OUT; @%p2 bra OUT; mov.u32 %r26, %r17; @%p3 bra IN;"
        "ld.global.u32 %r26, [%rd4+64];\nIN: st.shared.u32 [%r14+1024], %r26;\nOUT: "}) {
    SCOPED_TRACE(part);
    expect_same_masks(kBeforeMasks + before + part +
                      "bar.sync 0; ld.shared.u32 %r30, [%r14+1024]; add.u32 %r31, %r18, %r19;"
                      "add.u32 %r31, %r31, %r25; xor.b32 %r31, %r31, %r30;"
                      "st.global.u32 [%rd5], %r31;");
  }
}

// One way around a condition, for whole warps, as of `a || b`.
TEST(CompiledMasks, MayBeGoneAround) {
  for (const char* part :
       {"st.global.u32 [%rd5], %r17;", "add.u32 %r17, %r17, 5; st.global.u32 [%rd5], %r17;",
        "ld.global.u32 %r17, [%rd4+64]; add.u32 %r18, %r17, 5;",
        "add.u32 %r18, %r18, 5; xor.b32 %r18, %r18, %r17; add.u32 %r18, %r18, 9;"
        "mul.lo.u32 %r18, %r18, 3; add.u32 %r18, %r18, 9; xor.b32 %r18, %r18, %r17;"
        "add.u32 %r18, %r18, 11; mul.lo.u32 %r18, %r18, 5; add.u32 %r18, %r18, 9;"}) {
    SCOPED_TRACE(part);
    for (const char* by : {"%p2", "!%p2"}) {
      expect_same_masks(kBeforeMasks +
                        "mov.u32 %r18, 3; bar.sync 0; ld.shared.u32 %r19, [%r15];"
                        "and.b32 %r20, %r1, 32; setp.eq.u32 %p1, %r20, 0; @%p1 bra BODY;"
                        "and.b32 %r21, %r19, 0x10000; setp.eq.u32 %p2, %r21, 0; @" +
                        by + " bra OUT;\nBODY: " + part +
                        "\nOUT: st.global.u32 [%rd5+16384], %r18;");
    }
  }
}

// Votes of all lanes, of some of them, and in a warp that is not whole.
TEST(CompiledVotes, AreThoseOfTheInterpreter) {
  for (const char* members : {"-1", "%r28", "0x0000ffff"}) {
    for (const char* votes : {"%p1", "!%p1", "%p2", "%p3", "!%p3"}) {
      SCOPED_TRACE(fmt::format("{} {}", members, votes));
      expect_same_masks(
          kBeforeMasks +
          "mov.u32 %r18, 0; mov.u32 %r19, 0; mov.u32 %r28, %r10; sub.u32 %r28, %r28, %r10;"
          "not.b32 %r28, %r28; bar.sync 0;\n" +
          fmt::format(
              "LOOP: add.u32 %r20, %r16, %r19; and.b32 %r21, %r20, 0x30000;"
              "setp.eq.u32 %p1, %r21, 0; setp.lt.u32 %p2, %r1, 40; setp.lt.u32 %p3, %r19, 30;"
              "vote.sync.ballot.b32 %r22, {1}, {0}; vote.sync.all.pred %p4, {1}, {0};"
              "vote.sync.any.pred %p5, {1}, {0}; vote.sync.uni.pred %p6, {1}, {0};"
              "popc.b32 %r23, %r22; selp.u32 %r24, 1, 0, %p4; selp.u32 %r25, 2, 0, %p5;"
              "selp.u32 %r26, 4, 0, %p6; add.u32 %r18, %r18, %r22; xor.b32 %r18, %r18, %r23;"
              "add.u32 %r18, %r18, %r24; add.u32 %r18, %r18, %r25; add.u32 %r18, %r18, %r26;"
              "@%p4 bra OUT; mul.lo.u32 %r18, %r18, 5;\n"
              "OUT: add.u32 %r19, %r19, 7; setp.lt.u32 %p7, %r19, 100; @%p7 bra LOOP;"
              "st.global.u32 [%rd5], %r18;",
              members, votes));
    }
  }
}

// As a list is made of what some lanes have: the first asks for room, and the others follow.
TEST(CompiledVotes, MakeAListOfWhatSomeLanesHave) {
  expect_same_masks(
      kBeforeMasks +
      "mov.u32 %r19, 0; mov.u32 %r27, %laneid; mov.u32 %r28, 1; shl.b32 %r28, %r28, %r27;"
      "sub.u32 %r28, %r28, 1; and.b32 %r29, %r1, 0xffffffe0; mad.lo.u32 %r29, %r10, 512, %r29;"
      "bar.sync 0;\nLOOP: add.u32 %r20, %r16, %r19; and.b32 %r21, %r20, 0x30000;"
      "setp.eq.u32 %p1, %r21, 0; vote.sync.ballot.b32 %r22, %p1, -1; popc.b32 %r23, %r22;"
      "and.b32 %r24, %r22, %r28; popc.b32 %r25, %r24; add.u32 %r26, %r29, %r25;"
      "@!%p1 bra OUT; mul.wide.u32 %rd6, %r26, 4; add.s64 %rd7, %rd2, %rd6;"
      "st.global.u32 [%rd7], %r20;\nOUT: shfl.sync.idx.b32 %r30, %r20, 0, 31, -1;"
      "add.u32 %r16, %r16, %r30; add.u32 %r16, %r16, %r23; add.u32 %r19, %r19, 7;"
      "setp.lt.u32 %p7, %r19, 100; @%p7 bra LOOP; st.global.u32 [%rd5+32768], %r16;");
}

// Half of a warp is in one row and half in the next, and a branch depends on the row.
TEST(CompiledRows, AreOnesOfAllLanes) {
  std::string loads, mixes, sum;
  for (uint32_t i = 0; i < 10; ++i) {
    loads += fmt::format("ld.global.u32 %r{}, [%rd4+{}];", 22 + i, 4 + i * 4);
    mixes += fmt::format("xor.b32 %r{0}, %r{0}, %r{1}; add.u32 %r{0}, %r{0}, %r17;", 22 + i,
                         22 + (i + 3) % 10);
    sum += fmt::format("add.u32 %r34, %r34, %r{};", 22 + i);
  }
  for (const char* row : {"div.u32 %r32, %r20, 1000;", "shr.u32 %r32, %r20, 5;"}) {
    SCOPED_TRACE(row);
    expect_same_masks(kBeforeMasks + "add.u32 %r20, %r1, 976; st.shared.u32 [%r14], %r20;" +
                      "ld.shared.u32 %r20, [%r14]; mov.u32 %r35, 0;" + loads +
                      "\nLOOP: bar.sync 0;" + row +
                      "and.b32 %r33, %r32, 1; setp.eq.u32 %p1, %r33, 0;" + mixes + mixes + mixes +
                      "@%p1 bra OUT;" + mixes + mixes + "membar.gl; xor.b32 %r31, %r31, 85;\n" +
                      "OUT: mov.u32 %r34, 1;" + sum + "st.global.u32 [%rd5], %r34;" +
                      "add.u32 %r35, %r35, 1; setp.lt.u32 %p2, %r35, 20; @%p2 bra LOOP;");
  }
}

// The same steps in rows of another length are other values: %tid.y rises by one from row to row,
// whether a row has 8 lanes or 16.
TEST(CompiledRows, AreAsLongAsTheBlocksAre) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y;"
      "mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1; mov.u32 %r5, %ctaid.x;"
      "mov.u32 %r13, %ntid.y; mul.lo.u32 %r13, %r13, %r3; mad.lo.u32 %r4, %r5, %r13, %r4;"
      "mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;"
      "mul.lo.u32 %r6, %r2, 5; ld.global.u32 %r7, [%rd4]; and.b32 %r8, %r7, 1;"
      "add.u32 %r9, %r7, %r1; setp.eq.u32 %p1, %r8, 0; @%p1 bra S;"
      "add.u32 %r9, %r9, %r6; mul.lo.u32 %r10, %r9, 3; atom.global.xor.b32 %r11, [%rd5], %r10;"
      "add.u32 %r9, %r9, %r11; S: mul.lo.u32 %r12, %r9, 5; st.global.u32 [%rd5], %r12;");
  constexpr KilnDim3 kBlocks[] = {{8, 8, 1}, {16, 16, 1}, {32, 4, 1}, {8, 4, 1}, {32, 8, 1}};
  for (const KilnDim3& first : kBlocks) {
    for (const KilnDim3& then : kBlocks) {
      std::vector<uint32_t> in = numbers(5), out[2];
      for (const bool compiled : {false, true}) {
        setenv("KILN_ENGINE_COMPILE", compiled ? "always" : "0", 1);
        Session session(text);
        for (const KilnDim3& block : {first, then}) {
          out[compiled].assign(kWords, 0);
          session.regions.clear();
          EXPECT_EQ(session
                        .launch("k", {{3, 1, 1}, block}, session.allow(in, "in", false),
                                session.allow(out[compiled], "out"), 0)
                        .text,
                    "");
        }
        unsetenv("KILN_ENGINE_COMPILE");
      }
      EXPECT_EQ(out[0], out[1]) << first.x << ", then " << then.x;
    }
  }
}

}  // namespace
}  // namespace kiln::engine
