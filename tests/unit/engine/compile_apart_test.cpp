// SPDX-License-Identifier: Apache-2.0
// Do lanes that go apart at branches of compiled code do what they do in the interpreter? Random
// programs of nested branches and loops that lanes leave one after the other, with stores that
// other lanes see.
#include <fmt/format.h>

#include "compile_case.h"

namespace kiln::engine {
namespace {

class Apart {
 public:
  // `own`: no lane touches what another one stores.
  explicit Apart(uint32_t seed, bool own = false) : random_(seed), own_(own) {}

  std::string text() {
    std::string body =
        ".shared .align 8 .b8 all[1024]; .local .align 8 .b8 own[64]; .reg .f64 %d<4>;"
        "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n];"
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.y;"
        "mad.lo.u32 %r1, %r3, %r2, %r1; mov.u32 %r4, %ctaid.x; mad.lo.u32 %r5, %r4, 256, %r1;"
        "mul.wide.u32 %rd5, %r5, 64; add.s64 %rd6, %rd2, %rd5; mul.wide.u32 %rd3, %r5, 4;"
        "add.s64 %rd4, %rd1, %rd3; mov.u32 %r8, all; mov.u64 %rd8, own; mov.u32 %r10, %r1;"
        "ld.global.u32 %r11, [%rd4]; ld.global.u32 %r12, [%rd4+64]; mov.u32 %r13, 7;"
        "xor.b32 %r14, %r1, %r9; mov.u32 %r15, %r5; mov.f32 %f1, 0f3F800000;"
        "cvt.rn.f32.u32 %f2, %r1; cvt.u16.u32 %rs1, %r11; cvt.rn.f64.u32 %d1, %r1;"
        "mov.u64 %rd9, %rd5; setp.lt.u32 %p2, %r1, 9;\n";
    const bool loops = one_of(2) == 0;
    if (loops) body += "mov.u32 %r30, 0;\nTOP:\n";
    for (uint32_t i = 0; i < 6; ++i) body += statement(0);
    if (loops) {
      body += one_of(2) ? "add.u32 %r30, %r30, 1; setp.lt.u32 %p9, %r30, 3; @%p9 bra TOP;\n"
                        : "and.b32 %r31, %r14, 3; add.u32 %r30, %r30, 1;"
                          "setp.le.u32 %p9, %r30, %r31; @%p9 bra TOP;\n";
    }
    body += "\nEND: selp.u32 %r16, 3, 5, %p2; cvt.u32.u16 %r17, %rs1; add.u32 %r16, %r16, %r17;";
    for (uint32_t i = 0; i < 6; ++i)
      body += fmt::format("st.global.u32 [%rd6+{}], %r1{};", i * 4, i);
    body +=
        "st.global.f32 [%rd6+24], %f1; st.global.f32 [%rd6+28], %f2; st.global.f64 [%rd6+32], %d1;"
        "st.global.u64 [%rd6+40], %rd9; st.global.u32 [%rd6+48], %r16;"
        "ld.local.u32 %r18, [own+12]; st.global.u32 [%rd6+52], %r18;"
        "and.b32 %r19, %r1, " +
        std::string(own_ ? "255" : "127") +
        "; shl.b32 %r19, %r19, 2; add.u32 %r19, %r19, %r8;"
        "ld.shared.u32 %r20, [%r19]; st.global.u32 [%rd6+56], %r20;";
    return kernel_text("u64 p, u64 q, u32 n", body);
  }

 private:
  uint32_t one_of(uint32_t count) { return static_cast<uint32_t>(random_()) % count; }
  std::string any() { return fmt::format("%r1{}", one_of(6)); }

