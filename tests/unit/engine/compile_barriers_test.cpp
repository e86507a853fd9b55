// SPDX-License-Identifier: Apache-2.0
// Does machine code between barriers do what the interpreter does? A warp that has come to one
// takes those behind it along, which may leave elsewhere, find a fault or end on the way; and code
// may begin with a branch at which lanes disagree.
#include <fmt/format.h>

#include "compile_case.h"

namespace kiln::engine {
namespace {

constexpr KilnDim3 kBlocksThatMeet[] = {{256, 1, 1}, {16, 16, 1}, {100, 1, 1}, {32, 4, 1},
                                        {64, 2, 2},  {512, 1, 1}, {8, 8, 1},   {40, 1, 1}};

// %r1: the number of a thread in its block; %r2: the same times 4; %rd5: its own word of the
// output.
const std::string kBeforeBarriers =
    ".shared .align 4 .b8 x[4096]; .shared .align 4 .b8 y[4096];"
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n]; mov.u32 %r3, %tid.x;"
    "mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.y; mov.u32 %r6, %ntid.y; mov.u32 %r7, %tid.z;"
    "mad.lo.u32 %r8, %r7, %r6, %r5; mad.lo.u32 %r1, %r8, %r4, %r3; shl.b32 %r2, %r1, 2;"
    "mov.u32 %r10, %ctaid.x; mad.lo.u32 %r11, %r10, 512, %r1; mul.wide.u32 %rd3, %r11, 4;"
    "add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; mov.u32 %r12, x; mov.u32 %r13, y;"
    "add.u32 %r14, %r12, %r2; add.u32 %r15, %r13, %r2; ld.global.u32 %r16, [%rd4];"
    "mul.lo.u32 %r17, %r16, 3; st.shared.u32 [%r14], %r16; st.shared.u32 [%r15], %r17;\n";
const std::string kBehindBarriers =
    "bar.sync 0; ld.shared.u32 %r16, [%r14]; ld.shared.u32 %r17, [%r15]; xor.b32 %r18, %r16, %r17;"
    "st.global.u32 [%rd5], %r18;\n";

void expect_same_phases(const std::string& body, uint32_t n, const std::string& what) {
  const std::string text = kernel_text("u64 p, u64 q, u32 n", kBeforeBarriers + body);
  setenv("KILN_ENGINE_THREADS", "1", 1);  // of several blocks at once any may be the first to fault
  for (KilnDim3 block : kBlocksThatMeet) {
    const Ran compiled = run_compiled(text, block, n, "always", n);
    const Ran interpreted = run_compiled(text, block, n, "0", n);
    EXPECT_EQ(compiled.text, interpreted.text) << what << " in " << block.x;
    ASSERT_EQ(compiled.out, interpreted.out) << what << " in " << block.x << "\n" << body;
  }
  unsetenv("KILN_ENGINE_THREADS");
}

// Between two barriers each thread reads of one array and writes its own word of the other one, if
// some condition holds: any order of the warps has the same results.
class Phases {
 public:
  explicit Phases(uint32_t seed) : random_(seed) {}
  std::string text() {
    std::string out;
    const uint32_t count = 2 + random_() % 6, leaves = random_() % 12;
    for (uint32_t i = 0; i < count; ++i) {
      out +=
          i == leaves ? fmt::format("setp.ge.u32 %p1, %r1, {}; @%p1 bra END;\n", few()) : phase(i);
    }
    return out + kBehindBarriers + "END: ret;";
  }

