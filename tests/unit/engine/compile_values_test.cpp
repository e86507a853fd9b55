// SPDX-License-Identifier: Apache-2.0
// Do compiled stretches do what the interpreter does? Operations on bits, more values than a CPU
// has registers, and addresses that lie apart.
#include <fmt/format.h>

#include "compile_case.h"
#include "engine/compile/plan.h"

namespace kiln::engine {
namespace {

TEST(CompiledValues, OperationsOnBits) {
  for (const char* what :
       {"popc.b32 %r11, %r10;", "clz.b32 %r11, %r10;", "brev.b32 %r11, %r10;",
        "bfind.u32 %r11, %r10;", "bfi.b32 %r11, %r10, %r12, 5, 9;",
        "bfi.b32 %r11, %r10, %r12, %r7, %r1;", "bfe.u32 %r11, %r10, %r7, 7;",
        "bfe.s32 %r11, %r10, 3, %r7;", "dp4a.u32.u32 %r11, %r10, %r12, %r7;",
        "dp4a.s32.s32 %r11, %r10, %r12, %r7;", "lop3.b32 %r11, %r10, %r12, %r7, 0x96;",
        "prmt.b32 %r11, %r10, %r12, 0x6143;", "shf.l.wrap.b32 %r11, %r10, %r12, %r7;"}) {
    expect_same_values(
        fmt::format("mov.u32 %r6, 0; mov.u32 %r7, %r1; mov.u32 %r12, 77;\n"
                    "L: ld.global.u32 %r10, [%rd4]; {} xor.b32 %r12, %r12, %r11;"
                    "mad.lo.u32 %r7, %r7, 3, %r11; add.s64 %rd4, %rd4, 4; add.u32 %r6, %r6, 1;"
                    "setp.lt.u32 %p1, %r6, %r9; @%p1 bra L;\n"
                    "st.global.u32 [%rd6], %r12; st.global.u32 [%rd6+4], %r7;",
                    what));
  }
}

// Registers of 16 bits: what is read from them, in machine code and by handlers that it calls.
TEST(CompiledValues, SmallIntegers) {
  for (const char* what :
       {"add.s16 %h3, %h1, %h2;",
        "sub.u16 %h3, %h1, %h2;",
        "mul.lo.s16 %h3, %h1, %h2;",
        "mad.lo.u16 %h3, %h1, %h2, %h4;",
        "and.b16 %h3, %h1, 255;",
        "or.b16 %h3, %h1, %h2;",
        "xor.b16 %h3, -3, %h1;",
        "not.b16 %h3, %h1;",
        "neg.s16 %h3, %h1;",
        "min.s16 %h3, %h1, %h2;",
        "max.s16 %h3, %h1, -5;",
        "min.u16 %h3, %h1, %h2;",
        "max.u16 %h3, %h1, 40000;",
        "shl.b16 %h3, %h1, 3;",
        "shl.b16 %h3, %h1, %r7;",
        "shr.u16 %h3, %h1, 9;",
        "shr.s16 %h3, %h1, 4;",
        "shr.s16 %h3, %h1, %r7;",
        "shr.u16 %h3, %h1, 40;",
        "mul.wide.s16 %r7, %h1, %h2; cvt.u16.u32 %h3, %r7;",
        "mul.wide.u16 %r7, %h1, 60000; cvt.u16.u32 %h3, %r7;",
        "setp.lt.s16 %p2, %h1, %h2; selp.b16 %h3, %h1, %h4, %p2;",
        "setp.gt.u16 %p2, %h1, 300; selp.b16 %h3, 7, %h1, %p2;",
        "setp.eq.s16 %p2, %h1, -3; selp.b16 %h3, %h1, 9, %p2;",
        "cvt.s32.s16 %r7, %h1; shr.u32 %r7, %r7, 12; cvt.u16.u32 %h3, %r7;",
        "cvt.u32.u16 %r7, %h1; mul.lo.u32 %r7, %r7, 3; cvt.s16.s32 %h3, %r7;",
        "cvt.u32.u8 %r7, %h1; cvt.u16.u32 %h3, %r7;",
        "cvt.u64.u16 %rd9, %h1; mul.lo.u64 %rd9, %rd9, 77777; shr.u64 %rd9, %rd9, 5;"
        "cvt.u16.u64 %h3, %rd9;",
        "cvt.s64.s16 %rd9, %h1; add.s64 %rd9, %rd9, -3; shr.u64 %rd9, %rd9, 30;"
        "cvt.s16.s64 %h3, %rd9; cvt.u32.u64 %r7, %rd9;",
        "cvt.u64.u16 %rd9, %h4; add.s64 %rd9, %rd9, %rd1; sub.s64 %rd9, %rd9, %rd1;"
        "cvt.u16.u64 %h3, %rd9;",
        "cvt.s16.s8 %h3, %h1;",
        "cvt.rn.f32.s16 %x1, %h1; cvt.rn.f32.u16 %x2, %h2; add.f32 %x1, %x1, %x2;"
        "cvt.rzi.s32.f32 %r7, %x1; cvt.u16.u32 %h3, %r7;",
        "mov.b32 %r7, {%h1, %h2}; mul.lo.u32 %r7, %r7, 17; mov.b32 {%h5, %h3}, %r7;",
        "mov.b64 %rd9, {%r10, %r6}; add.s64 %rd9, %rd9, %rd9; mov.b64 {%r7, %r8}, %rd9;"
        "cvt.u16.u32 %h3, %r8;"}) {
    SCOPED_TRACE(what);
    expect_same_values(fmt::format(
        ".reg .b16 %h<8>; .reg .f32 %x<4>; mov.u32 %r6, 0; mov.u32 %r7, %r1; mov.u16 %h4, 3;\n"
        "L: ld.global.u16 %h1, [%rd4]; ld.global.s16 %h2, [%rd4+2]; ld.global.u32 %r10, [%rd4];"
        "{} xor.b16 %h4, %h4, %h3; add.s64 %rd4, %rd4, 4; add.u32 %r6, %r6, 1;"
        "setp.lt.u32 %p1, %r6, %r9; @%p1 bra L;\n"
        "cvt.u32.u16 %r12, %h4; st.global.u32 [%rd6], %r12; st.global.u16 [%rd6+4], %h4;"
        "st.global.u8 [%rd6+7], %h4; st.global.u32 [%rd6+8], %r7;",
        what));
  }
}

// An integer and a float have one register, one after the other: the bits of a NaN are a number
// that is compared.
TEST(CompiledValues, IntegersWhereFloatsAreLater) {
  for (const char* what :
       {"setp.lt.s32 %p2, %r10, 0;", "setp.gt.u32 %p2, %r10, 0xffc00000;",
        "setp.eq.s32 %p2, %r10, %r7;", "setp.lt.s32 %p3, %r10, 0; and.pred %p2, %p3, %p3;"}) {
    SCOPED_TRACE(what);
    expect_same_values(fmt::format(
        ".reg .f32 %x<20>; ld.global.u32 %r10, [%rd4]; ld.global.f32 %x1, [%rd4+4];"
        "ld.global.f32 %x2, [%rd4+8]; or.b32 %r10, %r10, 0xff900000; mov.u32 %r7, %r10;"
        "bar.sync 0;\n{} selp.f32 %x3, 0f3F800000, 0f00000000, %p2; mul.f32 %r10, %x1, 0f3F000000;"
        "neg.f32 %x5, %x2; add.f32 %x6, %r10, %x5; bar.sync 0; st.global.f32 [%rd6], %x3;"
        "st.global.f32 [%rd6+4], %r10; st.global.f32 [%rd6+8], %x5; st.global.f32 [%rd6+12], %x6;",
        what));
  }
}

// Two or four registers at once, of lanes that are neighbours in memory: straight, in a loop whose
// address changes, and in shared memory.
TEST(CompiledValues, SeveralRegistersAtOnce) {
  const std::string begin =
      ".shared .align 16 .b8 tile[8192]; .reg .f32 %x<12>; mul.wide.u32 %rd7, %r1, 16;"
      "add.s64 %rd8, %rd1, %rd7; mul.wide.u32 %rd9, %r1, 8; add.s64 %rd10, %rd1, %rd9;"
      "mov.u32 %r7, tile; mad.lo.u32 %r8, %r1, 16, %r7; mad.lo.u32 %r10, %r1, 8, %r7;";
  const std::string behind =
      "add.f32 %x1, %x1, %x4; mul.f32 %x2, %x2, %x3; sub.f32 %x3, %x3, %x1; add.f32 %x4, %x4, %x2;";
  for (const char* what :
       {"ld.global.v4.f32 {%x1, %x2, %x3, %x4}, [%rd8];",
        "ld.global.v4.f32 {%x1, %x2, %x3, %x4}, [%rd8+32];",
        "ld.global.v2.f32 {%x1, %x2}, [%rd10]; ld.global.v2.f32 {%x3, %x4}, [%rd10+64];",
        "ld.global.v2.f32 {%x1, %x2}, [%rd8]; ld.global.v2.f32 {%x4, %x3}, [%rd8+8];",
        "ld.global.v4.f32 {%x1, %x2, %x2, %x4}, [%rd8]; mov.f32 %x3, 0f3F800000;",
        "ld.global.v4.f32 {%x1, _, %x3, %x4}, [%rd8]; mov.f32 %x2, %x1;",
        "ld.global.v4.f32 {%x1, %x2, %x3, %x4}, [%rd8];"
        "st.shared.v4.f32 [%r8], {%x4, %x3, %x2, %x1}; bar.sync 0;"
        "ld.shared.v2.f32 {%x1, %x2}, [%r10]; ld.shared.v2.f32 {%x3, %x4}, [%r10+16];"}) {
    SCOPED_TRACE(what);
    expect_same_values(begin + what + behind + "st.global.v4.f32 [%rd6], {%x1, %x2, %x3, %x4};");
    expect_same_values(begin + what + behind +
                       "st.global.v2.f32 [%rd6+8], {%x3, %x2}; st.global.v2.f32 [%rd6], {%x1, 7};");
  }
  expect_same_values(
      begin +
      "mov.f32 %x5, 0f00000000; mov.u32 %r6, 0;\n"
      "L: ld.global.v4.f32 {%x1, %x2, %x3, %x4}, [%rd8]; fma.rn.f32 %x5, %x1, %x2, %x5;"
      "fma.rn.f32 %x5, %x3, %x4, %x5; add.s64 %rd8, %rd8, 4096; add.u32 %r6, %r6, 1;"
      "setp.lt.u32 %p1, %r6, 3; @%p1 bra L;\n"
      "st.global.v4.f32 [%rd6], {%x5, %x4, %x5, %x1};");
}

TEST(CompiledValues, SmallFloats) {
  for (const char* what :
       {"add.f16 %h3, %h1, %h2;",
        "mul.bf16 %h3, %h1, %h2;",
        "fma.rn.f16 %h3, %h1, %h2, %h4;",
        "fma.rn.bf16 %h3, %h1, %h2, %h4;",
        "fma.rn.f16 %h3, %h1, %h1, %h2;",
        "cvt.f32.f16 %x1, %h1; cvt.rn.bf16.f32 %h3, %x1;",
        "cvt.f32.f16 %x1, %h1; mul.f32 %x1, %x1, %x1; cvt.rn.f16.f32 %h3, %x1;",
        "mov.b32 %r7, {%h1, %h2}; fma.rn.f16x2 %r7, %r7, %r10, %r7; mov.b32 {%h3, %h5}, %r7;",
        "mov.b32 %r7, {%h1, %h2}; fma.rn.bf16x2 %r7, %r10, %r7, %r7; mov.b32 {%h5, %h3}, %r7;",
        "sub.f16 %h3, %h1, %h2;",
        "add.bf16 %h3, %h1, %h2;",
        "min.f16 %h3, %h1, %h2;",
        "max.bf16 %h3, %h1, %h2;",
        "neg.f16 %h3, %h1;",
        "abs.bf16 %h3, %h1;",
        "fma.rn.f16 %h3, %h1, %h2, %h1;",
        "fma.rn.bf16 %h3, %h1, %h2, %h1;",
        "add.f16x2 %r7, %r10, %r11; mov.b32 {%h3, %h5}, %r7;",
        "sub.bf16x2 %r7, %r10, %r11; mov.b32 {%h3, %h5}, %r7;",
        "mul.f16x2 %r7, %r10, %r11; mul.bf16x2 %r7, %r7, %r10; mov.b32 {%h3, %h5}, %r7;",
        "max.f16x2 %r7, %r10, %r11; min.bf16x2 %r7, %r7, %r10; mov.b32 {%h5, %h3}, %r7;",
        "neg.f16x2 %r7, %r10; abs.f16x2 %r8, %r11; add.f16x2 %r7, %r7, %r8; mov.u16 %h3, 7;",
        "neg.bf16x2 %r7, %r10; fma.rn.bf16x2 %r7, %r7, %r11, %r10; mov.u16 %h3, 7;",
        "fma.rn.f16x2 %r7, %r11, %r10, %r7; mov.b32 {%h5, %h3}, %r7;",
        "mov.b32 %x1, %r10; mov.b32 %x2, %r11; cvt.rn.f16x2.f32 %r7, %x1, %x2; mov.u16 %h3, 7;",
        "mov.b32 %x1, %r10; mov.b32 %x2, %r11; cvt.rn.bf16x2.f32 %r7, %x1, %x2; mov.u16 %h3, 7;",
        "cvt.f32.bf16 %x1, %h1; cvt.f32.f16 %x2, %h2; mul.f32 %x1, %x1, %x2;"
        "cvt.rn.bf16.f32 %h3, %x1; mov.b32 %r7, %x2;"}) {
    SCOPED_TRACE(what);
    expect_same_values(fmt::format(
        ".reg .b16 %h<8>; .reg .f32 %x<4>; mov.u32 %r6, 0; mov.u32 %r7, %r1; mov.u16 %h4, 3;\n"
        "L: ld.global.u16 %h1, [%rd4]; ld.global.u16 %h2, [%rd4+2]; ld.global.u32 %r10, [%rd4];"
        "mad.lo.u32 %r11, %r10, 1664525, %r6; mul.lo.u32 %r11, %r11, 69069; xor.b16 %h1, %h1, %h2;"
        "{} xor.b16 %h4, %h4, %h3; add.s64 %rd4, %rd4, 4; add.u32 %r6, %r6, 1;"
        "setp.lt.u32 %p1, %r6, %r9; @%p1 bra L;\n"
        "st.global.u16 [%rd6], %h4; st.global.u32 [%rd6+4], %r7;",
        what));
  }
}

// Where a product of bf16 is in doubt, the interpreter does the whole operation: nothing of its
// operands may be lost by then, in no strip.
TEST(CompiledValues, SumsOfBf16InDoubtAreDoneOnce) {
  const std::string body =
      "ld.global.u32 %r22, [%rd4]; ld.global.u32 %r23, [%rd4+4]; mov.u32 %r10, 4;\n"
      "L: st.global.u32 [%rd6+4], %r10; fma.rn.bf16x2 %r22, %r22, %r23, %r23;"
      "sub.u32 %r10, %r10, 1; setp.ne.u32 %p1, %r10, 0; @%p1 bra L;\n"
      "st.global.u32 [%rd6], %r22;";
  const std::string text = kernel_text("u64 p, u64 q, u32 n", kBegin + body);
  for (uint32_t seed = 1; seed < 40; ++seed) {
    std::mt19937 random(seed);
    std::vector<uint32_t> bits(kWords);
    for (uint32_t& word : bits) word = static_cast<uint32_t>(random());
    const Ran ran = run_compiled(text, {256, 1, 1}, 0, "always", bits);
    EXPECT_EQ(ran.out, run_compiled(text, {256, 1, 1}, 0, "0", bits).out) << seed;
  }
}

// f32 that flushes, saturates or rounds as asked, and integers that are divided, in lanes and as
// scalars.
TEST(CompiledValues, FloatsAsAskedAndQuotients) {
  for (const char* what : {"add.ftz.f32 %x3, %x1, %x2;",
                           "sub.ftz.f32 %x3, %x1, %x3;",
                           "mul.ftz.f32 %x3, %x1, %x2;",
                           "fma.rn.ftz.f32 %x3, %x1, %x2, %x3;",
                           "fma.rn.ftz.sat.f32 %x3, %x1, %x2, %x3;",
                           "add.sat.f32 %x3, %x1, %x2;",
                           "mul.sat.f32 %x3, %x1, %x2;",
                           "min.ftz.f32 %x3, %x1, %x2;",
                           "max.ftz.f32 %x3, %x1, %x3;",
                           "abs.ftz.f32 %x3, %x1;",
                           "neg.ftz.f32 %x3, %x1;",
                           "rcp.approx.ftz.f32 %x3, %x1;",
                           "sqrt.approx.ftz.f32 %x3, %x1;",
                           "rsqrt.approx.ftz.f32 %x3, %x1;",
                           "ex2.approx.f32 %x3, %x1;",
                           "ex2.approx.ftz.f32 %x3, %x1; mul.ftz.f32 %x3, %x3, %x1;",
                           "div.approx.f32 %x3, %x1, %x2;",
                           "div.approx.ftz.f32 %x3, %x1, %x2;",
                           "div.rn.ftz.f32 %x3, %x1, %x2;",
                           "fma.rm.f32 %x3, %x1, %x2, %x3;",
                           "fma.rz.ftz.f32 %x3, %x1, %x2, %x3;",
                           "add.rp.f32 %x3, %x1, %x2;",
                           "mul.rz.sat.f32 %x3, %x1, %x2;",
                           "add.rm.f32 %x3, %x1, %x3;",
                           "setp.lt.ftz.f32 %p2, %x1, %x3; selp.f32 %x3, %x1, %x2, %p2;",
                           "setp.geu.ftz.f32 %p2, %x1, 0f00000000; selp.f32 %x3, %x1, %x2, %p2;",
                           "div.s32 %r12, %r10, %r11;",
                           "div.u32 %r12, %r10, %r11;",
                           "rem.s32 %r12, %r10, %r11;",
                           "rem.u32 %r12, %r10, %r11;",
                           "rem.s32 %r12, %r10, %r9;",
                           "div.u32 %r12, %r10, %r9;",
                           "div.s32 %r12, %r10, %r6;",
                           "rem.u32 %r12, %r10, %r6;",
                           "rem.u32 %r12, %r13, %r9;",
                           "div.s32 %r12, %r13, %r9;",
                           "rem.s32 %r12, %r1, %r9;",
                           "mul.hi.s32 %r12, %r10, %r11;",
                           "mul.hi.u32 %r12, %r10, %r11;",
                           "mul.hi.u32 %r12, %r13, %r9;",
                           "abs.s32 %r12, %r10;"}) {
    SCOPED_TRACE(what);
    expect_same_values(fmt::format(
        ".reg .f32 %x<4>; mov.u32 %r6, 0; mov.f32 %x3, 0f3FC00000; mov.u32 %r12, 5;"
        "ld.global.u32 %r13, [%rd1+64]; mov.u32 %r7, 1;\n"
        "L: ld.global.f32 %x1, [%rd4]; ld.global.f32 %x2, [%rd4+8]; ld.global.u32 %r10, [%rd4];"
        "shr.s32 %r11, %r10, %r6; add.s32 %r13, %r13, %r9;"
        "{} mov.b32 %r8, %x3; xor.b32 %r8, %r8, %r12; mad.lo.u32 %r7, %r7, 69069, %r8;"
        "add.s64 %rd4, %rd4, 4; add.u32 %r6, %r6, 1;"
        "setp.lt.u32 %p1, %r6, %r9; @%p1 bra L;\n"
        "st.global.u32 [%rd6], %r7; st.global.f32 [%rd6+4], %x3; st.global.u32 [%rd6+8], %r12;",
        what));
  }
}

// Integers of some bits in wider registers, floats that become integers, and functions of three
// bits.
TEST(CompiledValues, CastsAndLookups) {
  std::vector<std::string> all = {"cvt.u32.u8 %r12, %r10;",
                                  "cvt.s32.s8 %r12, %r10;",
                                  "cvt.s32.s16 %r12, %r10;",
                                  "cvt.u8.u32 %r12, %r10;",
                                  "cvt.s8.s32 %r12, %r10;",
                                  "cvt.s16.s8 %h2, %h1;",
                                  "cvt.u16.u8 %h2, %h1;",
                                  "cvt.s32.s8 %r12, %h1;",
                                  "cvt.u8.s32 %h2, %r10;",
                                  "cvt.rn.f32.u8 %x3, %r10;",
                                  "cvt.rn.f32.s8 %x3, %r10;",
                                  "cvt.rn.f32.s8 %x3, %h1;",
                                  "cvt.rni.s32.f32 %r12, %x1;",
                                  "cvt.rmi.s32.f32 %r12, %x1;",
                                  "cvt.rpi.s32.f32 %r12, %x1;",
                                  "cvt.rzi.u32.f32 %r12, %x1;",
                                  "cvt.rni.u32.f32 %r12, %x1;",
                                  "cvt.rpi.u32.f32 %r12, %x2;",
                                  "cvt.rzi.ftz.u32.f32 %r12, %x1;",
                                  "cvt.rni.sat.s8.f32 %r12, %x1;",
                                  "cvt.rni.s16.f32 %h2, %x1;",
                                  "cvt.rzi.u8.f32 %h2, %x1;",
                                  "cvt.rni.sat.u8.f32 %r12, %x1;",
                                  "cvt.rni.s32.f32 %r12, %x2; add.f32 %x2, %x2, %x1;",
                                  "mul.f32 %x2, %x1, 0f4F000000; cvt.rzi.u32.f32 %r12, %x2;",
                                  "cvt.u32.u8 %r12, %r9;",
                                  "ld.global.f32 %x2, [%rd1+32]; cvt.rni.s32.f32 %r12, %x2;"};
  for (uint32_t table = 0; table < 256; table += 3)
    all.push_back(fmt::format("lop3.b32 %r12, %r10, %r11, %r7, {};", table));
  for (const std::string& what : all) {
    SCOPED_TRACE(what);
    expect_same_values(fmt::format(
        ".reg .f32 %x<4>; .reg .b16 %h<4>; mov.u32 %r6, 0; mov.f32 %x3, 0f3FC00000;"
        "mov.u32 %r12, 5; mov.u16 %h2, 9; mov.u32 %r7, 1; mov.f32 %x2, 0f40200000;\n"
        "L: ld.global.f32 %x1, [%rd4]; ld.global.u32 %r10, [%rd4]; ld.global.u16 %h1, [%rd4+2];"
        "mad.lo.u32 %r11, %r10, 1664525, %r6; xor.b32 %r10, %r10, %r11;"
        "{} mov.b32 %r8, %x3; xor.b32 %r8, %r8, %r12; mad.lo.u32 %r7, %r7, 69069, %r8;"
        "cvt.u32.u16 %r8, %h2; add.u32 %r7, %r7, %r8;"
        "add.s64 %rd4, %rd4, 4; add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r9; @%p1 bra L;\n"
        "st.global.u32 [%rd6], %r7; st.global.f32 [%rd6+4], %x3; st.global.u32 [%rd6+8], %r12;",
        what));
  }
}

// Bytes and halves of memory: neighbours, one place, places apart, one for each lane, in groups.
TEST(CompiledValues, SmallMemory) {
  const std::string begin =
      ".reg .b16 %h<8>; cvt.u64.u32 %rd7, %r1; add.s64 %rd8, %rd1, %rd7; shl.b64 %rd9, %rd7, 1;"
      "add.s64 %rd10, %rd1, %rd9; ld.global.u8 %r10, [%rd8]; ld.global.s8 %r11, [%rd8+1];"
      "ld.global.u16 %r12, [%rd10]; ld.global.s16 %r13, [%rd10+2]; ld.global.s8 %h1, [%rd8+3];"
      "ld.global.u8 %h2, [%rd8+4]; ld.global.u8 %r14, [%rd1+5]; ld.global.s16 %h3, [%rd1+6];"
      "ld.global.s8 %r15, [%rd4+1]; ld.global.u16 %h4, [%rd4+2];"
      "ld.global.v4.u8 {%h5, %h6, %h7, %h5}, [%rd4]; add.s16 %h1, %h1, %h5; xor.b16 %h2, %h2, %h7;"
      "ld.global.v2.u16 {%h5, %h7}, [%rd4+8]; add.s16 %h3, %h3, %h7; add.s16 %h4, %h4, %h6;"
      "and.b32 %r16, %r10, 1023; cvt.u64.u32 %rd11, %r16; add.s64 %rd11, %rd1, %rd11;"
      "ld.global.u8 %r17, [%rd11]; ld.global.s8 %h6, [%rd11+1]; add.s32 %r10, %r10, %r11;"
      "mad.lo.u32 %r10, %r12, 3, %r10; xor.b32 %r10, %r10, %r13; add.s32 %r10, %r10, %r14;"
      "add.s32 %r10, %r10, %r15; mad.lo.u32 %r10, %r17, 5, %r10; add.s16 %h1, %h1, %h6;"
      "cvt.u64.u32 %rd12, %r5; add.s64 %rd13, %rd2, %rd12; mul.lo.u32 %r18, %r1, 37;"
      "and.b32 %r18, %r18, 255; mad.lo.u32 %r18, %r4, 256, %r18; mul.wide.u32 %rd14, %r18, 16;"
      "add.s64 %rd14, %rd2, %rd14; setp.lt.u32 %p1, %r17, 100;";
  for (const char* ends :
       {"st.global.u32 [%rd6+16384], %r10; st.global.u16 [%rd6+16388], %h1;"
        "st.global.u8 [%rd6+16391], %h2; st.global.u16 [%rd6+16392], %h3;",
        "st.global.u8 [%rd13], %h1; st.global.u8 [%rd13+1024], %r10;",
        "st.global.v2.u16 [%rd6], {%h1, %h2}; st.global.v4.u8 [%rd6+4], {%h3, %h4, %h1, %h2};",
        "st.global.u8 [%rd14], %r10; st.global.u16 [%rd14+2], %h4;",
        "@%p1 bra S; st.global.u8 [%rd14], %r10; st.global.u16 [%rd14+2], %h4;\nS: ret;",
        "@%p1 bra S; st.global.u8 [%rd13], %h1; st.global.u16 [%rd6+4096], %r10;\nS: ret;"}) {
    SCOPED_TRACE(ends);
    expect_same_values(begin + ends);
  }
}

// Local memory: the same address is another place for each lane. One address for all lanes, one for
// each, and rising by a step; of every width, and written again while it is read.
TEST(CompiledValues, LocalMemory) {
  const std::string begin =
      ".reg .b16 %h<8>; .local .align 16 .b8 own[256]; mov.u64 %rd20, own; mov.u32 %r6, 0;"
      "mov.u32 %r11, %r1; mul.lo.u32 %r16, %r1, 52; and.b32 %r16, %r16, 252;"
      "cvt.u64.u32 %rd21, %r16; add.s64 %rd21, %rd20, %rd21; and.b32 %r17, %r1, 31;"
      "mul.wide.u32 %rd22, %r17, 4; add.s64 %rd22, %rd20, %rd22; ld.global.u32 %r10, [%rd4];"
      "and.b32 %r10, %r10, 31; cvt.u64.u32 %rd23, %r10; add.s64 %rd23, %rd20, %rd23;\n";
  const std::string end =
      "\nadd.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r9; @%p1 bra L;\n"
      "ld.local.u32 %r12, [own+8]; ld.local.u32 %r13, [%rd21]; add.u32 %r11, %r11, %r13;"
      "st.global.u32 [%rd6], %r11; st.global.u32 [%rd6+4], %r12;";
  for (const char* what :
       {"st.local.u32 [own+8], %r11; ld.local.u32 %r12, [own+8]; mad.lo.u32 %r11, %r12, 3, %r6;",
        "shl.b32 %r12, %r6, 2; cvt.u64.u32 %rd9, %r12; add.s64 %rd9, %rd20, %rd9;"
        "st.local.u32 [%rd9], %r11; ld.local.u32 %r12, [%rd9+4]; add.u32 %r11, %r11, %r12;",
        "st.local.u8 [own+9], %r11; ld.local.s8 %r12, [own+9]; ld.local.u16 %r13, [own+8];"
        "mad.lo.u32 %r11, %r12, 5, %r13; add.u32 %r11, %r11, %r1;",
        "st.local.u8 [own+10], 65; ld.local.u32 %r12, [own+8]; add.u32 %r11, %r11, %r12;"
        "cvt.u16.u32 %h1, %r11; st.local.u16 [own+254], %h1; ld.local.s16 %h2, [own+254];"
        "ld.local.u8 %h3, [own+255]; add.s16 %h2, %h2, %h3; cvt.u32.u16 %r12, %h2;"
        "add.u32 %r11, %r11, %r12;",
        "ld.local.u32 %r12, [%rd21]; mad.lo.u32 %r11, %r12, 3, %r11; st.local.u32 [%rd21], %r11;",
        "ld.local.u8 %r12, [%rd23]; add.u32 %r11, %r11, %r12; st.local.u8 [%rd23], %r11;"
        "ld.local.s16 %r13, [%rd21+2]; add.u32 %r11, %r11, %r13; st.local.u16 [%rd21+2], %r11;",
        "st.local.u32 [%rd22], %r11; ld.local.u32 %r12, [%rd22+16]; add.u32 %r11, %r11, %r12;",
        "mul.wide.u32 %rd9, %r11, 77; st.local.u64 [own+16], %rd9; ld.local.u64 %rd10, [own+16];"
        "cvt.u32.u64 %r11, %rd10; ld.local.v2.u32 {%r12, %r13}, [own+16]; xor.b32 %r11, %r11, %r13;"
        "st.local.v4.u32 [own+32], {%r11, %r12, 7, %r13}; ld.local.u32 %r14, [own+36];"
        "add.u32 %r11, %r11, %r14;",
        "setp.gt.u32 %p2, %r10, 9; @%p2 bra S; st.local.u32 [%rd21], %r11;"
        "st.local.u8 [own], %r6;\n"
        "S: ld.local.u32 %r12, [own]; mad.lo.u32 %r11, %r12, 7, %r11;"}) {
    SCOPED_TRACE(what);
    expect_same_values(begin + "L:\n" + what + end);
  }
}

// The same in shared memory, where addresses have 32 bits; beside words by the same addresses.
TEST(CompiledValues, SmallSharedMemory) {
  expect_same_values(
      ".reg .b16 %h<8>; .shared .align 16 .b8 room[8192]; mov.u32 %r10, room;"
      "mad.lo.u32 %r11, %r1, 16, %r10; ld.global.u32 %r12, [%rd4]; cvt.u16.u32 %h1, %r12;"
      "st.shared.u8 [%r11], %h1; st.shared.u16 [%r11+2], %r12; st.shared.u32 [%r11+4], %r12;"
      "st.shared.u8 [%r11+8], %r12; ld.shared.s8 %r13, [%r11]; ld.shared.u16 %h2, [%r11+2];"
      "ld.shared.s16 %h3, [%r11+6]; ld.shared.u32 %r14, [%r11+4]; and.b32 %r15, %r12, 15;"
      "add.u32 %r16, %r11, %r15; and.b32 %r16, %r16, -4; ld.shared.u8 %h4, [%r11+8];"
      "sub.u32 %r16, %r16, %r15; and.b32 %r16, %r16, -4; max.u32 %r16, %r16, %r11;"
      "st.shared.u8 [%r16], %h2; st.shared.u32 [%r16+4], %r14; ld.shared.u8 %r17, [%r16+5];"
      "ld.shared.u32 %r18, [%r16]; ld.shared.u64 %rd7, [%r11]; add.s16 %h2, %h2, %h3;"
      "and.b32 %r18, %r18, 255; add.s16 %h2, %h2, %h4; add.u32 %r13, %r13, %r17;"
      "add.u32 %r13, %r13, %r18; cvt.u32.u64 %r19, %rd7; and.b32 %r19, %r19, 255;"
      "add.u32 %r13, %r13, %r19; st.global.u32 [%rd6], %r13; st.global.u16 [%rd6+4], %h2;");
}

// Some are kept in memory, with and without a function that is called in their midst.
TEST(CompiledValues, MoreThanRegisters) {
  for (const char* function : {"", "ex2.approx.f32 %x1, %x1;", "sin.approx.f32 %x1, %x1;"}) {
    std::string body = ".reg .f32 %x<48>; mov.u32 %r6, 0; mov.f32 %x1, 0f3F800000;";
    for (int i = 2; i < 40; ++i) body += fmt::format("ld.global.f32 %x{}, [%rd4+{}];", i, i * 128);
    body += "\nL: ";
    for (int i = 2; i < 40; ++i)
      body += fmt::format("fma.rn.f32 %x{}, %x{}, %x{}, %x1;", i, i, i == 39 ? 2 : i + 1);
    body += fmt::format("{} add.f32 %x1, %x1, %x20; add.u32 %r6, %r6, 1;", function);
    body += "setp.lt.u32 %p1, %r6, %r9; @%p1 bra L;\n";
    for (int i = 2; i < 40; ++i) body += fmt::format("add.f32 %x1, %x1, %x{};", i);
    expect_same_values(body + "st.global.f32 [%rd6], %x1;", false);
  }
}

// Loads and stores of 4 and 8 bytes that lie apart by a step, by none, and under a condition.
TEST(CompiledValues, AddressesApart) {
  const std::string scattered =
      "mul.lo.u32 %r10, %r1, 37; and.b32 %r10, %r10, 255; mad.lo.u32 %r10, %r4, 256, %r10;"
      "mul.wide.u32 %rd7, %r10, 16; add.s64 %rd8, %rd2, %rd7; ld.global.u32 %r11, [%rd4];"
      "and.b32 %r12, %r11, 1023; mul.wide.u32 %rd9, %r12, 8; add.s64 %rd10, %rd1, %rd9;"
      "ld.global.u64 %rd11, [%rd10]; ld.global.u32 %r13, [%rd10+4]; add.s64 %rd12, %rd11, %rd9;"
      "xor.b32 %r13, %r13, %r11; setp.lt.u32 %p1, %r12, 512;";
  for (const char* ends :
       {"st.global.u64 [%rd8], %rd12; st.global.u32 [%rd8+8], %r13;",
        "@%p1 bra S; st.global.u64 [%rd8], %rd12; st.global.u32 [%rd8+8], %r13;\nS: ret;",
        "st.global.u64 [%rd6], %rd12; st.global.u32 [%rd6+8], %r13;",
        "@%p1 bra S; st.global.u64 [%rd6], %rd12; st.global.u32 [%rd6+12], %r13;\nS: ret;"})
    expect_same_values(scattered + ends);
}

const std::string kIndexed =
    "add.s64 %rd7, %rd1, 32768; mul.wide.s32 %rd8, %r11, 4; add.s64 %rd9, %rd7, %rd8;"
    "ld.global.u32 %r12, [%rd9]; add.s64 %rd10, %rd1, %rd8; add.u32 %r13, %r13, %r12;";

// A pointer and a multiple of a number, in front of the pointer and behind it: as the address of
// loads alone, of several, and where something else wants it too; for all lanes, and in a loop that
// they leave one after the other.
TEST(CompiledValues, IndicesOfAPointer) {
  const std::string loop =
      "mov.u32 %r13, 0; mov.u32 %r6, 0; and.b32 %r14, %r1, 7; add.u32 %r14, %r14, %r9;\nL: ";
  const std::string ends =
      "add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %r14; @%p1 bra L;\nst.global.u32 [%rd6], %r13;";
  for (const char* more : {"", "ld.global.u32 %r15, [%rd9+8]; add.u32 %r13, %r13, %r15;",
                           "ld.global.u32 %r15, [%rd9+-8]; add.u32 %r13, %r13, %r15;",
                           "cvt.u32.u64 %r15, %rd8; add.u32 %r13, %r13, %r15;",
                           "sub.s64 %rd11, %rd9, %rd1; cvt.u32.u64 %r15, %rd11;"
                           "add.u32 %r13, %r13, %r15; ld.global.u32 %r15, [%rd10+32768];"
                           "xor.b32 %r13, %r13, %r15;",
                           "mul.wide.s32 %rd11, %r11, 8; add.s64 %rd12, %rd7, %rd11;"
                           "ld.global.v2.u32 {%r15, %r16}, [%rd12]; xor.b32 %r13, %r13, %r16;"}) {
    const std::string index =
        "ld.global.u32 %r10, [%rd4]; shr.s32 %r11, %r10, 19; max.s32 %r11, %r11, -4094;"
        "min.s32 %r11, %r11, 4090;";
    expect_same_values("mov.u32 %r13, 0;" + index + kIndexed + more +
                       "st.global.u32 [%rd6], %r13;");
    expect_same_values(loop + index + kIndexed + more + "add.s64 %rd4, %rd4, 4;" + ends);
  }
}

// An index that is divided by the width of an image, and what is above and below it. Warps are in
// one row, in two, or in many; the width may be none.
TEST(CompiledValues, RowsAndColumns) {
  for (const char* type : {"u32", "s32"}) {
    for (int first : {0, 7, -40}) {
      const std::string text = kernel_text(
          "u64 p, u64 q, u32 n",
          kBegin +
              fmt::format(
                  "add.s32 %r6, %r5, {1}; setp.lt.s32 %p1, %r6, 0; @%p1 bra END;\n"
                  "div.{0} %r7, %r6, %r9; rem.{0} %r8, %r6, %r9; shr.{0} %r10, %r6, 6;"
                  "and.b32 %r11, %r6, 63; shr.{0} %r12, %r6, 2; mad.lo.s32 %r13, %r7, %r9, %r8;"
                  "mul.wide.s32 %rd7, %r13, 4; add.s64 %rd8, %rd1, %rd7;"
                  "ld.global.u32 %r14, [%rd8]; mad.lo.s32 %r15, %r10, 64, %r11;"
                  "mul.wide.s32 %rd9, %r15, 4; add.s64 %rd10, %rd1, %rd9;"
                  "ld.global.u32 %r16, [%rd10+4]; add.u32 %r14, %r14, %r16;"
                  "setp.lt.s32 %p2, %r7, 1; @%p2 bra S;\n"
                  "sub.s32 %r17, %r13, %r9; mul.wide.s32 %rd11, %r17, 4;"
                  "add.s64 %rd12, %rd1, %rd11; ld.global.u32 %r18, [%rd12];"
                  "xor.b32 %r14, %r14, %r18;\n"
                  "S: st.global.u32 [%rd6], %r14; st.global.u32 [%rd6+4], %r7;"
                  "add.u32 %r12, %r12, %r10; st.global.u32 [%rd6+8], %r8;"
                  "st.global.u32 [%rd6+12], %r12;\nEND: ret;",
                  type, first));
      for (KilnDim3 block : kShapes) {
        for (uint32_t n : {1u, 3u, 32u, 64u, 100u, 256u, 300u, 0x80000001u}) {
          const Ran compiled = run_compiled(text, block, n, "always", n);
          EXPECT_EQ(compiled.text, "");
          EXPECT_EQ(compiled.out, run_compiled(text, block, n, "0", n).out)
              << type << ", " << first << ", " << block.x << ", " << n;
        }
      }
    }
  }
}

// Memory that a branch leads around need not be there: the pointer is null where `n` is 0.
TEST(CompiledValues, MemoryThatMayBeMissing) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      kBegin +
          "setp.eq.u32 %p1, %r9, 0; selp.b64 %rd7, 0, %rd1, %p1; ld.global.u32 %r10, [%rd4];"
          "and.b32 %r11, %r5, 63; shr.u32 %r12, %r5, 6; mad.lo.u32 %r12, %r12, 64, %r11;"
          "@%p1 bra S;\n"
          "mul.wide.u32 %rd8, %r12, 4; add.s64 %rd9, %rd7, %rd8; ld.global.u32 %r13, [%rd9+8];"
          "add.u32 %r10, %r10, %r13;\n"
          "S: st.global.u32 [%rd6], %r10;");
  for (KilnDim3 block : kShapes) {
    for (uint32_t n : {0u, 1u}) {
      const Ran compiled = run_compiled(text, block, n, "always", n);
      EXPECT_EQ(compiled.text, "");
      EXPECT_EQ(compiled.out, run_compiled(text, block, n, "0", n).out) << block.x << ", " << n;
    }
  }
}

