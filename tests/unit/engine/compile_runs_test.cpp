// SPDX-License-Identifier: Apache-2.0
// Are steps that are done for a few strips after the others right? Random programs of long runs
// with more values than there are registers: of 32 and 64 bits, floats and integers, counters and
// addresses among them, branches that become masks, and loads of one place for all lanes of a row.
#include <fmt/format.h>

#include "compile_case.h"

namespace kiln::engine {
namespace {

class Runs {
 public:
  explicit Runs(uint32_t seed) : random_(seed) {}

  std::string text() {
    std::string body =
        ".reg .f64 %d<12>; ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n];"
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.y;"
        "mad.lo.u32 %r4, %r3, %r2, %r1; mov.u32 %r5, %ctaid.x; mad.lo.u32 %r5, %r5, 256, %r4;"
        "mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; mul.wide.u32 %rd5, %r3, 4;"
        "add.s64 %rd5, %rd1, %rd5; add.s64 %rd7, %rd4, %rd3; mul.wide.u32 %rd6, %r5, 64; add.s64 "
        "%rd6, %rd2, %rd6;\n";
    for (uint32_t i = 0; i < 10; ++i) {
      body += fmt::format("ld.global.f32 %f1{}, [%rd4+{}]; ld.global.u32 %r1{}, [%rd4+{}];", i,
                          i * 132, i, i * 68);
      body += fmt::format("cvt.rn.f64.u32 %d{}, %r1{};", i, one_of(i + 1));
    }
    body += "mul.wide.u32 %rd10, %r10, %r11; mul.wide.u32 %rd11, %r12, 77;\n";
    const uint32_t parts = 1 + one_of(3);
    for (uint32_t part = 0; part < parts; ++part) {
      for (uint32_t i = 0; i < 30; ++i) body += compute();
      if (one_of(2)) body += around(part);
      if (one_of(3) == 0) body += fmt::format("st.global.f32 [%rd6+60], %f1{};\n", one_of(10));
    }
    for (uint32_t i = 0; i < 5; ++i)
      body += fmt::format("st.global.f32 [%rd6+{}], %f1{}; st.global.u32 [%rd6+{}], %r1{};", i * 4,
                          2 * i + one_of(2), 20 + i * 4, 2 * i + one_of(2));
    body += fmt::format("st.global.f64 [%rd6+40], %d{}; st.global.u64 [%rd6+48], %rd1{};",
                        one_of(10), one_of(2));
    return kernel_text("u64 p, u64 q, u32 n", body);
  }

 private:
  uint32_t one_of(uint32_t count) { return static_cast<uint32_t>(random_()) % count; }
  std::string f() { return fmt::format("%f1{}", one_of(10)); }
  std::string r() { return fmt::format("%r1{}", one_of(10)); }
  std::string d() { return fmt::format("%d{}", one_of(10)); }

  std::string compute() {
    switch (one_of(16)) {
      case 0:
        return fmt::format("add.f32 {}, {}, {};", f(), f(), f());
      case 1:
        return fmt::format("mul.f32 {}, {}, {};", f(), f(), f());
      case 2:
      case 3:
        return fmt::format("fma.rn.f32 {}, {}, {}, {};", f(), f(), f(), f());
      case 4:
        return fmt::format("min.f32 {}, {}, {};", f(), f(), f());
      case 5:
        return fmt::format("add.u32 {}, {}, {};", r(), r(), r());
      case 6:
        return fmt::format("mad.lo.u32 {}, {}, {}, {};", r(), r(), r(), r());
      case 7:
        return fmt::format("xor.b32 {}, {}, {};", r(), r(), r());
      case 8:
        return fmt::format("fma.rn.f64 {}, {}, {}, {};", d(), d(), d(), d());
      case 9:
        return fmt::format("add.f64 {}, {}, {};", d(), d(), d());
      case 10:
        return fmt::format("setp.lt.f32 %p1, {}, {}; selp.f32 {}, {}, {}, %p1;", f(), f(), f(), f(),
                           f());
      case 11:
        return fmt::format("cvt.rn.f32.s32 {}, {};", f(), r());
      case 12:
        return fmt::format("add.u32 %r20, %r4, {}; add.u32 {}, {}, %r20;", one_of(9), r(), r());
      case 13:
        return fmt::format("ld.global.f32 {}, [%rd5+{}];", f(), one_of(9) * 4);
      case 14:
        if (one_of(2)) return fmt::format("ld.global.f64 {}, [%rd7+{}];", d(), one_of(90) * 8);
        return fmt::format("mad.wide.u32 %rd10, {}, {}, %rd11; xor.b64 %rd11, %rd10, %rd11;", r(),
                           r());
      default:
        return fmt::format("ld.global.f32 {}, [%rd4+{}];", f(), one_of(90) * 4);
    }
  }
  std::string around(uint32_t part) {
    std::string out = fmt::format("setp.gt.s32 %p3, {}, {}; @%p3 bra A{};\n", r(), r(), part);
    for (uint32_t i = 0; i < 9; ++i) out += compute();
    return out + fmt::format("\nA{}:\n", part);
  }

  std::mt19937 random_;
};

TEST(CompiledRuns, HaveTheBitsOfTheInterpreter) {
  const char* more = std::getenv("KILN_TEST_SEEDS");
  const uint32_t first = more ? static_cast<uint32_t>(std::atoi(more)) : 0;
  uint64_t entered = 0, missed = 0;
  for (uint32_t seed = first; seed < first + 60; ++seed) {
    const std::string text = Runs(seed).text();
    for (KilnDim3 block : kShapes) {
      const Ran compiled = run_compiled(text, block, 3, "always", seed);
      ASSERT_EQ(compiled.text, "") << seed;
      ASSERT_EQ(compiled.out, run_compiled(text, block, 3, "0", seed).out)
          << "seed " << seed << ", block " << block.x << " x " << block.y << "\n"
          << text;
      entered += compiled.facts.entered;
      missed += compiled.facts.missed;
    }
  }
  if (compiles()) {
    EXPECT_GT(entered - missed, entered / 4);
  }
}

}  // namespace
}  // namespace kiln::engine
