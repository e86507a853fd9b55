// SPDX-License-Identifier: Apache-2.0
// Do bfe, bfi and prmt compute the same whether the numbers that choose bits and bytes are
// constants or in registers? The forms with registers are compared with a GPU in tests/ptx.
#include <fmt/format.h>

#include "compile_case.h"

namespace kiln::engine::fields {
namespace {

// %r20, %r21 and %rd20, %rd21: numbers of the lane's own. %r30 is 0, which nobody knows.
const std::string kNumbers =
    kBegin +
    "ld.global.u32 %r20, [%rd4]; ld.global.u32 %r21, [%rd4+4096]; mov.b64 %rd20, {%r20, %r21};"
    "ld.global.u32 %r22, [%rd4+8192]; mov.b64 %rd21, {%r21, %r22}; mov.u32 %r31, 0;"
    "mov.u64 %rd31, 0; mov.u64 %rd30, 0; mov.u32 %r34, 0; sub.u32 %r30, %r9, 3; and.b32 %r32, %r1, "
    "1; setp.eq.u32 %p2, %r32, 0;\n";

// Both forms of each; what differs ends up in the result.
void expect_same(const std::vector<std::string>& constants,
                 const std::vector<std::string>& registers, bool wide) {
  std::string body = kNumbers;
  for (size_t i = 0; i < constants.size(); ++i) {
    body += constants[i] + registers[i];
    body += wide ? "xor.b64 %rd29, %rd27, %rd28; or.b64 %rd31, %rd31, %rd29;"
                   "mad.lo.u64 %rd30, %rd30, 3, %rd27;\n"
                 : "xor.b32 %r29, %r27, %r28; or.b32 %r31, %r31, %r29;"
                   "mad.lo.u32 %r34, %r34, 3, %r27;\n";
  }
  body +=
      "mov.b64 {%r35, %r36}, %rd31; or.b32 %r31, %r31, %r35; or.b32 %r31, %r31, %r36;"
      "st.global.u32 [%rd6], %r31; st.global.u32 [%rd6+4], %r34; st.global.u64 [%rd6+8], %rd30;";
  const std::string text = kernel_text("u64 p, u64 q, u32 n", body);
  const Ran interpreted = run_compiled(text, {64, 1, 1}, 3, "0", 5);
  ASSERT_EQ(interpreted.text, "");
  for (uint32_t thread = 0; thread < 64; ++thread)
    ASSERT_EQ(interpreted.out[thread * 4], 0u) << thread << "\n" << body;
  EXPECT_EQ(run_compiled(text, {64, 1, 1}, 3, "always", 5).out, interpreted.out);
}

TEST(ConstantFields, PermuteBytes) {
  std::mt19937 random(7);
  const uint32_t known[] = {0x3210, 0x5410, 0x7632, 0x1032, 0x0123, 0x3340, 0x6420, 0x7531,
                            0x4440, 0x7770, 0x8880, 0x9991, 0xaaa2, 0xbbb3, 0x9910, 0xbb32,
                            0xcccc, 0xccc4, 0xfff7, 0x8888, 0x0000, 0x4444, 0x9810, 0xbbb2};
  for (uint32_t round = 0; round < 12; ++round) {
    std::vector<std::string> constants, registers;
    for (uint32_t i = 0; i < 24; ++i) {
      const uint32_t selector = round == 0 ? known[i] : static_cast<uint32_t>(random() & 0xffff);
      for (const char* operands : {"%r20, %r21", "%r20, 0", "0, %r21", "%r20, %r20"}) {
        constants.push_back(
            i % 2 ? fmt::format("prmt.b32 %r27, {}, {:#x};", operands, selector)
                  : fmt::format("{{ .reg .b32 %k; mov.u32 %k, {}; prmt.b32 %r27, {}, %k; }}",
                                selector, operands));
        registers.push_back(
            fmt::format("add.u32 %r26, %r30, {}; prmt.b32 %r28, {}, %r26;", selector, operands));
      }
    }
    expect_same(constants, registers, false);
  }
}

TEST(ConstantFields, ExtractAndInsert) {
  for (const uint32_t bits : {32u, 64u}) {
    const bool wide = bits == 64;
    const char *to = wide ? "%rd27" : "%r27", *other = wide ? "%rd28" : "%r28",
               *a = wide ? "%rd20" : "%r20", *b = wide ? "%rd21" : "%r21";
    for (uint32_t at = 0; at < bits + 2; at += wide ? 3 : 1) {
      std::vector<std::string> constants, registers;
      for (uint32_t length = 0; length < bits + 2; length += wide ? 5 : 3) {
        const std::string fields =
            fmt::format("add.u32 %r25, %r30, {}; add.u32 %r26, %r30, {};", at, length);
        for (const char sign : {'u', 's'}) {
          constants.push_back(
              fmt::format("bfe.{}{} {}, {}, {}, {};", sign, bits, to, a, at, length));
          registers.push_back(fields +
                              fmt::format("bfe.{}{} {}, {}, %r25, %r26;", sign, bits, other, a));
        }
        for (const char* into : {b, "0"}) {
          constants.push_back(
              fmt::format("bfi.b{} {}, {}, {}, {}, {};", bits, to, a, into, at, length));
          registers.push_back(fields +
                              fmt::format("bfi.b{} {}, {}, {}, %r25, %r26;", bits, other, a, into));
        }
      }
      expect_same(constants, registers, wide);
    }
  }
}

// Only some lanes write the result, which they also read.
TEST(ConstantFields, KeepWhatAGuardLeavesOut) {
  std::vector<std::string> constants, registers;
  for (const char* work : {"prmt.b32 {0}, {0}, %r21, {1};", "bfi.b32 {0}, %r21, {0}, 4, {1};",
                           "bfe.s32 {0}, {0}, 4, {1};"}) {
    const std::string_view name(work);
    const uint32_t number = name.starts_with("prmt") ? 0x5410 : 9;
    constants.push_back("mov.u32 %r27, %r20; @%p2 " +
                        fmt::format(fmt::runtime(name), "%r27", number));
    registers.push_back("mov.u32 %r28, %r20; add.u32 %r26, %r30, " + std::to_string(number) +
                        "; @%p2 " + fmt::format(fmt::runtime(name), "%r28", "%r26"));
  }
  expect_same(constants, registers, false);
}

}  // namespace
}  // namespace kiln::engine::fields