// One lane's is outside, near the end or as far away as 32 bits can say; or the pointer is at no
// multiple.
TEST(CompiledValues, IndicesThatAreOutside) {
  for (uint32_t index : {8192u, 0x3fffffffu, 0x40000000u, 0x40002000u, 0x7fffffffu, 0x80000000u,
                         0x80002000u, 0xbfffffffu, 0xc0000000u, 0xc0001fffu, 0xffffdfffu}) {
    const std::string text = kernel_text(
        "u64 p, u64 q, u32 n",
        kBegin +
            fmt::format("ld.global.u32 %r10, [%rd4]; shr.s32 %r11, %r10, 19; mov.u32 %r13, 0;"
                        "setp.eq.u32 %p1, %r1, 41; selp.b32 %r11, {}, %r11, %p1;",
                        static_cast<int32_t>(index)) +
            kIndexed + "st.global.u32 [%rd6], %r13;");
    const Ran compiled = run_compiled(text, {64, 1, 1}, 0, "always", 1);
    EXPECT_EQ(compiled.text, run_compiled(text, {64, 1, 1}, 0, "0", 1).text) << index;
    EXPECT_FALSE(compiled.text.empty()) << index;
  }
  const std::string text =
      kernel_text("u64 p, u64 q, u32 n", kBegin +
                                             "ld.global.u32 %r10, [%rd4]; shr.s32 %r11, %r10, 20;"
                                             "mov.u32 %r13, 0; add.s64 %rd1, %rd1, 2;" +
                                             kIndexed + "st.global.u32 [%rd6], %r13;");
  const Ran compiled = run_compiled(text, {64, 1, 1}, 0, "always", 1);
  EXPECT_EQ(compiled.text, run_compiled(text, {64, 1, 1}, 0, "0", 1).text);
  EXPECT_FALSE(compiled.text.empty());
}