  std::string compute() {
    const uint32_t kind = own_ ? one_of(22) : one_of(16);
    if (kind >= 16) return compute_more(kind);
    switch (kind) {
      case 0:
        return fmt::format("add.u32 {}, {}, {};", any(), any(), any());
      case 1:
        return fmt::format("mad.lo.u32 {}, {}, 5, {};", any(), any(), any());
      case 2:
        return fmt::format("xor.b32 {}, {}, {}; shr.u32 {}, {}, 3;", any(), any(), any(), any(),
                           any());
      case 3:
        return "fma.rn.f32 %f1, %f2, %f1, %f2; add.f32 %f2, %f2, 0f3F000000;";
      case 4:
        return fmt::format("cvt.u16.u32 %rs2, {}; add.s16 %rs1, %rs1, %rs2;", any());
      case 5:
        return fmt::format("cvt.rn.f64.u32 %d2, {}; fma.rn.f64 %d1, %d1, %d2, %d2;", any());
      case 6:
        return fmt::format("popc.b32 {}, {}; brev.b32 {}, {};", any(), any(), any(), any());
      case 7:
        return fmt::format(
            "and.b32 %r21, {}, 1023; mul.wide.u32 %rd10, %r21, 4;"
            "add.s64 %rd10, %rd1, %rd10; ld.global.u32 {}, [%rd10];",
            any(), any());
      case 8:
        if (own_) return fmt::format("st.global.u32 [%rd6+60], {};", any());
        return fmt::format("st.global.u32 [%rd6+60], {}; ld.global.u32 {}, [%rd6+60];", any(),
                           any());
      case 9:  // several lanes to one place
        if (own_) {
          return fmt::format(
              "shl.b32 %r21, %r1, 2; add.u32 %r21, %r21, %r8;"
              "ld.shared.u32 {}, [%r21]; st.shared.u32 [%r21], {};",
              any(), any());
        }
        return fmt::format(
            "and.b32 %r21, {}, 31; shl.b32 %r21, %r21, 2; add.u32 %r21, %r21, %r8;"
            "st.shared.u32 [%r21], {}; ld.shared.u32 {}, [%r21];",
            any(), any(), any());
      case 10:
        return fmt::format(
            "and.b32 %r21, {}, 15; mul.wide.u32 %rd10, %r21, 4;"
            "add.s64 %rd10, %rd8, %rd10; st.local.u32 [%rd10], {};"
            "ld.local.u8 {}, [own+13]; st.local.u16 [own+14], {};",
            any(), any(), any(), any());
      case 11:
        return fmt::format("mad.wide.u32 %rd9, {}, 3, %rd9; setp.gt.u32 %p2, {}, {};", any(), any(),
                           any());
      case 13:
        return fmt::format(
            "mov.b64 {{%r21, %r22}}, %rd9; xor.b32 {}, {}, %r21; mov.b64 %rd9, {{%r22, {}}};"
            "mov.b64 {{%r21, %r22}}, %d1; add.u32 {}, {}, %r22;",
            any(), any(), any(), any(), any());
      case 14:
        return fmt::format(
            "mov.b32 {{%rs2, %rs3}}, {}; add.s16 %rs1, %rs1, %rs3; mov.b32 {}, {{%rs1, %rs2}};",
            any(), any());
      case 12:
        return "sin.approx.f32 %f3, %f2; add.f32 %f1, %f1, %f3;";
      default:
        return fmt::format("selp.u32 {}, {}, {}, %p2; cvt.rn.f32.u32 %f2, {};", any(), any(), any(),
                           any());
    }
  }

