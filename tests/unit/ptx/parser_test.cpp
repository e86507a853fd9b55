// SPDX-License-Identifier: Apache-2.0
// Is PTX read as the manual writes it, and is what is wrong refused with line and column?
#include "ptx/parser.h"

#include <gmock/gmock.h>

#include "ptx/forms.h"
#include "ptx/lexer.h"

namespace kiln::ptx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string with_head(const std::string& text) { return ".version 9.0\n.target sm_90a\n.address_size 64\n" + text; }

// Modules and bodies hold views: the text stays for as long as the fixture.
class Parser : public testing::Test {
 protected:
  Body body(const std::string& inside) {
    text_ = with_head(".visible .entry k(.param .u64 p, .param .align 8 .b8 s[24])\n{\n" + inside + "\n}\n");
    auto module = parse_module(text_);
    EXPECT_TRUE(static_cast<bool>(module)) << (module ? "" : format(module.error()));
    module_ = std::move(*module);
    auto body = parse_body(module_, *module_.find("k"));
    error_ = body ? "" : format(body.error());
    return body ? std::move(*body) : Body{};
  }
  std::string text_, error_;
  Module module_;
};

TEST(Lexer, WordsNumbersAndPlaces) {
  Lexer lexer("add.s32 %r1, -0x1f; // gone\n  @!%p bra $L1;");
  EXPECT_TRUE(lexer.next().is_word("add"));
  EXPECT_TRUE(lexer.next().is_dotted("s32"));
  EXPECT_TRUE(lexer.next().is_word("%r1"));
  EXPECT_TRUE(lexer.next().is(','));
  EXPECT_TRUE(lexer.next().is('-'));
  EXPECT_EQ(lexer.next().text, "0x1f");
  EXPECT_TRUE(lexer.next().is(';'));
  Token guard = lexer.next();
  EXPECT_TRUE(guard.is('@'));
  EXPECT_EQ(guard.line, 2u);
  EXPECT_EQ(guard.column, 3u);
}

TEST(Lexer, CommentsAreSkipped) {
  Lexer lexer("// kiln.bounds %rd1, 4, 0;\n/* kiln.no */ret");
  EXPECT_TRUE(lexer.next().is_word("ret"));
}

TEST_F(Parser, HeadOfAModule) {
  body("ret;");
  EXPECT_EQ(module_.version_major, 9u);
  EXPECT_EQ(module_.target, "sm_90a");
  const Function* k = module_.find("k");
  ASSERT_NE(k, nullptr);
  EXPECT_TRUE(k->is_entry);
  ASSERT_EQ(k->parameters.size(), 2u);
  EXPECT_EQ(k->parameters[1].bytes(), 24u);
  EXPECT_EQ(k->parameters[1].align, 8u);
}

TEST_F(Parser, Operands) {
  Body b = body(
      ".reg .b32 %r<9>; .reg .pred %p; .reg .b64 %rd;\n@!%p ld.global.v2.u32 {%r1, _}, [%rd+-8];\nmov.f32 %r2, "
      "0f3F800000;");
  ASSERT_EQ(b.instructions.size(), 2u) << error_;
  const Instruction& load = b.instructions[0];
  EXPECT_EQ(load.text(), "ld.global.v2.u32");
  EXPECT_TRUE(load.guard_negated);
  ASSERT_EQ(load.operands.size(), 2u);
  EXPECT_EQ(load.operands[0].elements[1].kind, OperandKind::Sink);
  EXPECT_EQ(load.operands[1].offset, -8);
  EXPECT_EQ(b.instructions[1].operands[1].bits, 0x3f800000u);
}

TEST_F(Parser, RegistersOfInnerBracesHideOuterOnes) {
  Body b = body(".reg .b32 x;\n{ .reg .b64 x; mov.b64 x, 1; }\nmov.b32 x, 2;");
  ASSERT_EQ(b.instructions.size(), 2u) << error_;
  EXPECT_EQ(b.registers[b.instructions[0].operands[0].reg].type, Type::b64);
  EXPECT_EQ(b.registers[b.instructions[1].operands[0].reg].type, Type::b32);
}

