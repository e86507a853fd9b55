// SPDX-License-Identifier: Apache-2.0
// Is a compiler's log shortened to what its reader wrote, and to nothing less?
#include "build/run/plain_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build/run/op_names.h"

namespace kiln::build {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

SourcePlace place(std::string text = "", std::string shown = "src/add.cu") {
  return {"/w/src/add.cu", std::move(shown),
          [text](const std::string& file) { return file == "/w/src/add.cu" ? text : ""; }};
}

TEST(PlainLog, WhatIsNotAboutKilnStaysAsItWasPrinted) {
  const PlainLog plain = plain_log(
      "/w/src/add.cu(2): error: identifier \"foo\" is undefined\n    foo();\n    ^\n\n"
      "/w/inc/a.h(7): warning #177-D: x\n",
      place("\n  foo();\n"));
  EXPECT_EQ(plain.text,
            "src/add.cu(2): error: identifier \"foo\" is undefined\n    foo();\n    ^\n\n"
            "inc/a.h(7): warning #177-D: x\n");
  EXPECT_TRUE(plain.located);
  EXPECT_THAT(plain.why, IsEmpty());
}

TEST(PlainLog, APathThatOnlyEndsLikeTheFolderStays) {
  EXPECT_THAT(plain_log("/x/w/inc/a.h(7): error: x\n", place()).text, HasSubstr("/x/w/inc/a.h(7)"));
}

TEST(PlainLog, AnExpandedMacroIsTheLineThatWasWritten) {
  const PlainLog plain = plain_log(
      "/w/src/add.cu(1): error: expected a \";\"\n"
      "  do { if (__builtin_expect(!(x), 0)) ::other::fail(1); } while (0) }\n"
      "                                                                  ^\n",
      place("void f() { CHECK(x) }\n"));
  EXPECT_EQ(plain.text, "src/add.cu(1): error: expected a \";\"\n  void f() { CHECK(x) }\n");
}

TEST(PlainLog, OneMistakeIsOneSentenceAndAFix) {
  const PlainLog plain = plain_log(
      "/k/include/kiln/register.h(91): error: static assertion failed with \"KILN_OP: torch cannot "
      "pass this. Use Tensor\"\n"
      "    static_assert(NotSupported<T>::value,\n    ^\n"
      "          detected during:\n"
      "            instantiation of class \"kiln::detail::Argument<T> [with T=Options]\" at line "
      "290\n"
      "            instantiation of class \"kiln::detail::Signature<X>\" at line 235 of "
      "/k/include/kiln/spec.h\n"
      "            instantiation of \"kiln::detail::spec_fit<F>\" at line 5 of /w/src/add.cu\n\n"
      "/w/src/add.cu(5): error: incomplete type \"kiln::detail::X\" is not allowed\n"
      "  static constexpr ::kiln::detail::Fit kiln_spec_0 = 1;\n   ^\n\n"
      "2 errors detected in the compilation of \"/w/src/add.cu\".\n",
      place("\n\n\n\nKILN_OP(add, \"a\");\n"));
  EXPECT_EQ(plain.why, "src/add.cu(5): error: KILN_OP: torch cannot pass this (Options)");
  EXPECT_EQ(plain.fix, "use Tensor");
  EXPECT_THAT(plain.text, Not(HasSubstr("detail")));
}

TEST(PlainLog, GccsWordsForTheSame) {
  const PlainLog plain = plain_log(
      "In file included from /k/include/kiln/op.h:13,\n"
      "                 from /w/src/add.cu:1:\n"
      "/k/include/kiln/register.h: In instantiation of ‘struct kiln::detail::Argument<Options>’:\n"
      "/k/include/kiln/register.h:290:1:   required from ‘struct kiln::detail::Signature<X>’\n"
      "/w/src/add.cu:5:1:   required from here\n"
      "/k/include/kiln/register.h:91:17: error: static assertion failed: KILN_OP: torch cannot "
      "pass "
      "this. Use Tensor\n"
      "   91 |   static_assert(NotSupported<T>::value,\n",
      place("\n\n\n\nKILN_OP(add, \"a\");\n"));
  EXPECT_EQ(plain.why, "src/add.cu(5): error: KILN_OP: torch cannot pass this (Options)");
}

TEST(PlainLog, AFunctionThatIsAMessage) {
  const PlainLog plain = plain_log(
      "/w/src/add.cu:12:86:   in ‘constexpr’ expansion of ‘kiln::detail::FakeRule<N>(\"x\")’\n"
      "/k/include/kiln/fake_rule.h:5:127: error: call to non-‘constexpr’ function ‘void "
      "kiln::detail::the_fake_rule_is_empty()’\n"
      "    5 |   consteval FakeRule\n"
      "/k/include/kiln/fake_rule.h:2:6: note: declared here\n",
      place());
  EXPECT_EQ(plain.why, "src/add.cu(12): error: KILN_OP: the fake rule is empty");
}

TEST(PlainLog, TwoMistakesAreBothThere) {
  const std::string text = "KILN_OP(ad, \"a\");\nKILN_OP(mu, \"a\");\n";
  const PlainLog plain = plain_log(
      "/w/src/add.cu(1): error: identifier \"ad\" is undefined\n  x ::kiln::detail::Fit\n  ^\n\n"
      "/w/src/add.cu(1): error: incomplete type \"X\" is not allowed\n  x ::kiln::detail::Fit\n\n"
      "/w/src/add.cu(2): error: identifier \"mu\" is undefined\n  x ::kiln::detail::Fit\n  ^\n",
      place(text));
  EXPECT_THAT(plain.why, IsEmpty());
  EXPECT_THAT(plain.text, HasSubstr("src/add.cu(1): error: KILN_OP: no function 'ad'"));
  EXPECT_THAT(plain.text, HasSubstr("src/add.cu(2): error: KILN_OP: no function 'mu'"));
  EXPECT_THAT(plain.text, Not(HasSubstr("incomplete")));
}

TEST(PlainLog, NothingWithAPlaceIsNotLocated) {
  EXPECT_FALSE(plain_log("nvcc: Segmentation fault\n", place()).located);
  EXPECT_FALSE(plain_log("", place()).located);
}

TEST(PlainWarnings, OneOfEachLine) {
  std::set<std::string> said;
  const std::string front =
      "/w/src/add.cu(3): warning #940-D: missing return\n  f\n  ^\n\n"
      "Remark: The warnings can be suppressed with \"-diag-suppress <w>\"\n";
  EXPECT_THAT(plain_warnings(front, place(), said),
              ElementsAre("src/add.cu(3): warning #940-D: missing return\n  f\n  ^"));
  EXPECT_THAT(plain_warnings(front, place(), said), IsEmpty());
  EXPECT_THAT(plain_warnings("/w/src/add.cu: In function ‘f’:\n/w/src/add.cu:3:77: warning: no "
                             "return statement [-Wreturn-type]\n",
                             place(), said),
              IsEmpty());
  EXPECT_THAT(plain_warnings("/w/src/add.cu:9:1: warning: other\n", place(), said),
              ElementsAre("src/add.cu:9:1: warning: other"));
}

TEST(PlainLog, AnOpNamedByAWordOfCppIsOneMistake) {
  const std::string log =
      "/w/src/add.cu(1): error: expected an identifier\n  Tensor new(Tensor x);\n";
  const PlainLog plain = plain_log(log, place("Tensor new(Tensor x) {}\nKILN_OP(new, \"x\");\n"));
  EXPECT_THAT(plain.why, HasSubstr("src/add.cu(2): error: KILN_OP: 'new' is a keyword of C++"));
  EXPECT_EQ(plain.fix, "rename the function, for example to new_op");
  EXPECT_THAT(plain.text, Not(HasSubstr("expected an identifier")));
  EXPECT_THAT(plain_log(log, place("int main() {}\nKILN_OP(main, \"x\");\n")).why,
              HasSubstr("'main' is where a program starts"));
  EXPECT_THAT(plain_log(log, place("// KILN_OP(new, \"x\");\n")).why, IsEmpty());
}

TEST(PlainLog, WhatIsWrongInAConditionIsNotAboutTheOp) {
  const std::string text = "KILN_CHECK(\n    y > 0, \"no\");\n";
  const std::string macro = "  do { if (!(y > 0)) ::kiln::detail::check_failed(); } while (0)\n";
  const PlainLog plain =
      plain_log("/w/src/add.cu(2): error: identifier \"y\" is undefined\n" + macro, place(text));
  EXPECT_THAT(plain.text, HasSubstr("src/add.cu(2): error: identifier \"y\" is undefined"));
  EXPECT_THAT(plain.text, Not(HasSubstr("KILN_OP")));
  EXPECT_THAT(plain.text, Not(HasSubstr("kiln::detail")));
  EXPECT_THAT(plain.why, IsEmpty());
}

TEST(OpNames, FunctionsAreCountedAndCallsAreNot) {
  const auto count = [](std::vector<std::string> lines) { return count_functions(lines, "f"); };
  EXPECT_EQ(count({"Tensor f(Tensor a) {", "  return f(a);", "}", "KILN_OP(f, \"a\");"}), 1);
  EXPECT_EQ(count({"Tensor f(Tensor a);", "Tensor f(Tensor a) { x.f(a); }"}), 1);
  EXPECT_EQ(count({"Tensor f(Tensor a) {}", "Tensor& f(Tensor a, int b)", "{}"}), 2);
  EXPECT_EQ(count({"std::vector<int> f(int a);", "// int f(int b) {}", "/* int f() {} */"}), 1);
  EXPECT_EQ(count({"int half(int a) {}", "auto x = f(1);", "my::f(a);"}), 0);
}

}  // namespace
}  // namespace kiln::build