  // What only lanes that go one by one do: nothing of it is in other tests.
  std::string compute_more(uint32_t kind) {
    switch (kind) {
      case 16:
        return fmt::format("clz.b64 {}, %rd9; mul.hi.u64 %rd9, %rd9, %rd5; shl.b64 %rd9, %rd9, {};",
                           any(), any());
      case 17:
        return fmt::format("or.b32 %r21, {}, 1; rem.u32 {}, {}, %r21; div.s32 {}, {}, %r21;", any(),
                           any(), any(), any(), any());
      case 18:  // which no code of one lane has
        return fmt::format(
            "shl.b32 %r21, %r1, 2; add.u32 %r21, %r21, %r8; atom.shared.add.u32 {}, [%r21], {};",
            any(), any());
      case 20:
        return fmt::format(
            "cvt.u16.u32 %rs2, {}; mul.lo.s16 %rs3, %rs2, %rs1; sub.s16 %rs1, %rs3, %rs2;"
            "setp.lt.u16 %p2, %rs1, %rs2; selp.u32 {}, 1, 9, %p2; setp.ge.s16 %p2, %rs3, -5;"
            "cvt.s32.s16 {}, %rs3; shr.s16 %rs2, %rs3, 2; min.s16 %rs1, %rs1, %rs2;",
            any(), any(), any());
      case 19:
        return fmt::format(
            "cvt.s16.s8 %rs2, %rs1; setp.gt.s16 %p2, %rs2, 3; cvt.s64.s8 %rd10, %rs1;"
            "add.s64 %rd9, %rd9, %rd10; setp.lt.f32 %p2, %f1, %f2; shf.l.wrap.b32 {}, {}, {}, {};",
            any(), any(), any(), any());
      default:
        return fmt::format(
            "cvt.u32.u8 {}, %rs1; st.local.u8 [own+9], %rs1; ld.local.s8 %rs2, [own+9];"
            "xor.b16 %rs1, %rs1, %rs2; setp.ne.s16 %p2, %rs1, %rs2; cvt.u64.u16 %rd10, %rs2;"
            "xor.b64 %rd9, %rd9, %rd10; cvt.rn.f32.s16 %f2, %rs1; cvt.s8.s32 {}, {};",
            any(), any(), any());
    }
  }

  std::string condition(uint32_t depth) {
    const uint32_t bit = 1u << one_of(6);
    return one_of(5) == 0 ? fmt::format("setp.gt.u32 %p{}, %r9, 3;", 3 + depth)
                          : fmt::format("and.b32 %r22, {}, {}; setp.eq.u32 %p{}, %r22, 0;", any(),
                                        bit, 3 + depth);
  }

  // Of this depth at most: deeper ones only compute.
  std::string statement(uint32_t depth) {
    const uint32_t kind = one_of(8), label = labels_++;
    if (depth == 3 || kind < 4) return compute() + "\n";
    std::string out;
    if (kind < 6) {
      out = condition(depth) +
            fmt::format("@{}%p{} bra E{};\n", one_of(2) ? "!" : "", 3 + depth, label);
      for (uint32_t i = 0; i < 1 + one_of(3); ++i) out += statement(depth + 1);
      const bool has_else = one_of(2) != 0;
      if (has_else) out += fmt::format("bra F{};\n", label);
      out += fmt::format("E{}:\n", label);
      if (has_else) out += statement(depth + 1) + fmt::format("F{}:\n", label);
      return out;
    }
    // A loop whose lanes have different numbers of rounds, and may leave it in the middle.
    const uint32_t counter = 23 + depth;
    out = fmt::format("mov.u32 %r{0}, 0; and.b32 %r3{1}, {2}, {3};\nL{4}:\n", counter, 2 + depth,
                      any(), one_of(3) ? 3 : 0, label);
    for (uint32_t i = 0; i < 1 + one_of(3); ++i) out += statement(depth + 1);
    const uint32_t leaves = one_of(4);
    if (leaves == 0) out += condition(depth) + fmt::format("@%p{} bra M{};\n", 3 + depth, label);
    if (leaves == 1 && one_of(4) == 0)
      out += condition(depth) + fmt::format("@%p{} bra END;\n", 3 + depth);
    out += statement(depth + 1);
    return out + fmt::format(
                     "add.u32 %r{0}, %r{0}, 1; setp.le.u32 %p{1}, %r{0}, %r3{2}; @%p{1} bra "
                     "L{3};\nM{3}:\n",
                     counter, 3 + depth, 2 + depth, label);
  }