// Operands and results that are subnormal, and some that are not: once the CPU says so, f32 is
// computed by way of f64, where results are as near to the middle of two others as they can be.
TEST(CompiledValues, SubnormalsByWayOfDouble) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      kBegin +
          "mov.u32 %r10, 0; mov.u32 %r11, 0;\n"
          "L: ld.global.u32 %r12, [%rd4]; ld.global.u32 %r13, [%rd4+256];"
          "ld.global.u32 %r14, [%rd4+512];"
          "and.b32 %r15, %r12, -2113929217; mov.b32 %f1, %r15;"  // up to 2^-122
          "and.b32 %r16, %r13, -1082130433; mov.b32 %f2, %r16;"  // up to 2^1
          "shr.u32 %r17, %r14, 9; mul.lo.u32 %r17, %r17, %r13; and.b32 %r17, %r17, -2105540609;"
          "mov.b32 %f3, %r17; or.b32 %r18, %r16, 1056964608; mov.b32 %f10, %r18;"
          "mul.rn.f32 %f4, %f1, %f2; fma.rn.f32 %f5, %f1, %f2, %f3; fma.rn.f32 %f6, %f2, %f10, %f3;"
          "fma.rn.f32 %f7, %f1, %f10, %f1; div.rn.f32 %f8, %f1, %f10; sqrt.rn.f32 %f9, %f1;"
          "rcp.rn.f32 %f11, %f3; div.rn.f32 %f12, %f2, %f3; mul.ftz.f32 %f13, %f1, %f10;"
          "fma.rn.sat.f32 %f14, %f1, %f2, %f10;"
          // 1 + 2^-23 and (2^-24 - 2^-54), of either sign: f64 has no room for the last bit
          "and.b32 %r20, %r12, -2147483648; or.b32 %r21, %r20, 0x3f800001; mov.b32 %f15, %r21;"
          "and.b32 %r22, %r13, -2147483648; or.b32 %r22, %r22, 0x39800100; mov.b32 %f16, %r22;"
          "mov.f32 %f17, 0f397ffe00; fma.rn.f32 %f15, %f16, %f17, %f15;\n" +
          [] {
            std::string all;
            for (uint32_t i = 4; i <= 15; ++i) {
              if (i == 10) continue;
              all += fmt::format("mov.b32 %r19, %f{}; mad.lo.u32 %r10, %r10, 31, %r19;\n", i);
            }
            return all;
          }() +
          "add.s64 %rd4, %rd4, 4; add.u32 %r11, %r11, 1; setp.lt.u32 %p1, %r11, 40; @%p1 bra L;\n"
          "st.global.u32 [%rd6], %r10;");
  setenv("KILN_ENGINE_THREADS", "1", 1);
  for (uint32_t seed = 1; seed <= 30; ++seed) {
    const Ran compiled = run_compiled(text, {128, 1, 1}, 0, "always", seed);
    EXPECT_EQ(compiled.text, "");
    EXPECT_EQ(compiled.out, run_compiled(text, {128, 1, 1}, 0, "0", seed).out) << seed;
    if (compiles() && kSubnormalsAreSlow) {
      EXPECT_GE(compiled.facts.by_double, 4u);
    }
  }
  unsetenv("KILN_ENGINE_THREADS");
}

}  // namespace
}  // namespace kiln::engine
