// SPDX-License-Identifier: Apache-2.0
// What does a user read when a kernel goes wrong?
#include <gmock/gmock.h>

#include "harness.h"

namespace kiln::engine {
namespace {

using testing::HasSubstr;

std::string store_kernel(const std::string& address) {
  return module_text(R"(.file 1 "scale.cu"
.file 2 "kiln/op.h"
.visible .entry _Z5scalePf(.param .u64 p)
{
  .reg .b64 %rd<9>; .reg .b32 %r<9>;
  .loc 1 53 7
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  .loc 1 54 9
  .loc 2 120 1, function_name $L__info_string0, inlined_at 1 54 9
  st.global.u32 [)" + address +
                     R"(], %r1;
  ret;
}
)");
}

TEST(Fault, OutOfBoundsNamesKernelLineThreadBlockAddressAndTensor) {
  Session session(store_kernel("%rd3"));
  std::vector<uint32_t> out(20, 0);
  LaunchOutcome outcome =
      session.launch("_Z5scalePf", {{1, 1, 1}, {32, 1, 1}}, session.allow(out, "out"));
  EXPECT_EQ(outcome.code, kIllegalAddress);
  EXPECT_THAT(outcome.text, HasSubstr("Invalid __global__ write of size 4 bytes"));
  EXPECT_THAT(outcome.text,
              HasSubstr("at scale(float*) in scale.cu:54 (inlined from kiln/op.h:120)"));
  EXPECT_THAT(outcome.text, HasSubstr("by thread (20,0,0) in block (0,0,0)"));
  EXPECT_THAT(outcome.text, HasSubstr("is out of bounds"));
  EXPECT_THAT(outcome.text, HasSubstr("and is 1 bytes after the nearest allocation"));
  EXPECT_THAT(outcome.text, HasSubstr("of size 80 bytes (tensor 'out')"));
  for (uint32_t i = 0; i < 20; ++i) EXPECT_EQ(out[i], 0u) << "a store that faults writes nothing";
}

TEST(Fault, NullAndWildPointers) {
  Session session(store_kernel("%rd3"));
  std::vector<uint32_t> out(4);
  session.allow(out, "out");
  EXPECT_EQ(session.launch("_Z5scalePf", {{1, 1, 1}, {1, 1, 1}}, uint64_t{0}).code,
            kIllegalAddress);
  EXPECT_EQ(session.launch("_Z5scalePf", {{1, 1, 1}, {32, 1, 1}}, uint64_t{0x12345678}).code,
            kIllegalAddress);
  EXPECT_EQ(session.launch("_Z5scalePf", {{1, 1, 1}, {32, 1, 1}}, ~uint64_t{0} - 3).code,
            kIllegalAddress);
  EXPECT_EQ(
      session.launch("_Z5scalePf", {{1, 1, 1}, {32, 1, 1}}, uint64_t{0x0100000000000000}).code,
      kIllegalAddress);
}

TEST(Fault, HostMemoryThatTheLaunchWasNotGivenIsOutOfBounds) {
  Session session(store_kernel("%rd3"));
  std::vector<uint32_t> given(32), hidden(32);
  session.allow(given, "given");
  EXPECT_EQ(session.launch("_Z5scalePf", {{1, 1, 1}, {32, 1, 1}}, hidden.data()).code,
            kIllegalAddress);
}

TEST(Fault, ReadOnlyTensorIsNotWritten) {
  Session session(store_kernel("%rd3"));
  std::vector<uint32_t> input(32, 5);
  LaunchOutcome outcome =
      session.launch("_Z5scalePf", {{1, 1, 1}, {32, 1, 1}}, session.allow(input, "input", false));
  EXPECT_EQ(outcome.code, kIllegalAddress);
  EXPECT_THAT(outcome.text, HasSubstr("may only read"));
  EXPECT_EQ(input[3], 5u);
}

TEST(Fault, MisalignedAddress) {
  Session session(store_kernel("%rd3+2"));
  std::vector<uint32_t> out(64);
  LaunchOutcome outcome =
      session.launch("_Z5scalePf", {{1, 1, 1}, {32, 1, 1}}, session.allow(out, "out"));
  EXPECT_EQ(outcome.code, kMisalignedAddress);
  EXPECT_THAT(outcome.text, HasSubstr("is misaligned"));
}

TEST(Fault, SharedAndLocalMemoryHaveEnds) {
  Session shared(kernel_text(
      "u64 p",
      ".shared .b32 s[8]; mov.u32 %r1, %tid.x; mov.u32 %r2, s; mad.lo.u32 %r3, %r1, 4, %r2; "
      "st.shared.u32 [%r3], %r1;"));
  LaunchOutcome outcome = shared.launch("k", {{1, 1, 1}, {32, 1, 1}}, uint64_t{0});
  EXPECT_EQ(outcome.code, kIllegalAddress);
  EXPECT_THAT(outcome.text, HasSubstr("Invalid __shared__ write"));
  EXPECT_THAT(outcome.text, HasSubstr("by thread (8,0,0)"));
  Session local(
      kernel_text("u64 p", ".local .b32 l[4]; mov.u64 %rd1, l; st.local.u32 [%rd1+65536], %r1;"));
  EXPECT_EQ(local.launch("k", {}, uint64_t{0}).code, kIllegalAddress);
}

TEST(Fault, InactiveLanesAreNotChecked) {
  Session session(kernel_text("u64 p", R"(
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p1, %r1, 4;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    @%p1 bra END;
    st.global.u32 [%rd2], %r1;
    END:
  )"));
  std::vector<uint32_t> out(4, ~0u);
  LaunchOutcome outcome = session.launch("k", {{1, 1, 1}, {32, 1, 1}}, session.allow(out, "out"));
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_EQ(out[3], 3u);
}

TEST(Fault, TrapAndAssert) {
  Session trap(kernel_text("u64 p", "trap;"));
  EXPECT_EQ(trap.launch("k", {}, uint64_t{0}).code, kLaunchFailure);
  Session assertion(module_text(R"(
    .extern .func __assertfail
      (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
    .global .align 1 .b8 text[6] = {120, 32, 62, 32, 48};
    .visible .entry k() {
      .reg .b64 %rd<3>;
      mov.u64 %rd1, text;
      { .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
        st.param.b64 [p0], %rd1; st.param.b64 [p1], %rd1; st.param.b32 [p2], 12;
        st.param.b64 [p3], %rd1; st.param.b64 [p4], 1;
        call __assertfail, (p0, p1, p2, p3, p4); }
      ret;
    }
  )"));
  LaunchOutcome outcome = assertion.launch("k", {{1, 1, 1}, {1, 1, 1}});
  EXPECT_EQ(outcome.code, kAssert) << outcome.text;
  EXPECT_THAT(outcome.text,
              HasSubstr(":12: x > 0: block: [0,0,0], thread: [0,0,0] Assertion `x > 0` failed."));
}

}  // namespace
}  // namespace kiln::engine