  std::mt19937 random_;
  bool own_;
  uint32_t labels_ = 0;
};

// The first word that differs, by thread and by what it is.
std::string difference(const Ran& a, const Ran& b) {
  for (size_t i = 0; i < a.out.size(); ++i) {
    if (a.out[i] != b.out[i])
      return fmt::format("thread {}, word {}: {:#x}, {:#x}", i / 16, i % 16, a.out[i], b.out[i]);
  }
  return "";
}

class LanesApart : public testing::TestWithParam<int> {};

TEST_P(LanesApart, HaveTheSameBits) {
  uint64_t masked = 0;
  for (int i = 0; i < 25; ++i) {
    const auto seed = static_cast<uint32_t>(GetParam() * 25 + i);
    const std::string text = Apart(seed).text();
    const KilnDim3 block = kShapes[seed % std::size(kShapes)];
    for (uint32_t n : {1u, 6u}) {
      const Ran compiled = run_compiled(text, block, n, "always", seed);
      const Ran interpreted = run_compiled(text, block, n, "0", seed);
      EXPECT_EQ(compiled.text, interpreted.text);
      EXPECT_EQ(difference(compiled, interpreted), "") << seed << "\n" << text;
      masked += compiled.facts.masked;
    }
  }
  if (compiles()) {
    EXPECT_GT(masked, 0u);
  }
}

// A loop around a phase that only some lanes run: its branch back is in the code.
TEST(LanesApartLoops, ReachTheStepLimit) {
  setenv("KILN_ENGINE_STEP_LIMIT", "1000000", 1);
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      "mov.u32 %r1, %tid.x; mov.u32 %r10, 1; setp.lt.u32 %p1, %r1, 99;\n"
      "L: vote.sync.any.pred %p2, %p1, 0xff; add.u32 %r10, %r10, %r1; mul.lo.u32 %r11, %r10, 3;"
      "xor.b32 %r10, %r10, %r11; shr.u32 %r12, %r10, 3; add.u32 %r10, %r10, %r12;"
      "mad.lo.u32 %r11, %r11, 5, %r12; xor.b32 %r10, %r10, %r11; @%p2 bra L;");
  const Ran ran = run_compiled(text, {8, 1, 1}, 0, "always", 1);
  unsetenv("KILN_ENGINE_STEP_LIMIT");
  EXPECT_NE(ran.text.find("Step limit reached"), std::string::npos) << ran.text;
  if (compiles()) {
    EXPECT_GT(ran.facts.masked, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LanesApart, testing::Range(0, 6));

// Each lane goes through all of a loop by itself, and leaves it where only the interpreter knows
// on.
TEST_P(LanesApart, HaveTheSameBitsOneByOne) {
  uint64_t alone = 0;
  for (int i = 0; i < 25; ++i) {
    const auto seed = static_cast<uint32_t>(1000 + GetParam() * 25 + i);
    const std::string text = Apart(seed, true).text();
    const KilnDim3 block = kShapes[seed % std::size(kShapes)];
    for (uint32_t n : {1u, 6u}) {
      const Ran compiled = run_compiled(text, block, n, "alone", seed);
      const Ran interpreted = run_compiled(text, block, n, "0", seed);
      EXPECT_EQ(compiled.text, interpreted.text);
      EXPECT_EQ(difference(compiled, interpreted), "") << seed << "\n" << text;
      alone += compiled.facts.alone;
    }
  }
  if (compiles()) {
    EXPECT_GT(alone, 0u);
  }
}

// Rounds of different numbers, by a body that compilers write before the test that comes first.
std::string one_by_one(const std::string& round) {
  return kernel_text("u64 p, u64 q, u32 n",
                     kBegin +
                         "mov.u32 %r10, %r1; mov.u32 %r11, 0; bra TEST;\n"
                         "BODY: and.b32 %r12, %r10, 1; setp.eq.u32 %p1, %r12, 0;"
                         "@%p1 bra EVEN; mad.lo.u32 %r10, %r10, 3, 1; bra TEST;\n"
                         "EVEN: shr.u32 %r10, %r10, 1;\n" +
                         round +
                         "TEST: add.u32 %r11, %r11, 1; setp.gt.u32 %p2, %r10, 1; @%p2 bra BODY;\n"
                         "st.global.u32 [%rd6], %r11;");
}

TEST(LanesOneByOne, EnterALoopInItsMiddle) {
  for (KilnDim3 block : kShapes) {
    const Ran ran = run_compiled(one_by_one(""), block, 0, "alone", 1);
    EXPECT_EQ(ran.text, "");
    EXPECT_EQ(ran.out, run_compiled(one_by_one(""), block, 0, "0", 1).out);
    if (compiles()) {
      EXPECT_GT(ran.facts.alone, 0u);
    }
  }
}

// In code for one lane a value of 64 bits is in one register, whether integers or f64 use it.
TEST(LanesOneByOne, AddToTheBitsOfDoublesOnce) {
  const std::string body =
      "ld.global.u32 %r6, [%rd4]; and.b32 %r6, %r6, 15; add.u32 %r6, %r6, 1; cvt.rn.f64.u32 %fd1, "
      "%r9;"
      "mov.b64 %rd10, 0x3ff0000000000000; mov.b64 %rd11, 1;\n"
      "L: add.s64 %rd10, %rd10, 0x0000100000000000; add.f64 %fd1, %fd1, %rd10;"
      "mul.lo.s64 %rd11, %rd11, 3; xor.b64 %rd11, %rd11, %rd10; shl.b64 %rd11, %rd11, 1;"
      "add.f64 %fd1, %fd1, %rd11;"
      "sub.u32 %r6, %r6, 1; setp.ne.u32 %p1, %r6, 0; @%p1 bra L;\n"
      "st.global.f64 [%rd6], %fd1; st.global.u64 [%rd6+8], %rd11;";
  const std::string text = kernel_text("u64 p, u64 q, u32 n", kBegin + body);
  const Ran ran = run_compiled(text, {64, 1, 1}, 0, "alone", 1);
  EXPECT_EQ(ran.text, "");
  EXPECT_EQ(ran.out, run_compiled(text, {64, 1, 1}, 0, "0", 1).out);
  if (compiles()) {
    EXPECT_GT(ran.facts.alone, 0u);
  }
}

// A loop that is entered in its middle may not have computed what it writes elsewhere: its NaNs
// keep their bits.
TEST(LanesOneByOne, KeepTheBitsOfWhatNoRoundWrote) {
  const std::string body =
      "ld.global.f32 %f1, [%rd4]; ld.global.u32 %r6, [%rd4]; and.b32 %r6, %r6, 3; bra COND;\n"
      "BODY: mul.f32 %f1, %f1, 0f40000000; sub.u32 %r6, %r6, 1; and.b32 %r7, %r6, 1;"
      "setp.eq.u32 %p3, %r7, 0; @%p3 bra COND; add.f32 %f1, %f1, 0f3f800000;\n"
      "COND: setp.ne.u32 %p1, %r6, 0; @%p1 bra BODY; st.global.f32 [%rd6], %f1;";
  const std::string text = kernel_text("u64 p, u64 q, u32 n", kBegin + body);
  for (uint32_t seed = 1; seed < 5; ++seed) {
    const Ran ran = run_compiled(text, {64, 1, 1}, 0, "alone", seed);
    EXPECT_EQ(ran.out, run_compiled(text, {64, 1, 1}, 0, "0", seed).out);
    if (compiles()) {
      EXPECT_GT(ran.facts.alone, 0u);
    }
  }
}

// What one stores there, another one of the warp might load.
TEST(LanesOneByOne, DoNotLoadWhereTheyStore) {
  const std::string reads = "st.global.u32 [%rd6+4], %r10;\n";
  const std::string both = "ld.global.u32 %r13, [%rd6+4]; st.global.u32 [%rd6+4], %r10;\n";
  const std::string strong = "ld.volatile.shared.u32 %r13, [0];\n";
  const std::string apart = "ld.global.u32 %r13, [%rd4]; st.global.u32 [%rd6+4], %r13;\n";
  for (const auto& [round, may] :
       {std::pair(reads, true), {both, false}, {strong, false}, {apart, true}}) {
    const std::string text = one_by_one(round);
    const Ran ran = run_compiled(text, {64, 1, 1}, 0, "alone", 1);
    const Ran wanted = run_compiled(text, {64, 1, 1}, 0, "0", 1);
    EXPECT_EQ(ran.text, wanted.text);
    EXPECT_EQ(ran.out, wanted.out);
    if (compiles()) {
      EXPECT_EQ(ran.facts.alone != 0, may) << round;
    }
  }
}

TEST(LanesOneByOne, ComputeWithConstantsAndRoundings) {
  const std::string sum =
      "mov.f32 %f3, 0f40500000; mov.f32 %f4, 0f40000000; mov.f32 %f5, 0fC0F00000;"
      "fma.rn.f32 %f6, %f5, %f4, %f3;\n";
  for (const char* round :
       {"cvt.rn.f32.u32 %f1, %r10; add.rz.f32 %f7, %f1, %f6;\n",
        "ld.global.f32 %f1, [%rd4]; cos.approx.f32 %f2, %f1; add.rz.f32 %f7, %f2, %f6;\n",
        "ld.global.nc.f32 %f1, [%rd1+4]; cos.approx.f32 %f2, %f1; add.rz.f32 %f7, %f2, %f6;\n",
        "ld.global.nc.f32 %f1, [%rd1+4]; cos.approx.f32 %f2, %f1; add.f32 %f7, %f2, %f6;\n"}) {
    const std::string text = one_by_one(sum + round + "st.global.f32 [%rd6+4], %f7;\n");
    const Ran ran = run_compiled(text, {64, 1, 1}, 0, "alone", 1);
    EXPECT_EQ(ran.text, "");
    EXPECT_EQ(ran.out, run_compiled(text, {64, 1, 1}, 0, "0", 1).out) << round;
  }
}

// A fault has the interpreter's words, and what was stored before it stays.
TEST(LanesOneByOne, FindFaults) {
  const std::string text = one_by_one(
      "mul.wide.u32 %rd9, %r10, 65536; add.s64 %rd9, %rd9, %rd1; ld.global.u32 %r13, [%rd9];\n");
  const Ran ran = run_compiled(text, {64, 1, 1}, 0, "alone", 1);
  EXPECT_NE(ran.text, "");
  EXPECT_EQ(ran.text, run_compiled(text, {64, 1, 1}, 0, "0", 1).text);
}

TEST(LanesOneByOne, ReachTheStepLimit) {
  setenv("KILN_ENGINE_STEP_LIMIT", "1000000", 1);
  const Ran ran =
      run_compiled(one_by_one("add.u32 %r10, %r10, %r10;\n"), {64, 1, 1}, 0, "alone", 1);
  unsetenv("KILN_ENGINE_STEP_LIMIT");
  EXPECT_NE(ran.text.find("Step limit reached"), std::string::npos) << ran.text;
  if (compiles()) {
    EXPECT_GT(ran.facts.alone, 0u);
  }
}

// Lanes disagree at its first branch in every round, and lanes that go apart do not count: machine
// code is left at once, again and again, and is left alone for longer and longer.
std::string left_at_once() {
  std::string body =
      ".shared .align 4 .b8 all[256]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n];"
      "mov.u32 %r1, %tid.x; mov.u32 %r4, %ctaid.x; mad.lo.u32 %r5, %r4, 64, %r1;"
      "mul.wide.u32 %rd5, %r5, 4; add.s64 %rd6, %rd2, %rd5; mov.u32 %r8, all; mov.u32 %r10, 0;"
      "shl.b32 %r11, %r1, 2; add.u32 %r8, %r8, %r11; mov.u32 %r12, 1;\n"
      "L: add.u32 %r13, %r10, %r1; and.b32 %r14, %r13, 1; setp.eq.u32 %p1, %r14, 0;"
      "@%p1 bra AROUND;\n";
  for (uint32_t i = 0; i < 80; ++i) body += "mad.lo.u32 %r12, %r12, %r13, %r12;";
  body +=
      "atom.shared.add.u32 %r15, [%r8], 1; xor.b32 %r12, %r12, %r15;\n"
      "AROUND: red.global.add.u32 [%rd6], %r12; add.u32 %r10, %r10, 1;"
      "setp.lt.u32 %p2, %r10, %r9; @%p2 bra L;";
  return kernel_text("u64 p, u64 q, u32 n", body);
}

TEST(CompiledApart, CodeThatLosesRests) {
  constexpr uint32_t kRounds = 3000, kWarps = 6;
  setenv("KILN_ENGINE_THREADS", "1", 1);  // counts of several threads may get lost
  const Ran wanted = run_compiled(left_at_once(), {64, 1, 1}, kRounds, "0", 1);
  const Ran by_default = run_compiled(left_at_once(), {64, 1, 1}, kRounds, "1", 1);
  EXPECT_EQ(by_default.out, wanted.out);
  const Ran always = run_compiled(left_at_once(), {64, 1, 1}, kRounds, "always", 1);
  unsetenv("KILN_ENGINE_THREADS");
  EXPECT_EQ(always.out, wanted.out);
  if (!compiles()) return;
  EXPECT_GT(by_default.facts.losing, 0u);
  EXPECT_GT(by_default.facts.entered, 0u);
  EXPECT_LT(by_default.facts.entered, kRounds * kWarps / 4);
  EXPECT_EQ(always.facts.losing, 0u);
  EXPECT_GT(always.facts.entered, kRounds * kWarps / 2);
}

// A scalar is one value for all lanes. Lanes that wait behind the Op that writes it need it, though
// the code that other lanes run meanwhile has skipped this Op.
TEST(CompiledApart, KeepsTheScalarsOfLanesThatWait) {
  const auto copy = [](uint32_t bit, const char* to, uint32_t d) {
    return fmt::format(
        "mad.lo.u32 %r{0}, %r15, 0x9e3779b1, %r13; shr.u32 %r{1}, %r{0}, 20;"
        "mul.wide.u32 %rd{0}, %r{1}, 4; add.s64 %rd{1}, %rd1, %rd{0};"
        "ld.global.nc.u32 %r{2}, [%rd{1}]; xor.b32 %r{3}, %r{2}, %r{0}; and.b32 %r{4}, %r{3}, {7};"
        "setp.eq.u32 %p2, %r{4}, 0; @%p2 bra {8}; ld.global.nc.u32 %r{5}, [%rd6];"
        "min.s16x2 %r{6}, %r1, %r{5}; add.u32 %r13, %r13, %r{6}; st.global.u32 [%rd5], %r{6};\n"
        "{8}: ",
        d, d + 1, d + 2, d + 3, d + 4, d + 5, d + 6, bit, to);
  };
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;"
      "mad.lo.u32 %r3, %r2, 64, %r1; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3;"
      "add.s64 %rd5, %rd2, %rd3; mul.wide.u32 %rd7, %r2, 4; add.s64 %rd6, %rd1, %rd7;"
      "ld.global.nc.u32 %r10, [%rd4+1024]; and.b32 %r11, %r10, 15; mov.u32 %r12, 0;"
      "mov.u32 %r13, 0; setp.eq.u32 %p1, %r11, 0; @%p1 bra END;\n"
      "L: shr.u32 %r15, %r10, %r12; " +
          copy(1, "M", 16) + copy(2, "N", 24) + copy(4, "O", 32) +
          "add.u32 %r12, %r12, 1; setp.lt.u32 %p3, %r12, %r11; @%p3 bra L;\n"
          "END: st.global.u32 [%rd5+4096], %r13;");
  for (const uint32_t seed : {1u, 2u, 3u}) {
    const Ran interpreted = run_compiled(text, {64, 1, 1}, 0, "0", seed);
    for (const char* compile : {"alone", "always", "1"}) {
      const Ran ran = run_compiled(text, {64, 1, 1}, 0, compile, seed);
      EXPECT_EQ(ran.text, "");
      EXPECT_EQ(ran.out, interpreted.out) << compile;
    }
  }
}

}  // namespace
}  // namespace kiln::engine
