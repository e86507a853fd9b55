// SPDX-License-Identifier: Apache-2.0
// Do text and page of a comparison show what differs, and nothing else?
#include "report/diff.h"

#include <gmock/gmock.h>

namespace kiln::report {
namespace {

using results::Change;
using results::FileDiff;
using results::KernelDiff;
using testing::HasSubstr;
using testing::Not;

KernelDiff grown() {
  KernelDiff kernel;
  kernel.symbol = kernel.name = "fat";
  kernel.arch = "sm_90";
  kernel.change = Change::MoreResources;
  kernel.code_differs = true;
  kernel.figures = {{"registers", 32, 40}, {"barriers", 1, 1}};
  kernel.mix = {{"integer", 10, 14}, {"branch", 2, 2}};
  kernel.blocks = {{"entry", {{' ', "MOV R1, R2"}}, false},
                   {"block 1", {{' ', "EXIT"}, {'+', "FADD R1, R1, R1"}}, true}};
  return kernel;
}

FileDiff diff_of(std::vector<KernelDiff> kernels) {
  FileDiff diff;
  diff.before = "a.so";
  diff.after = "b.so";
  diff.kernels = std::move(kernels);
  return diff;
}

TEST(DiffText, WhatDiffersAlone) {
  EXPECT_EQ(diff_text(diff_of({grown(), KernelDiff{}}), {}),
            "a.so -> b.so\n"
            "sm_90  fat: more resources\n"
            "  registers 32 -> 40 (+8)\n"
            "  mix: +4 integer\n"
            "  @@ block 1\n"
            "    EXIT\n"
            "  + FADD R1, R1, R1\n"
            "1 kernel unchanged\n");
}

TEST(DiffText, ArchitecturesThatOnlyOneFileHas) {
  FileDiff diff = diff_of({});
  diff.only_before = {"sm_80"};
  diff.only_after = {"sm_100"};
  diff.before_arch = "sm_86";
  diff.after_arch = "sm_90";
  const std::string text = diff_text(diff, {});
  EXPECT_THAT(text, HasSubstr("sm_80 only in the first: not compared\n"));
  EXPECT_THAT(text, HasSubstr("sm_100 only in the second: not compared\n"));
  EXPECT_THAT(text, HasSubstr("no common architecture: sm_86 of the first compared with sm_90"));
  EXPECT_THAT(text, HasSubstr("neither contains kernels in SASS\n"));
}

TEST(DiffText, ColorAndColumns) {
  KernelDiff kernel = grown();
  kernel.name = "a_kernel_with_a_long_name";
  EXPECT_THAT(diff_text(diff_of({kernel}), {.columns = 30}), HasSubstr("sm_90  a_kernel_…: more"));
  const std::string text = diff_text(diff_of({kernel}), {.color = true});
  EXPECT_THAT(text, HasSubstr("\x1b[32m  + FADD R1, R1, R1\n\x1b[0m"));
  EXPECT_THAT(diff_text(diff_of({kernel}), {}), Not(HasSubstr("\x1b")));
}

TEST(DiffText, OtherCodeWithTheSameFigures) {
  KernelDiff kernel = grown();
  kernel.change = Change::Same;
  EXPECT_THAT(diff_text(diff_of({kernel}), {}), HasSubstr("fat: different code, same figures\n"));
}

TEST(DiffPage, ChangedKernelsWithBothValues) {
  KernelDiff small = grown();
  small.name = "thin<int>(int*)";
  small.change = Change::FewerResources;
  small.figures = {{"registers", 40, 32}};
  const std::string page = diff_page(diff_of({small, grown(), KernelDiff{}}));
  EXPECT_THAT(
      page,
      HasSubstr("2 kernels changed: 1 with more resources, 1 with fewer resources; 1 unchanged."));
  EXPECT_THAT(page, HasSubstr("32 → 40 <span class=\"delta more\">+8</span>"));
  EXPECT_THAT(page, HasSubstr("40 → 32 <span class=\"delta less\">−8</span>"));
  EXPECT_THAT(page, HasSubstr("<div class=\"plus\">+ FADD R1, R1, R1</div>"));
  EXPECT_THAT(page, Not(HasSubstr("MOV R1, R2")));  // of a block that did not change
  // What a reviewer has to see comes first.
  EXPECT_LT(page.find("#kernel0\">fat"), page.find("#kernel1\">thin"));
}

TEST(DiffPage, NothingChangedAndNothingThere) {
  EXPECT_THAT(diff_page(diff_of({KernelDiff{}})), HasSubstr("No kernel changed (1 compared)."));
  EXPECT_THAT(diff_page(diff_of({})), HasSubstr("Neither file contains kernels in SASS."));
}

TEST(DiffPage, ManyKernelsAndHostileNames) {
  KernelDiff kernel = grown();
  kernel.name = "</table><script>alert(1)</script>";
  kernel.blocks[1].lines.resize(300, {'+', "FADD R1, R1, R1"});
  const std::string page = diff_page(diff_of(std::vector<KernelDiff>(5000, kernel)));
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("3,500 more: kiln diff --json"));
}

}  // namespace
}  // namespace kiln::report