TEST_F(Parser, SourceLinesWithTheirCallers) {
  Body b = body(".reg .b32 %r<3>;\n.loc 1 10 2\n.loc 2 99 1, function_name $L_x, inlined_at 1 10 2\nmov.u32 %r1, %r2;");
  ASSERT_EQ(b.instructions.size(), 1u) << error_;
  EXPECT_EQ(b.instructions[0].source.line, 99u);
  EXPECT_EQ(b.instructions[0].source.outer_line, 10u);
}

TEST_F(Parser, MistakesAreNamedWithTheirPlace) {
  body(".reg .b32 %r<3>;\nadd.u32 %r1, %r2 %r1;");
  EXPECT_THAT(error_, HasSubstr("line 7, column 18: wanted ';'; seen: '%r1'"));
  body("bra NOWHERE;");
  EXPECT_THAT(error_, HasSubstr("a branch to a label that is not in this function"));
  body("L: ret; L: ret;");
  EXPECT_THAT(error_, HasSubstr("this label stands twice"));
  body(".reg .b32 %r<99999999>;");
  EXPECT_THAT(error_, HasSubstr("more than 1048576 registers"));
  body(std::string(100, '{') + std::string(100, '}'));
  EXPECT_THAT(error_, HasSubstr("braces nest too deeply"));
  EXPECT_THAT(format(parse_module("ELF").error()), HasSubstr("line 1, column 1"));
  EXPECT_THAT(format(parse_module("").error()), HasSubstr("no .version directive"));
}

TEST_F(Parser, Variables) {
  std::string text = with_head(
      ".global .align 4 .u32 t[2][2] = {1, -1, 0x10};\n.extern .shared .align 16 .b8 dyn[];\n"
      ".global .attribute(.managed) .align 8 .f64 m = 0.5;\n.global .align 8 .u64 q[2] = {t, generic(m)+8};\n");
  auto module = parse_module(text);
  ASSERT_TRUE(static_cast<bool>(module)) << format(module.error());
  const auto& v = module->variables;
  ASSERT_EQ(v.size(), 4u);
  EXPECT_EQ(v[0].bytes(), 16u);
  EXPECT_EQ(v[0].init[1].bits, ~uint64_t{0});
  EXPECT_TRUE(v[1].unsized);
  EXPECT_TRUE(v[2].managed);
  EXPECT_EQ(v[3].init[1].symbol, "m");
  EXPECT_EQ(v[3].init[1].bits, 8u);
}

TEST_F(Parser, EveryCallHasItsOwnParameters) {
  Body b = body("{ .param .b32 a; call f, (a); }\n{ .param .b64 a; call g, (a); }");
  ASSERT_EQ(b.instructions.size(), 2u) << error_;
  ASSERT_EQ(b.variables.size(), 2u);
  EXPECT_EQ(b.instructions[0].operands[1].name, b.variables[0].name);
  EXPECT_EQ(b.instructions[1].operands[1].name, b.variables[1].name);
  EXPECT_NE(b.variables[0].name, b.variables[1].name);
}

TEST_F(Parser, FormsAreMatchedByModifiersTypesAndOperands) {
  Body b = body(
      ".reg .b32 %r<4>; .reg .f32 %f<4>;\nadd.s32 %r1, %r2, 5;\nadd.rn.ftz.f32 %f1, %f2, %f3;\nadd.rn.s32 %r1, %r2, "
      "%r3;\nadd.s32 %r1, %r2;\nfrob %r1;");
  ASSERT_EQ(b.instructions.size(), 5u) << error_;
  auto integer = match_form(b.instructions[0]);
  ASSERT_TRUE(integer.has_value());
  EXPECT_EQ(*integer->type, Type::s32);
  EXPECT_TRUE(match_form(b.instructions[1]).has_value());
  EXPECT_FALSE(match_form(b.instructions[2]).has_value());
  EXPECT_THAT(why_unknown(b.instructions[2]), HasSubstr("no form of 'add' has these modifiers"));
  EXPECT_THAT(why_unknown(b.instructions[3]), HasSubstr("with these operands"));
  EXPECT_THAT(why_unknown(b.instructions[4]), HasSubstr("'frob' is not known"));
}

}  // namespace
}  // namespace kiln::ptx
