// SPDX-License-Identifier: Apache-2.0
// How does a test run one program compiled and interpreted?
#pragma once

#include <bit>
#include <cstdlib>
#include <random>

#include "engine/compile/facts.h"
#include "harness.h"

namespace kiln::engine {

constexpr KilnDim3 kShapes[] = {{64, 1, 1}, {16, 16, 1}, {8, 8, 1}, {40, 1, 1}, {32, 2, 1}};

constexpr Variant kVariants[] = {{}, {true}, {false, 0, 8}, {false, 0, 16}, {false, 0, 32}};

constexpr uint32_t kWords = 1 << 14;

// Numbers of every kind: small, large, infinite, subnormal, NaNs with bits of their own.
inline std::vector<uint32_t> numbers(uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint32_t> out(kWords);
  for (uint32_t& word : out) {
    constexpr uint32_t kSpecial[] = {0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000,
                                     0xffc00000, 0x7f800001, 0xffabcdef, 1,          0x80000001,
                                     0x007fffff, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xffffffff};
    const uint32_t kind = random() % 8;
    const float small = static_cast<float>(static_cast<int32_t>(random() % 2001) - 1000) / 8;
    word = kind == 0   ? kSpecial[random() % std::size(kSpecial)]
           : kind == 1 ? static_cast<uint32_t>(random())
                       : std::bit_cast<uint32_t>(small);
  }
  return out;
}

struct Ran {
  std::vector<uint32_t> out;
  std::string text;
  CompiledFacts facts;
};

inline Ran run_compiled(const std::string& text, KilnDim3 block, uint32_t n, const char* compile,
                        std::vector<uint32_t> in, uint32_t words = kWords * 4) {
  setenv("KILN_ENGINE_COMPILE", compile, 1);
  Session session(text);
  std::vector<uint32_t> out(words, 0);
  // What lies behind them is nobody's, wherever the system puts them: who reads too far finds a
  // fault, and no other memory that he may read.
  constexpr size_t kBehind = 1 << 18;
  in.reserve(in.size() + kBehind);
  out.reserve(out.size() + kBehind);
  Ran ran;
  const LaunchOutcome outcome = session.launch(
      "k", {{3, 1, 1}, block}, session.allow(in, "in", false), session.allow(out, "out"), n);
  unsetenv("KILN_ENGINE_COMPILE");
  ran.text = outcome.text.substr(0, outcome.text.find("Address"));
  ran.out = out;
  for (const Variant& variant : kVariants) {  // one of them ran
    if (auto program = session.image.kernel("k", variant)) {
      const CompiledFacts facts = compiled_facts(**program);
      if (facts.stretches) ran.facts = facts;
    }
  }
  return ran;
}

inline Ran run_compiled(const std::string& text, KilnDim3 block, uint32_t n, const char* compile,
                        uint32_t seed, uint32_t words = kWords * 4) {
  return run_compiled(text, block, n, compile, numbers(seed), words);
}

inline const std::string kBegin =
    "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r9, [n]; mov.u32 %r1, %tid.x;"
    "mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.y; mad.lo.u32 %r1, %r3, %r2, %r1;"
    "mov.u32 %r4, %ctaid.x; mad.lo.u32 %r5, %r4, 256, %r1; mul.wide.u32 %rd3, %r1, 4;"
    "add.s64 %rd4, %rd1, %rd3; mul.wide.u32 %rd5, %r5, 16; add.s64 %rd6, %rd2, %rd5;\n";

// In blocks of every shape, with all bits of the interpreter's.
inline void expect_same_values(const std::string& body, bool all_compiled = true) {
  const std::string text = kernel_text("u64 p, u64 q, u32 n", kBegin + body);
  for (KilnDim3 block : kShapes) {
    for (uint32_t n : {3u, 20u}) {
      const Ran compiled = run_compiled(text, block, n, "always", n + 7);
      EXPECT_EQ(compiled.text, "");
      EXPECT_EQ(compiled.out, run_compiled(text, block, n, "0", n + 7).out) << block.x << ", " << n;
      if (compiles()) {
        EXPECT_GT(compiled.facts.entered - compiled.facts.missed, 0u) << block.x;
        if (block.x == 64 && all_compiled) {  // whole warps
          EXPECT_EQ(compiled.facts.compiled, compiled.facts.stretches);
        }
      }
    }
  }
}

}  // namespace kiln::engine
