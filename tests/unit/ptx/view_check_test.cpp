// SPDX-License-Identifier: Apache-2.0
// Is the index check of a View recognised in every shape that a compiler may give it, and nothing
// else taken for one?
#include "ptx/view_check.h"

#include <gtest/gtest.h>

#include "ptx/forms.h"
#include "ptx/parser.h"

namespace kiln::ptx {
namespace {

class ViewCheck : public testing::Test {
 protected:
  Body body(const std::string& inside) {
    text_ =
        ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .b64 %rd<9>; "
        ".reg .pred %p<3>;\n" +
        inside + "\n}\n";
    auto module = parse_module(text_);
    EXPECT_TRUE(static_cast<bool>(module)) << (module ? "" : format(module.error()));
    module_ = std::move(*module);
    auto read = parse_body(module_, *module_.find("k"));
    EXPECT_TRUE(static_cast<bool>(read)) << (read ? "" : format(read.error()));
    return read ? std::move(*read) : Body{};
  }

  std::string text_;
  Module module_;
};

constexpr const char* kDeclared = "{ .reg .pred kiln_bounds_1; .reg .b64 kiln_base; ";

TEST_F(ViewCheck, IsOneInstructionWithoutRegisters) {
  Body b = body(std::string(kDeclared) +
                "setp.ge.u64 kiln_bounds_1, %rd1, %rd2; mov.b64 kiln_base, %rd3; } ret;");
  ASSERT_EQ(b.instructions.size(), 2u);
  const Instruction& check = b.instructions[0];
  EXPECT_EQ(check.text(), "kiln.bounds");
  EXPECT_TRUE(match_form(check));
  ASSERT_EQ(check.operands.size(), 4u);
  EXPECT_EQ(check.operands[0].reg, 1u);
  EXPECT_EQ(check.operands[1].reg, 2u);
  EXPECT_EQ(check.operands[2].reg, 3u);
  EXPECT_EQ(check.operands[3].bits, 1u);
  EXPECT_EQ(b.registers.size(), 12u) << "its own registers are gone";
  EXPECT_EQ(b.instructions[1].mnemonic, "ret");
}

TEST_F(ViewCheck, OrderImmediatesAndSeveralDimensionsDoNotMatter) {
  Body b = body(
      "{ .reg .b64 kiln_base; .reg .pred kiln_bounds_0, kiln_bounds_12;\n mov.b64 kiln_base, "
      "%rd3;\n"
      "setp.ge.u64 kiln_bounds_0, 7, %rd2;\n setp.ge.u64 kiln_bounds_12, %rd1, -1; } ret;");
  ASSERT_EQ(b.instructions.size(), 3u);
  EXPECT_EQ(b.instructions[0].operands[0].bits, 7u);
  EXPECT_EQ(b.instructions[1].operands[1].bits, ~uint64_t{0});
  EXPECT_EQ(b.instructions[1].operands[3].bits, 12u);
  for (int i : {0, 1}) EXPECT_EQ(b.instructions[i].operands[2].reg, 3u);
}

TEST_F(ViewCheck, CopiesInOneFunctionAreChecksEach) {
  const std::string one = std::string(kDeclared) +
                          "setp.ge.u64 kiln_bounds_1, %rd1, %rd2; mov.b64 kiln_base, %rd3; }\n";
  Body b = body(one + "@%p1 bra L;\n" + one + "L:\n{" + one + "}\nret;");
  ASSERT_EQ(b.instructions.size(), 5u);
  for (int i : {0, 2, 3}) EXPECT_EQ(b.instructions[i].mnemonic, "kiln");
  EXPECT_EQ(b.labels.at("L"), 3u);
}

TEST_F(ViewCheck, TheLineIsThatOfTheCaller) {
  const std::string one = std::string(kDeclared) +
                          "setp.ge.u64 kiln_bounds_1, %rd1, %rd2; mov.b64 kiln_base, %rd3; }\n";
  Body b = body(".loc 1 35 3\n.loc 1 31 3, function_name $L_a, inlined_at 1 35 3\n" +
                (".loc 2 24 5, function_name $L_b, inlined_at 1 31 3\n" + one) + ".loc 1 40 1\n" +
                one + "ret;");
  ASSERT_EQ(b.instructions.size(), 3u);
  EXPECT_EQ(b.instructions[0].source.file, 1u);
  EXPECT_EQ(b.instructions[0].source.line, 31u);
  EXPECT_EQ(b.instructions[1].source.line, 40u) << "not inlined: its own line";
}

TEST_F(ViewCheck, OtherCodeStaysAsItIs) {
  const char* const kScopes[] = {
      "setp.lt.u64 kiln_bounds_1, %rd1, %rd2;",                       // another comparison
      "setp.ge.u32 kiln_bounds_1, 1, 2;",                             // another width
      "@%p1 setp.ge.u64 kiln_bounds_1, %rd1, %rd2;",                  // guarded
      "setp.ge.u64 %p1, %rd1, %rd2;",                                 // a result that lives on
      "setp.ge.u64 kiln_bounds_1, %rd1, %rd2; @kiln_bounds_1 trap;",  // a result that is read
      "setp.ge.u64 kiln_bounds_1, kiln_base, %rd2;",                  // a value of the scope
      "setp.ge.u64 kiln_bounds_1, %rd1, %rd2; M: mov.b64 kiln_base, %rd3;",             // a label
      "setp.ge.u64 kiln_bounds_1, %rd1, %rd2; mov.b64 kiln_base, 1; mov.b64 %rd1, 1;",  // more
      "mov.b64 kiln_base, %rd3;",                                                       // no check
  };
  for (const char* inside : kScopes) {
    Body b = body(std::string(kDeclared) + inside + " }\nret;");
    EXPECT_EQ(b.registers.size(), 14u) << inside;
    for (const Instruction& ins : b.instructions) EXPECT_NE(ins.mnemonic, "kiln") << inside;
  }
  Body named = body("{ .reg .pred kiln_bounds_x; setp.ge.u64 kiln_bounds_x, %rd1, %rd2; }\nret;");
  EXPECT_EQ(named.instructions[0].mnemonic, "setp") << "no dimension in the name";
}

}  // namespace
}  // namespace kiln::ptx
