// SPDX-License-Identifier: Apache-2.0
// What happens to functions that call each other when one of them cannot be decoded?
#include <gmock/gmock.h>

#include "harness.h"

namespace kiln::engine {
namespace {

using ::testing::HasSubstr;

// `a` calls `b`, which calls `a`; `b` is decoded whole before `a` turns out to have an instruction
// that nobody knows.
TEST(Decoding, WhatCallsAFunctionThatFailsFailsToo) {
  Session session(module_text(R"(.func a(.param .b64 p);
.func b(.param .b64 p) { { .param .b64 q; .reg .b64 %r; ld.param.b64 %r, [p]; st.param.b64 [q], %r; call a, (q); } ret; }
.func a(.param .b64 p) { { .param .b64 q; .reg .b64 %r; ld.param.b64 %r, [p]; st.param.b64 [q], %r; call b, (q); }
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

}  // namespace
}  // namespace kiln::engine
