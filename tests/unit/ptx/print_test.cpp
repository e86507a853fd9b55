// SPDX-License-Identifier: Apache-2.0
// Does what was read come out as text that reads the same? All of tests/ptx/kernels, and what no
// compiler writes together.
#include "ptx/print.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "ptx/parser.h"

namespace kiln::ptx {
namespace {

std::string printed(const std::string& text) {
  auto module = parse_module(text);
  EXPECT_TRUE(static_cast<bool>(module))
      << (module ? "" : format(module.error())) << text.substr(0, 2000);
  if (!module) return "";
  auto out = print(*module);
  EXPECT_TRUE(static_cast<bool>(out)) << (out ? "" : format(out.error())) << text;
  return out ? *out : "";
}

bool same_operand(const Operand& a, const Operand& b) {
  if (a.kind != b.kind || a.negated != b.negated || a.wide != b.wide || a.part != b.part ||
      a.reg != b.reg || a.base_is_register != b.base_is_register || a.bits != b.bits ||
      a.offset != b.offset || a.elements.size() != b.elements.size()) {
    return false;
  }
  for (size_t i = 0; i < a.elements.size(); ++i) {
    if (!same_operand(a.elements[i], b.elements[i])) return false;
  }
  return a.name == b.name || a.name.find('@') != a.name.npos;
}

void expect_same(const std::string& text) {
  const std::string again = printed(text);
  EXPECT_EQ(printed(again), again);
  auto a = parse_module(text), b = parse_module(again);
  ASSERT_TRUE(a && b);
  ASSERT_EQ(a->functions.size(), b->functions.size());
  EXPECT_EQ(a->variables.size(), b->variables.size());
  for (size_t f = 0; f < a->functions.size(); ++f) {
    if (a->functions[f].body_text.empty()) continue;
    auto x = parse_body(*a, a->functions[f]), y = parse_body(*b, b->functions[f]);
    ASSERT_TRUE(x && y);
    ASSERT_EQ(x->instructions.size(), y->instructions.size());
    EXPECT_EQ(x->registers.size(), y->registers.size());
    EXPECT_EQ(x->labels.size(), y->labels.size());
    for (size_t i = 0; i < x->instructions.size(); ++i) {
      const Instruction &one = x->instructions[i], &other = y->instructions[i];
      EXPECT_EQ(one.text(), other.text());
      EXPECT_EQ(one.guard, other.guard);
      EXPECT_EQ(one.guard_negated, other.guard_negated);
      EXPECT_EQ(one.source.line, other.source.line);
      EXPECT_EQ(one.source.outer_line, other.source.outer_line);
      ASSERT_EQ(one.operands.size(), other.operands.size());
      for (size_t o = 0; o < one.operands.size(); ++o)
        EXPECT_TRUE(same_operand(one.operands[o], other.operands[o]))
            << print(one, *x) << " " << print(other, *y);
    }
  }
}

TEST(Print, EveryKindOfOperand) {
  expect_same(R"(.version 9.0
.target sm_90a
.address_size 64
.file 1 "a.cu"
.extern .shared .align 16 .b8 dynamic[];
.visible .const .align 4 .u32 table[3] = {1, 2, 0xffffffff};
.global .align 8 .u64 pointer = table+4;
.global .attribute(.managed) .b32 managed;
.func (.param .b32 r) twice(.param .b32 x)
{ .reg .b32 %a; ld.param.b32 %a, [x]; st.param.b32 [r], %a; ret; }
.visible .entry k(.param .u64 p, .param .align 8 .b8 s[24])
.maxntid 128
.reqnctapercluster 2, 1, 1
{
  .reg .b32 %r<4>; .reg .pred pp, %q; .reg .f64 %d; .reg .b64 %rd<3>; .local .align 4 .b8 stack[16];
  .loc 1 3 2
  mov.u32 %r1, %tid.x;
  .loc 1 9 2, function_name $L_x, inlined_at 1 3 2
  { .reg .b32 %r1; mov.u32 %r1, 7; .param .b32 x; .param .b32 r;
    st.param.b32 [x], %r1; call (r), twice, (x); }
  { .param .b32 x; .param .b32 r;
    st.param.b32 [x], 1; call (r), twice, (x); ld.param.b32 %r2, [r]; }
  setp.lt.and.s32 pp|%q, %r1, -5, !%q;
  @!pp bra $end;
  mov.f64 %d, 0d3FF0000000000000;
  mov.b64 {%r1, %r2}, %rd1;
  ld.global.v2.b32 {%r1, _}, [%rd1+-16];
  vadd.s32.u32.s32 %r3, %r1.b2, %r2.h1;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r1], [%rd1, {%r2, %r3}], [%r1+8];
  { .reg .pred kiln_bounds_3; .reg .b64 kiln_base;
    mov.b64 kiln_base, %rd0; setp.ge.u64 kiln_bounds_3, %rd1, %rd2; }
  t: .branchtargets $end, $end;
  brx.idx %r1, t;
  { $end: add.u32 %r1, %r1, 1; @pp bra $end; }
  { u: .branchtargets $end, $end; brx.idx %r1, u; $end: add.u32 %r1, %r1, 2; }
  { q: .callprototype _ (.param .b32 _); .param .b32 x; st.param.b32 [x], 1; call %rd1, (x), q; }
  { q: .callprototype _ (.param .b64 _); .param .b64 x; st.param.b64 [x], 1; call %rd1, (x), q; }
  { .global .b32 x = 1; .global .b64 y = x; ld.global.b32 %r1, [x]; }
$end:
  ret;
}
)");
}

TEST(Print, WithoutATarget) {
  auto module = parse_module(".version 9.0\n");
  ASSERT_TRUE(module);
  auto text = print(*module);
  ASSERT_TRUE(text);
  EXPECT_EQ(*text, ".version 9.0\n.address_size 64\n");
  EXPECT_TRUE(parse_module(*text));
}

TEST(Print, AlignmentWhereverItWasWritten) {
  const std::string head = ".version 9.0\n.target sm_90\n";
  // As ptxas: a vector's length stands before its type.
  EXPECT_FALSE(parse_module(head + ".global .u32 .v4 a;\n"));
  const std::string once = printed(head + ".global .f64 .align 4 a;\n.global .v4 .u32 b;\n");
  EXPECT_EQ(printed(once), once);
  EXPECT_NE(once.find(".align 16 .v4 .u32 b"), once.npos) << once;
}

TEST(Print, KernelsOfACompiler) {
  uint32_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_TEST_DATA "/ptx/kernels")) {
    if (entry.path().extension() != ".ptx") continue;
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    expect_same(text.str());
    ++files;
  }
  EXPECT_GT(files, 0u);
}

}  // namespace
}  // namespace kiln::ptx
