// SPDX-License-Identifier: Apache-2.0
// What happens to functions that cannot be decoded, and to those that call them? And to loads whose
// values nobody reads?
#include <gmock/gmock.h>

#include <numeric>

#include "harness.h"

namespace kiln::engine {
namespace {

using ::testing::HasSubstr;

// `a` calls `b`, which calls `a`; `b` is decoded whole before `a` turns out to have an instruction
// that nobody knows.
TEST(Decoding, WhatCallsAFunctionThatFailsFailsToo) {
  Session session(module_text(R"(.func a(.param .b64 p);
.func b(.param .b64 p) { { .param .b64 q; .reg .b64 %r;
  ld.param.b64 %r, [p]; st.param.b64 [q], %r; call a, (q); } ret; }
.func a(.param .b64 p) { { .param .b64 q; .reg .b64 %r;
  ld.param.b64 %r, [p]; st.param.b64 [q], %r; call b, (q); }
frob.b32; ret; }
.visible .entry first(.param .u64 p) { { .param .b64 q; call a, (q); } ret; }
.visible .entry second(.param .u64 p) { { .param .b64 q; call b, (q); } ret; }
)"));
  ASSERT_EQ(session.load_error, "");
  for (const char* kernel : {"first", "second"}) {
    auto program = session.image.kernel(kernel);
    ASSERT_FALSE(static_cast<bool>(program)) << kernel;
    EXPECT_THAT(format(program.error()), HasSubstr("frob")) << kernel;
  }
}

TEST(Decoding, AChainOfCallsHasALimit) {
  std::string text = ".func f0() { ret; }\n";
  for (int i = 1; i < 5000; ++i)
    text += ".func f" + std::to_string(i) + "() { call f" + std::to_string(i - 1) + "; ret; }\n";
  Session session(module_text(
      text +
      ".visible .entry k() { call f4999; ret; }\n.visible .entry near() { call f99; ret; }\n"));
  ASSERT_EQ(session.load_error, "");
  auto deep = session.image.kernel("k");
  ASSERT_FALSE(static_cast<bool>(deep));
  EXPECT_THAT(format(deep.error()), HasSubstr("more than 256 deep"));
  EXPECT_TRUE(static_cast<bool>(session.image.kernel("near")));
}

// What `nvcc -arch=sm_90a` makes: PTX for compute_90, without the a.
TEST(Decoding, InstructionsOfAVariantSayHowToBuildForIt) {
  for (const char* instruction :
       {"wgmma.fence.sync.aligned", "setmaxnreg.inc.sync.aligned.u32 40"}) {
    const std::string kernel =
        std::string(".visible .entry k() {\n") + instruction + ";\nret;\n}\n";
    Session plain(module_text(kernel));
    ASSERT_EQ(plain.load_error, "");
    auto refused = plain.image.kernel("k");
    ASSERT_FALSE(static_cast<bool>(refused)) << instruction;
    EXPECT_THAT(refused.error().why, HasSubstr("is not part of sm_90, which this PTX is for"));
    EXPECT_EQ(refused.error().fix,
              "build with --arch 9.0a; nvcc -arch=sm_90a also makes plain compute_90 PTX, nvcc "
              "-gencode=arch=compute_90a,code=[sm_90a,compute_90a] does not");
    Session variant(".version 9.0\n.target sm_90a\n.address_size 64\n" + kernel);
    ASSERT_EQ(variant.load_error, "");
    EXPECT_TRUE(static_cast<bool>(variant.image.kernel("k"))) << instruction;
  }
}

// prmt names the register, but selects no byte of it. The next value has its place in the frame,
// and was lost when the load moved to a multiplication that reads this place.
TEST(Decoding, ALoadWhoseValueNobodyReadsStaysWhereItIs) {
  Session session(kernel_text(
      "u64 p, u64 q",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x;"
      "mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;"
      "ld.global.u32 %r2, [%rd4]; xor.b32 %r10, %r1, 5; xor.b32 %r11, %r1, 9;\n"
      "add.s32 %r3, %r10, %r11; ld.global.u32 %r4, [%rd5]; mov.u32 %r14, 21844;"
      "prmt.b32 %r5, %r4, %r3, %r14;"
      "mov.b32 %f1, %r5; cvt.rn.f32.s32 %f2, %r2; fma.rn.f32 %f3, %f2, 0f3F800000, %f1;\n"
      "st.global.f32 [%rd5+512], %f3; st.global.f32 [%rd5], %f2; st.global.u32 [%rd5+768], %r5;"));
  ASSERT_EQ(session.load_error, "");
  std::vector<int32_t> in(64);
  std::iota(in.begin(), in.end(), 1000);
  std::vector<float> out(256, -1.0f);
  session.launch("k", {{1, 1, 1}, {64, 1, 1}}, session.allow(in, "in", false),
                 session.allow(out, "out"));
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], static_cast<float>(1000 + i)) << i;
}

}  // namespace
}  // namespace kiln::engine