 private:
  uint32_t few() { return random_() % 3 ? 1u << random_() % 9 : random_() % 300; }
  std::string phase(uint32_t i) {
    const bool to_y = i % 2 == 0;
    const char *from = to_y ? "%r12" : "%r13", *to = to_y ? "%r15" : "%r14";
    const char* own = to_y ? "%r14" : "%r15";
    const std::string compute = fmt::format(
        "ld.shared.u32 %r20, [{}]; mad.lo.u32 %r21, %r20, {}, %r1;{} st.shared.u32 [{}], %r21;\n",
        "%r19", random_() | 1u, random_() % 2 ? "xor.b32 %r21, %r21, %r2;" : "", to);
    const std::string neighbour =
        fmt::format("xor.b32 %r18, %r2, {}; add.u32 %r19, {}, %r18;", random_() % 512 * 4, from);
    switch (random_() % 6) {
      case 0:  // the condition is there before the barrier
        return fmt::format("setp.ge.u32 %p2, %r1, {}; bar.sync 0; @%p2 bra L{}; {}{} L{}:\n", few(),
                           i, neighbour, compute, i);
      case 1:  // and behind it
        return fmt::format("bar.sync 0; setp.lt.u32 %p2, %r1, {}; @!%p2 bra L{}; {}{} L{}:\n",
                           few(), i, neighbour, compute, i);
      case 2: {  // the others would read beyond the array
        const uint32_t stride = 1u << random_() % 5;
        return fmt::format(
            "setp.ge.u32 %p2, %r1, {}; bar.sync 0; @%p2 bra L{}; mul.lo.u32 %r18, %r2, {};"
            "add.u32 %r19, {}, %r18; {} L{}:\n",
            1024 / stride / (1 + random_() % 2), i, stride, from, compute, i);
      }
      case 3:  // any lanes
        return fmt::format(
            "bar.sync 0; ld.shared.u32 %r20, [{}]; and.b32 %r21, %r20, {}; setp.ne.u32 %p3, %r21, "
            "0; @%p3 bra L{}; mul.lo.u32 %r22, %r20, 7; st.shared.u32 [{}], %r22; L{}:\n",
            own, 1u << random_() % 20, i, to, i);
      case 4:  // only a store
        return fmt::format(
            "setp.gt.u32 %p4, %r1, {}; add.u32 %r23, %r2, {}; bar.sync 0; @%p4 bra L{};"
            "st.shared.u32 [{}], %r23; L{}:\n",
            few(), i, i, to, i);
      default:  // a loop around a barrier
        return fmt::format(
            "mov.u32 %r24, {}; L{}: bar.sync 0; setp.ge.u32 %p5, %r1, %r24; @%p5 bra M{}; "
            "st.shared.u32 [{}], %r24; M{}: shr.u32 %r24, %r24, 1; setp.ne.u32 %p6, %r24, 0;"
            "@%p6 bra L{};\n",
            few(), i, i, to, i, i);
    }
  }
  std::mt19937 random_;
};

TEST(CompiledBarriers, HaveTheSameBits) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    expect_same_phases(Phases(seed).text(), seed, fmt::format("program {}", seed));
    if (HasFatalFailure()) return;
  }
}

// Two and three Ops between barriers, of which the first is the branch.
TEST(CompiledBarriers, OfATreeEnterCodeThatBeginsWithABranch) {
  const std::string tree =
      "setp.gt.u32 %p1, %r1, 63; bar.sync 0; @%p1 bra A; st.shared.u32 [%r15], %r17; A: bar.sync 0;"
      "@%p1 bra B; ld.shared.u32 %r16, [%r15]; st.shared.u32 [%r14], %r16; B:\n" +
      kBehindBarriers;
  const std::string text = kernel_text("u64 p, u64 q, u32 n", kBeforeBarriers + tree);
  const Ran compiled = run_compiled(text, {256, 1, 1}, 5, "always", 5);
  EXPECT_EQ(compiled.out, run_compiled(text, {256, 1, 1}, 5, "0", 5).out);
  if (!compiles()) return;
  EXPECT_EQ(compiled.facts.stretches, 3u);  // all but the last Ops, which are few
  EXPECT_EQ(compiled.facts.compiled, 3u);
}

// The n-th thread reads where nothing is.
TEST(CompiledBarriers, FindFaultsBehindThem) {
  const std::string fault =
      "setp.eq.u32 %p1, %r1, %r9; selp.b32 %r20, 0x100000, 0, %p1; bar.sync 0;"
      "add.u32 %r21, %r14, %r20; ld.shared.u32 %r22, [%r21]; add.u32 %r22, %r22, 1; bar.sync 0;"
      "st.shared.u32 [%r14], %r22;\n" +
      kBehindBarriers;
  for (uint32_t n : {0u, 31u, 32u, 39u, 63u, 200u, 511u, 5000u})
    expect_same_phases(fault, n, "a fault");
}

TEST(CompiledBarriers, WithoutEndReachTheStepLimit) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      kBeforeBarriers +
          "L: bar.sync 0; ld.shared.u32 %r16, [%r14]; add.u32 %r16, %r16, 1; bar.sync 0;"
          "st.shared.u32 [%r14], %r16; setp.ne.u32 %p1, %r2, 1; @%p1 bra L;");
  setenv("KILN_ENGINE_STEP_LIMIT", "100000", 1);
  const Ran ran = run_compiled(text, {256, 1, 1}, 0, "always", 1);
  unsetenv("KILN_ENGINE_STEP_LIMIT");
  EXPECT_NE(ran.text.find("Step limit reached"), std::string::npos) << ran.text;
}

}  // namespace
}  // namespace kiln::engine
