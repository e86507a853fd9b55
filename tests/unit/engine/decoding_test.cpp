// SPDX-License-Identifier: Apache-2.0
// What happens to functions that cannot be decoded, and to those that call them?
#include <gmock/gmock.h>

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

}  // namespace
}  // namespace kiln::engine
