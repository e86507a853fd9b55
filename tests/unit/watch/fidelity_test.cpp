// SPDX-License-Identifier: Apache-2.0
// Which instructions of a function are approximate, and which branches do they decide?
#include "watch/fidelity.h"

#include <gtest/gtest.h>

#include "ptx/parser.h"
#include "report/compiled.h"
#include "report/fidelity.h"

namespace kiln::watch {
namespace {

// The body stands in lines 3 and following.
FunctionFidelity fidelity_of_body(const std::string& body) {
  const std::string text = ".version 8.0\n.target sm_80\n.entry k() {" + body + "\n}";
  const auto module = ptx::parse_module(text);
  EXPECT_TRUE(module) << text;
  const auto parsed = ptx::parse_body(*module, module->functions[0]);
  EXPECT_TRUE(parsed) << text;
  return fidelity_of(*parsed);
}

constexpr const char* kRegisters = ".reg .f32 %f<4>; .reg .pred %p<3>; .reg .b64 %d<2>;\n";

TEST(Fidelity, KnowsApproximationsWithTheirBound) {
  const auto found = fidelity_of_body(std::string(kRegisters) +
                                      "ex2.approx.ftz.f32 %f1, %f0;\n"
                                      "div.full.f32 %f2, %f1, %f0;\n"
                                      "div.rn.f32 %f3, %f1, %f0;\n"
                                      "add.f32 %f3, %f1, %f0;\n");
  ASSERT_EQ(found.approximate.size(), 2u);
  EXPECT_EQ(found.approximate.at({4, "ex2.approx.ftz.f32"})->bound, "2 ulp");
  EXPECT_EQ(found.approximate.at({5, "div.full.f32"})->bound, "2 ulp");
  EXPECT_TRUE(found.branches.empty());
}

TEST(Fidelity, FollowsAValueIntoTheGuardOfABranch) {
  const auto found = fidelity_of_body(std::string(kRegisters) +
                                      "rcp.approx.f32 %f1, %f0;\n"
                                      "fma.rn.f32 %f2, %f1, %f0, %f0;\n"
                                      "setp.gt.f32 %p0, %f2, %f0;\n"
                                      "setp.gt.f32 %p1, %f0, %f0;\n"
                                      "@%p1 bra END;\n"
                                      "@%p0 bra END;\n"
                                      "@%p0 mov.f32 %f3, %f0;\n"
                                      "END: ret;\n");
  ASSERT_EQ(found.branches.size(), 1u);
  EXPECT_EQ(found.branches[0], FunctionFidelity::Place(9, "bra"));
}

TEST(Fidelity, DoesNotFollowThroughMemory) {
  const auto found = fidelity_of_body(std::string(kRegisters) +
                                      "sin.approx.f32 %f1, %f0;\n"
                                      "st.global.f32 [%d0], %f1;\n"
                                      "ld.global.f32 %f2, [%d0];\n"
                                      "setp.gt.f32 %p0, %f2, %f0;\n"
                                      "@%p0 bra END;\n"
                                      "END: ret;\n");
  EXPECT_EQ(found.approximate.size(), 1u);
  EXPECT_TRUE(found.branches.empty());
}

TEST(Fidelity, ProductsOfFloatsAreApproximateAndThoseOfIntegersAreNot) {
  ptx::Instruction instruction;
  instruction.mnemonic = "mma";
  instruction.modifiers = {"sync", "aligned", "m16n8k16", "row", "col", "f32", "f16", "f16", "f32"};
  ASSERT_NE(ptx::approximation_of(instruction), nullptr);
  instruction.modifiers = {"sync", "aligned", "m16n8k32", "row", "col", "s32", "s8", "s8", "s32"};
  EXPECT_EQ(ptx::approximation_of(instruction), nullptr);
}

TEST(Fidelity, IsOneLineAndOneForEachKind) {
  results::Fidelity fidelity;
  fidelity.instructions = 1160;
  EXPECT_EQ(report::fidelity_text(fidelity), "fidelity: 1,160 warp instructions: all exact\n");
  fidelity.approximate = {{"ex2.approx.ftz.f32", "2 ulp", 32}};
  EXPECT_EQ(report::fidelity_text(fidelity),
            "fidelity: 1,160 warp instructions: 1,128 exact, 32 approximate; no approximate value "
            "decides a branch\n  32 x ex2.approx.ftz.f32: a GPU may differ by 2 ulp\n");
  fidelity.branches = {"a.cu:1", "a.cu:2", "a.cu:3", "a.cu:4"};
  EXPECT_NE(report::fidelity_text(fidelity).find("at a.cu:1, a.cu:2, a.cu:3 and 1 more"),
            std::string::npos);
}

TEST(Fidelity, SaysWhatHasNoMachineCode) {
  results::Fidelity fidelity;
  fidelity.instructions = 1160;
  EXPECT_EQ(report::machine_code_text(fidelity),
            "compiled: 1,160 of 1,160 warp instructions have machine code in kernels that run "
            "long\n");
  fidelity.interpreted = {{"bar.sync", 96}, {"atom.add.u32", 4}};
  EXPECT_EQ(report::machine_code_text(fidelity),
            "compiled: 1,060 of 1,160 warp instructions have machine code in kernels that run "
            "long\n  interpreted: 96 x bar.sync, 4 x atom.add.u32\n");
}

TEST(Fidelity, ACompiledKernelIsALine) {
  results::CompiledKernel kernel{"k(int)", 4, 3, 4000, 60, 5120, 1.25, false, {{"bar.sync", 2}}};
  EXPECT_EQ(
      report::compiled_text(kernel),
      "compiled: k(int): 3 of 4 stretches, 5,120 bytes in 1.25 ms; entered 4,000 times, 60 of "
      "them interpreted\n  interpreted: 2 x bar.sync\n");
  kernel.refused = true;
  EXPECT_NE(report::compiled_text(kernel).find("refused executable memory"), std::string::npos);
}

}  // namespace
}  // namespace kiln::watch
