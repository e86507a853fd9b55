// SPDX-License-Identifier: Apache-2.0
// Is PTX read as the manual writes it, and is what is wrong refused with line and column?
#include "ptx/parser.h"

#include <gmock/gmock.h>
#include <locale.h>

#include <bit>

#include "ptx/forms.h"
#include "ptx/lexer.h"

namespace kiln::ptx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string with_head(const std::string& text) {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + text;
}

// Modules and bodies hold views: the text stays for as long as the fixture.
class Parser : public testing::Test {
 protected:
  Body body(const std::string& inside) {
    text_ = with_head(".visible .entry k(.param .u64 p, .param .align 8 .b8 s[24])\n{\n" + inside +
                      "\n}\n");
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

TEST(Lexer, NumbersWithAPoint) {
  Lexer lexer("20., 1.5; 2.5e+3 7.");
  EXPECT_EQ(lexer.next().text, "20.");
  EXPECT_TRUE(lexer.next().is(','));
  EXPECT_EQ(lexer.next().text, "1.5");
  EXPECT_TRUE(lexer.next().is(';'));
  EXPECT_EQ(lexer.next().text, "2.5e+3");
  EXPECT_EQ(lexer.next().text, "7");  // nothing follows
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
      ".reg .b32 %r<9>; .reg .pred %p; .reg .b64 %rd;\n@!%p ld.global.v2.u32 {%r1, _}, "
      "[%rd+-8];\nmov.f32 %r2, "
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

TEST_F(Parser, LabelsBelongToTheirBraces) {
  Body b = body("{ L: bra L; }\n{ L: ret; bra L; }\nL: bra L;");
  ASSERT_EQ(b.instructions.size(), 4u) << error_;
  const auto target = [&](size_t i) { return b.labels.at(b.instructions[i].operands[0].name); };
  EXPECT_EQ(b.labels.size(), 3u);
  EXPECT_EQ(target(0), 0u);
  EXPECT_EQ(target(2), 1u);
  EXPECT_EQ(target(3), 3u);
}

TEST_F(Parser, ABranchTakesTheLabelOfItsOwnBracesFirst) {
  Body own = body("L: { bra L; L: ret; }");  // though it follows
  ASSERT_EQ(own.instructions.size(), 2u) << error_;
  EXPECT_EQ(own.labels.at(own.instructions[0].operands[0].name), 1u);
  Body outer = body("{ { bra L; } ret; L: exit; }");
  EXPECT_EQ(outer.labels.at(outer.instructions[0].operands[0].name), 2u) << error_;
  // As ptxas 13.0 binds it: the outer label is known when the braces of the branch end, the middle
  // one is not.
  Body between = body("L: ret; { { bra L; } L: exit; }");
  EXPECT_EQ(between.labels.at(between.instructions[1].operands[0].name), 0u) << error_;
}

TEST_F(Parser, LabelsInsideOfBracesAreNotSeenFromOutside) {
  for (const char* text : {"bra L; { L: ret; }", "{ L: ret; } bra L;", "{ L: ret; } { bra L; }"}) {
    body(text);
    EXPECT_THAT(error_, HasSubstr("a branch to a label that is not in this function")) << text;
  }
}

TEST_F(Parser, ListsOfTargetsAndPrototypesBelongToTheirBraces) {
  Body b = body(
      ".reg .b32 %r<2>; .reg .b64 %rd<2>;\n"
      "{ T: .branchtargets A, B; brx.idx %r1, T; A: ret; B: exit; }\n"
      "{ T: .branchtargets B, A; brx.idx %r1, T; A: ret; B: exit; }\n"
      "{ P: .callprototype _ (.param .b32 _); .param .b32 x; call %rd1, (x), P; }\n"
      "{ P: .callprototype _ (.param .b64 _); .param .b64 x; call %rd1, (x), P; }");
  ASSERT_EQ(b.instructions.size(), 8u) << error_;
  const auto targets = [&](size_t i) {
    std::vector<uint32_t> out;
    for (std::string_view label : b.branch_targets.at(b.instructions[i].operands[1].name))
      out.push_back(b.labels.at(label));
    return out;
  };
  EXPECT_THAT(targets(0), ElementsAre(1, 2));
  EXPECT_THAT(targets(3), ElementsAre(5, 4));
  EXPECT_EQ(b.prototypes.at(b.instructions[6].prototype).parameters[0].type, Type::b32);
  EXPECT_EQ(b.prototypes.at(b.instructions[7].prototype).parameters[0].type, Type::b64);
}

TEST_F(Parser, VariablesOfInnerBracesEndThere) {
  Body b =
      body("{ .shared .b32 x; st.shared.u32 [x], 1; }\nst.shared.u32 [x], 2;\n.global .u64 q = p;");
  ASSERT_EQ(b.instructions.size(), 2u) << error_;
  EXPECT_EQ(b.instructions[0].operands[0].name, b.variables[0].name);
  EXPECT_EQ(b.instructions[1].operands[0].name, "x");  // one of the module, not the one above
  EXPECT_NE(b.variables[0].name, "x");
}

TEST_F(Parser, ANameStandsOncePerScope) {
  for (const char* text :
       {".reg .b32 x; .reg .b64 x;", ".reg .b32 %r<4>; .reg .b32 %r<2>;",
        ".reg .b32 %r<4>; .reg .b32 %r3;", ".reg .b32 %r3; .reg .b32 %r<4>;",
        ".shared .b32 x; .shared .b32 x;", ".shared .b32 p;", ".reg .b32 x; x: ret;", "p: ret;",
        "{ .param .b32 a; .param .b32 a; }"}) {
    body(text);
    EXPECT_THAT(error_,
                testing::AnyOf(HasSubstr("is declared twice"), HasSubstr("is defined twice")))
        << text;
    EXPECT_THAT(error_, HasSubstr("line 6, column ")) << text;
  }
  Body b =
      body(".reg .b32 %r<4>; .reg .b32 %r7; { .reg .b64 %r<2>; mov.b64 %r1, 0; mov.b32 %r3, 0; }");
  ASSERT_EQ(b.instructions.size(), 2u) << error_;
  EXPECT_EQ(b.registers[b.instructions[0].operands[0].reg].type, Type::b64);
  EXPECT_EQ(b.registers[b.instructions[1].operands[0].reg].type, Type::b32);
}

TEST_F(Parser, OperandsDoNotNest) {
  constexpr size_t kDeep = 100000;
  std::string addresses, vectors(kDeep, '{');
  for (size_t i = 0; i < kDeep; ++i) addresses += "[%rd1,";
  vectors += std::string(kDeep, '}');  // a body ends where its braces do
  for (const std::string& operand :
       {addresses, vectors, "{[%rd1," + vectors + "}", "[%rd1, {" + addresses + "}"}) {
    body(".reg .b64 %rd<3>;\nld.global.u64 %rd2, " + operand + ";");
    EXPECT_THAT(error_, HasSubstr("line 7, column ")) << operand.substr(0, 20);
    EXPECT_THAT(error_, HasSubstr("cannot contain")) << operand.substr(0, 20);
    body(".reg .b64 %rd<3>;\ncall (" + operand + "), f, (" + operand + ");");
    EXPECT_THAT(error_, HasSubstr("line 7, column ")) << operand.substr(0, 20);
  }
  body(".reg .b64 %rd<3>;\nadd.u64 %rd1, %rd2, " + std::string(kDeep, '-') + "1;");
  EXPECT_EQ(error_, "");
  const std::string braces = with_head(".global .b32 x[4] = " + std::string(kDeep, '{') + "1;");
  auto nested = parse_module(braces);
  ASSERT_FALSE(static_cast<bool>(nested));
  EXPECT_THAT(format(nested.error()), HasSubstr("line 4, column "));
}

TEST_F(Parser, FractionsHaveAPointWhateverTheLocale) {
  const locale_t german = newlocale(LC_ALL_MASK, "de_DE.UTF-8", nullptr);
  if (german) uselocale(german);  // tests/python/test_locale.py has one in any case
  const Body b = body(".reg .f64 %d;\nmov.f64 %d, 1.5; mov.f64 %d, 2.5e-3;");
  if (german) uselocale(LC_GLOBAL_LOCALE);
  ASSERT_EQ(b.instructions.size(), 2u) << error_;
  EXPECT_EQ(b.instructions[0].operands[1].bits, std::bit_cast<uint64_t>(1.5));
  EXPECT_EQ(b.instructions[1].operands[1].bits, std::bit_cast<uint64_t>(2.5e-3));
}

TEST_F(Parser, SourceLinesWithTheirCallers) {
  Body b = body(
      ".reg .b32 %r<3>;\n.loc 1 10 2\n.loc 2 99 1, function_name $L_x, inlined_at 1 10 2\nmov.u32 "
      "%r1, %r2;");
  ASSERT_EQ(b.instructions.size(), 1u) << error_;
  EXPECT_EQ(b.instructions[0].source.line, 99u);
  EXPECT_EQ(b.instructions[0].source.outer_line, 10u);
}

TEST_F(Parser, ShowsTheCallInTheKernelsFileThatALineWasInlinedFrom) {
  // f() at line 10 calls g() of the same file, which calls something of a header at line 20.
  Body b = body(
      ".reg .b32 %r<3>;\n.loc 1 10 2\n.loc 1 20 5, function_name $L_g, inlined_at 1 10 2\n"
      ".loc 2 99 1, function_name $L_h, inlined_at 1 20 5\nmov.u32 %r1, 1;\n"
      ".loc 1 0 5\nmov.u32 %r2, 2;\n.loc 1 21 5, function_name $L_g, inlined_at 1 10 2\n"
      "mov.u32 %r1, 3;\n");
  EXPECT_EQ(b.instructions[0].source.line, 99u);
  EXPECT_EQ(b.instructions[0].source.outer_line, 20u);
  EXPECT_EQ(b.instructions[1].source.line, 99u) << "line 0 is no line";
  EXPECT_EQ(b.instructions[2].source.line, 21u);
  EXPECT_EQ(b.instructions[2].source.outer_line, 10u) << "both in the file: the kernel's own";
  // All calls on the way, the innermost first.
  const InlinedCall& inner = b.inlined_calls.at(b.instructions[0].source.call);
  EXPECT_EQ(inner.line, 20u);
  EXPECT_EQ(b.inlined_calls.at(inner.outer).line, 10u);
  EXPECT_EQ(b.inlined_calls.at(inner.outer).outer, 0u);
  EXPECT_EQ(b.instructions[2].source.call, inner.outer) << "the same call";
}

TEST_F(Parser, MistakesAreNamedWithTheirPlace) {
  body(".reg .b32 %r<3>;\nadd.u32 %r1, %r2 %r1;");
  EXPECT_THAT(error_, HasSubstr("line 7, column 18: expected ';'; got: '%r1'"));
  body("bra NOWHERE;");
  EXPECT_THAT(error_, HasSubstr("a branch to a label that is not in this function"));
  body("L: ret; L: ret;");
  EXPECT_THAT(error_, HasSubstr("this label is defined twice"));
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
      ".global .attribute(.managed) .align 8 .f64 m = 0.5;\n.global .align 8 .u64 q[2] = {t, "
      "generic(m)+8};\n");
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
      ".reg .b32 %r<4>; .reg .f32 %f<4>;\nadd.s32 %r1, %r2, 5;\nadd.rn.ftz.f32 %f1, %f2, "
      "%f3;\nadd.rn.s32 %r1, %r2, "
      "%r3;\nadd.s32 %r1, %r2;\nfrob %r1;");
  ASSERT_EQ(b.instructions.size(), 5u) << error_;
  auto integer = match_form(b.instructions[0]);
  ASSERT_TRUE(integer.has_value());
  EXPECT_EQ(*integer->type, Type::s32);
  EXPECT_TRUE(match_form(b.instructions[1]).has_value());
  EXPECT_FALSE(match_form(b.instructions[2]).has_value());
  EXPECT_THAT(why_unknown(b.instructions[2]), HasSubstr("no form of 'add' has these modifiers"));
  EXPECT_THAT(why_unknown(b.instructions[3]), HasSubstr("with these operands"));
  EXPECT_THAT(why_unknown(b.instructions[4]), HasSubstr("unknown instruction 'frob'"));
}

// ptxas 13.0 takes what follows the name of an instruction in any order. CUTLASS and CCCL write
// some of these; nvcc passes on what an asm statement says.
constexpr const char* kOtherOrders[] = {
    "mbarrier.complete_tx.shared::cluster.relaxed.cluster.b64 [%r0], 16;",
    "mbarrier.expect_tx.shared::cta.relaxed.cta.b64 [%r0], 16;",
    "mbarrier.arrive.shared::cluster.release.cluster.b64 _, [%r0];",
    "mbarrier.arrive.expect_tx.shared::cluster.release.cluster.b64 _, [%r0], 16;",
    "mbarrier.arrive.noComplete.shared.release.cta.b64 %rd2, [%r0], 2;",
    "mbarrier.init.b64.shared [%r0], 1;",
    "mbarrier.try_wait.parity.shared::cta.acquire.cta.b64 %p1, [%r0], 0;",
    "cp.async.mbarrier.arrive.shared.noinc.b64 [%r0];",
    "cp.async.shared.global.ca [%r0], [%rd0], 4;",
    "cp.async.bulk.global.shared::cta.L2::cache_hint.bulk_group [%rd0], [%r0], 16, %rd1;",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
    ".multicast::cluster [%r0], [%rd0], 16, [%r0], %h1, %rd1;",
    "cp.async.bulk.tensor.tile.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    " [%r0], [%rd0, {%r1, %r1}], [%r0];",
    "cp.async.bulk.prefetch.tensor.2d.L2.tile.global [%rd0, {%r1, %r1}];",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.f32.add [%rd0], [%r0], 16;",
    "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group.tile"
    " [%rd0, {%r1, %r1}], [%r0];",
    "fence.cluster.acq_rel;",
    "fence.release.cluster.sync_restrict::shared::cta;",
    "barrier.cluster.arrive.aligned.relaxed;",
    "barrier.cluster.wait.aligned.acquire;",
    "barrier.aligned.sync 0;",
    "ldmatrix.sync.aligned.m8n8.x4.shared.trans.b16 {%r1, %r2, %r3, %r4}, [%r0];",
    "ldmatrix.sync.aligned.x4.m8n8.shared.b16 {%r1, %r2, %r3, %r4}, [%r0];",
    "stmatrix.sync.aligned.m8n8.x1.shared.trans.b16 [%r0], {%r1};",
    "movmatrix.aligned.sync.m8n8.trans.b16 %r1, %r2;",
    "prefetch.L1.global [%rd0];",
    "setmaxnreg.inc.aligned.sync.u32 96;",
    "wgmma.wait_group.aligned.sync 0;",
    "shfl.down.sync.b32 %r1, %r2, 1, 31, -1;",
    "match.sync.any.b32 %r1, %r2, -1;",
    "redux.sync.s32.add %r1, %r2, -1;",
    "mapa.u32.shared::cluster %r1, %r0, 1;",
    "tensormap.cp_fenceproxy.global.shared::cta.release.gpu.tensormap::generic.sync.aligned"
    " [%rd0], [%r0], 128;",
    "tensormap.replace.global.tile.global_address.b1024.b64 [%rd0], %rd1;",
    "ld.L1::no_allocate.global.nc.b32 %r1, [%rd0];",
    "atom.global.gpu.add.acq_rel.u32 %r1, [%rd0], %r2;",
};

TEST_F(Parser, ModifiersStandInAnyOrderWhereAssemblersTakeThem) {
  for (const char* text : kOtherOrders) {
    const Body b = body(std::string(".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .b16 %h<9>;"
                                    " .reg .pred %p<9>;\n") +
                        text);
    ASSERT_EQ(b.instructions.size(), 1u) << error_ << text;
    EXPECT_TRUE(match_form(b.instructions[0]).has_value()) << text;
  }
  // These orders carry a meaning, and ptxas refuses others.
  for (const char* text : {"cvt.s32.rni.f32 %r1, %f1;", "mbarrier.shared.frob.b64 [%r0], 1;"}) {
    const Body b = body(std::string(".reg .b32 %r<9>; .reg .f32 %f<9>;\n") + text);
    ASSERT_EQ(b.instructions.size(), 1u) << error_ << text;
    EXPECT_FALSE(match_form(b.instructions[0]).has_value()) << text;
  }
}

}  // namespace
}  // namespace kiln::ptx
