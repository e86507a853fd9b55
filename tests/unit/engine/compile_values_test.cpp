// SPDX-License-Identifier: Apache-2.0
// Do compiled stretches do what the interpreter does? Operations on bits, more values than a CPU
// has registers, and addresses that lie apart.
#include <fmt/format.h>

#include "compile_case.h"

namespace kiln::engine {
namespace {

const std::string kBegin =
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x;"
    "mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.y; mad.lo.u32 %r1, %r3, %r2, %r1;"
    "mov.u32 %r4, %ctaid.x; mad.lo.u32 %r5, %r4, 256, %r1; mul.wide.u32 %rd3, %r1, 4;"
    "add.s64 %rd4, %rd1, %rd3; mul.wide.u32 %rd5, %r5, 16; add.s64 %rd6, %rd2, %rd5;\n";

// In blocks of every shape, with all bits of the interpreter's.
void expect_same_values(const std::string& body, bool has_to_compile = true) {
  const std::string text = kernel_text("u64 p, u64 q, u32 n", kBegin + body);
  for (KilnDim3 block : kShapes) {
    for (uint32_t n : {3u, 20u}) {
      const Ran compiled = run_compiled(text, block, n, "always", n + 7);
      EXPECT_EQ(compiled.text, "");
      EXPECT_EQ(compiled.out, run_compiled(text, block, n, "0", n + 7).out) << block.x << ", " << n;
      if (compiles() && has_to_compile) {
        EXPECT_GT(compiled.facts.entered - compiled.facts.missed, 0u) << block.x;
      }
    }
  }
}

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
                    what),
        false);
  }
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
    expect_same_values(body + "st.global.f32 [%rd6], %x1;");
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

// One after the other on a thread: each writes its own numbers.
TEST(CompiledValues, BlocksGoOnAsTheNext) {
  const std::string text = kernel_text(
      "u64 p, u64 q, u32 n",
      "ld.param.u64 %rd1, [q]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ntid.x;"
      "mad.lo.u32 %r4, %r2, %r3, %r1; mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ctaid.y;"
      "mov.u32 %r7, %ctaid.z; mov.u32 %r8, %nctaid.x; mov.u32 %r9, %nctaid.y;"
      "mad.lo.u32 %r10, %r7, %r9, %r6; mad.lo.u32 %r10, %r10, %r8, %r5; mov.u32 %r11, %ntid.y;"
      "mul.lo.u32 %r11, %r11, %r3; mad.lo.u32 %r12, %r10, %r11, %r4; mul.wide.u32 %rd2, %r12, 4;"
      "add.s64 %rd3, %rd1, %rd2; mad.lo.u32 %r13, %r6, 100, %r5; mad.lo.u32 %r13, %r7, 10000, %r13;"
      "mad.lo.u32 %r13, %r4, 1000000, %r13; st.global.u32 [%rd3], %r13;");
  for (const char* compile : {"0", "1", "always"}) {
    for (KilnDim3 block : {KilnDim3{64, 1, 1}, {16, 16, 1}, {8, 2, 1}, {40, 1, 1}, {32, 2, 1}}) {
      setenv("KILN_ENGINE_COMPILE", compile, 1);
      setenv("KILN_ENGINE_THREADS", "1", 1);
      Session session(text);
      const uint32_t threads = block.x * block.y;
      std::vector<uint32_t> in(4, 0), out(size_t{threads} * 7 * 5 * 3, 0), expected;
      session.launch("k", {{7, 5, 3}, block}, session.allow(in, "in", false),
                     session.allow(out, "out"), 0u);
      unsetenv("KILN_ENGINE_COMPILE");
      unsetenv("KILN_ENGINE_THREADS");
      for (uint32_t i = 0; i < 7 * 5 * 3; ++i) {
        for (uint32_t t = 0; t < threads; ++t)
          expected.push_back(i % 7 + i / 7 % 5 * 100 + i / 35 * 10000 + t * 1000000);
      }
      EXPECT_EQ(out, expected) << compile << ", " << block.x;
    }
  }
}

}  // namespace
}  // namespace kiln::engine
