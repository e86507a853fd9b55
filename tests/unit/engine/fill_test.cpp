// SPDX-License-Identifier: Apache-2.0
// What does a kernel read that it has not written? Junk, the same in every run, or zeros where the
// user asks for them.
#include "engine/memory/fill.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "harness.h"

namespace kiln::engine {
namespace {

constexpr uint32_t kWord = static_cast<uint32_t>(kJunk);

TEST(Fill, JunkIsNotANumberAndNoIndex) {
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(kWord)));
  EXPECT_TRUE(std::isnan(std::bit_cast<double>(kJunk)));
  EXPECT_EQ(kWord >> 16, kWord & 0xffffu);
  EXPECT_EQ((kWord & 0x7c00u), 0x7c00u) << "f16: the exponent of NaN";
  EXPECT_EQ((kWord & 0x7f80u), 0x7f80u) << "bf16: the exponent of NaN";
  EXPECT_GT(std::bit_cast<int32_t>(kWord), 1 << 30);
}

// Reads before it writes: the blocks and warps that come later must not see what earlier ones left.
const std::string kShared = kernel_text("u64 p", R"(
  .shared .align 4 .b8 tile[1024];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r8, %ntid.x;
  mad.lo.u32 %r3, %r2, %r8, %r1;
  mad.wide.u32 %rd2, %r3, 4, %rd1;
  mov.u32 %r5, tile;
  mad.lo.u32 %r6, %r1, 4, %r5;
  ld.shared.u32 %r7, [%r6];
  st.global.u32 [%rd2], %r7;
  st.shared.u32 [%r6], 5;
)");

const std::string kDynamic = module_text(R"(
.extern .shared .align 16 .b8 tile[];
.visible .entry k(.param .u64 p)
{
  .reg .b64 %rd<4>; .reg .b32 %r<9>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r8, %ntid.x;
  mad.lo.u32 %r3, %r2, %r8, %r1;
  mad.wide.u32 %rd2, %r3, 4, %rd1;
  mov.u32 %r5, tile;
  mad.lo.u32 %r6, %r1, 4, %r5;
  ld.shared.u32 %r7, [%r6];
  st.global.u32 [%rd2], %r7;
  st.shared.u32 [%r6], 5;
  ret;
}
)");

const std::string kLocal = kernel_text("u64 p", R"(
  .local .align 4 .b8 room[40];
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r8, %ntid.x;
  mad.lo.u32 %r3, %r2, %r8, %r1;
  mad.wide.u32 %rd2, %r3, 4, %rd1;
  mov.u64 %rd3, room;
  ld.local.u32 %r7, [%rd3+36];
  st.global.u32 [%rd2], %r7;
  st.local.u32 [%rd3+36], 5;
)");

// The second call of f stands where the first one stood.
const std::string kCalled = module_text(R"(
.func (.param .b32 out) f()
{
  .local .align 4 .b8 room[64];
  .reg .b64 %rd<2>; .reg .b32 %r<2>;
  mov.u64 %rd1, room;
  ld.local.u32 %r1, [%rd1+4];
  st.local.u32 [%rd1+4], 5;
  st.param.b32 [out], %r1;
  ret;
}
.visible .entry k(.param .u64 p)
{
  .reg .b64 %rd<4>; .reg .b32 %r<9>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r8, %ntid.x;
  mad.lo.u32 %r3, %r2, %r8, %r1;
  mad.wide.u32 %rd2, %r3, 4, %rd1;
  { .param .b32 a; call.uni (a), f, (); ld.param.b32 %r4, [a]; }
  { .param .b32 a; call.uni (a), f, (); ld.param.b32 %r5, [a]; }
  min.u32 %r6, %r4, %r5;
  st.global.u32 [%rd2], %r6;
  ret;
}
)");

void expect_all(const std::string& text, uint32_t wanted) {
  Session session(text);
  ASSERT_EQ(session.load_error, "");
  for (KilnDim3 block : {KilnDim3{128, 1, 1}, KilnDim3{40, 1, 1}}) {
    std::vector<uint32_t> out(50 * block.x, 1);
    session.regions.clear();
    LaunchOutcome outcome =
        session.launch("k", {{50, 1, 1}, block, 1024}, session.allow(out, "out"));
    ASSERT_EQ(outcome.code, 0) << outcome.text;
    EXPECT_EQ(std::count(out.begin(), out.end(), wanted), static_cast<long>(out.size()));
  }
}

TEST(Fill, SharedAndLocalMemoryBeginAsJunk) {
  for (const auto* text : {&kShared, &kDynamic, &kLocal, &kCalled}) expect_all(*text, kWord);
}

TEST(Fill, OrAsZeros) {
  setenv("KILN_ENGINE_FILL", "zero", 1);
  for (const auto* text : {&kShared, &kDynamic, &kLocal, &kCalled}) expect_all(*text, 0);
  unsetenv("KILN_ENGINE_FILL");
}

}  // namespace
}  // namespace kiln::engine
