// SPDX-License-Identifier: Apache-2.0
// Do compiled stretches do what the interpreter does where a target has instructions of its own?
// The one for vectors of 512 bits above all.
#include <fmt/format.h>

#include <cmath>

#include "compile_case.h"

namespace kiln::engine {
namespace {

// By an offset that no instruction holds: what adds it is for all lanes, and the store for some.
TEST(CompiledWidths, StoresForSomeLanesFarFromTheAddress) {
  for (const char* offset : {"0", "8589934592", "-8589934592"}) {
    expect_same_values(fmt::format(
        "mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd2, %rd5; sub.s64 %rd10, %rd6, {0};"
        "ld.global.u32 %r20, [%rd4]; mov.u32 %r10, 0;\n"
        "L: add.u32 %r21, %r20, %r10; and.b32 %r22, %r21, 3; setp.ge.u32 %p1, %r22, %r9; @%p1 bra "
        "A;"
        "st.global.u32 [%rd10+{0}], %r21;\nA: add.u32 %r10, %r10, 1; setp.lt.u32 %p2, %r10, 2;"
        "@%p2 bra L;\n",
        offset));
  }
}

// Of every number but for its exponent, as a root and a division in f64 give them; and of others of
// all kinds.
TEST(CompiledWidths, ReciprocalRootsOfAllNumbers) {
  constexpr uint32_t kBlock = 256, kBlocks = 512, kEach = 128, kThreads = kBlock * kBlocks;
  const std::string text = kernel_text(
      "u64 q, u32 first, u32 step",
      "ld.param.u64 %rd1, [q]; ld.param.u32 %r2, [first]; ld.param.u32 %r3, [step];"
      "mov.u32 %r1, %tid.x; mov.u32 %r4, %ctaid.x; mad.lo.u32 %r1, %r4, 256, %r1;"
      "mul.wide.u32 %rd2, %r1, 4; add.s64 %rd2, %rd2, %rd1; mad.lo.u32 %r5, %r1, %r3, %r2;"
      "mul.lo.u32 %r6, %r3, 131072; mov.u32 %r7, 0;\n"
      "L: mov.b32 %f1, %r5; rsqrt.approx.f32 %f2, %f1; st.global.f32 [%rd2], %f2;"
      "add.s64 %rd2, %rd2, 524288; add.u32 %r5, %r5, %r6; add.u32 %r7, %r7, 1;"
      "setp.lt.u32 %p1, %r7, 128; @%p1 bra L;");
  for (const auto& [first, step] : {std::pair{0x3f800000u, 1u}, std::pair{0u, 256u}}) {
    Session session(text);
    std::vector<uint32_t> out(size_t{kThreads} * kEach);
    const LaunchOutcome done = session.launch("k", {{kBlocks, 1, 1}, {kBlock, 1, 1}},
                                              session.allow(out, "out"), first, step);
    ASSERT_EQ(done.text, "");
    uint32_t wrong = 0, bits = first;
    for (size_t i = 0; i < out.size(); ++i, bits += step) {
      const auto x = std::bit_cast<float>(bits);
      const auto wanted = static_cast<float>(1 / std::sqrt(static_cast<double>(x)));
      const uint32_t known = std::isnan(wanted) ? 0x7fffffffu : std::bit_cast<uint32_t>(wanted);
      if (out[i] == known) continue;
      if (++wrong < 5) ADD_FAILURE() << std::hex << bits << ": " << out[i] << ", not " << known;
    }
    EXPECT_EQ(wrong, 0u);
  }
}

}  // namespace
}  // namespace kiln::engine
