// SPDX-License-Identifier: Apache-2.0
// Is a kiln.toml read, and is each mistake in it told with its place?
#include "project/manifest.h"

#include <gmock/gmock.h>

namespace kiln::project {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Error error_of(std::string_view text) {
  auto result = parse_manifest(text, "kiln.toml");
  EXPECT_FALSE(result) << text;
  return result ? Error{} : result.error();
}

TEST(Manifest, ReadsEveryKey) {
  auto manifest = parse_manifest(R"(
name = "fa"
sources = ["fa.cu", "x/b.cpp"]
arch = ["9.0", "8.0"]
include = ["inc"]
defines = { BLOCK_M = 128, FAST = true, TEXT = "a" }
cuda_flags = ["-Xptxas=-v"]
cflags = ["-Wall"]
ldflags = ["-lm"]
fast_math = true
findings = "error"
[tune]
BLOCK_M = [64, 128]
[bench.small]
n = 1024
)",
                                 "kiln.toml");
  ASSERT_TRUE(manifest) << format(manifest.error());
  EXPECT_EQ(manifest->name, "fa");
  EXPECT_THAT(manifest->sources, ElementsAre("fa.cu", "x/b.cpp"));
  EXPECT_EQ(manifest->arch, "9.0;8.0");
  EXPECT_THAT(manifest->include, ElementsAre("inc"));
  EXPECT_THAT(manifest->defines, ElementsAre("BLOCK_M=128", "FAST=1", "TEXT=a"));
  EXPECT_THAT(manifest->cuda_flags, ElementsAre("-Xptxas=-v"));
  EXPECT_THAT(manifest->cflags, ElementsAre("-Wall"));
  EXPECT_THAT(manifest->ldflags, ElementsAre("-lm"));
  EXPECT_TRUE(manifest->fast_math);
  EXPECT_TRUE(manifest->findings_fail);
  EXPECT_EQ(dump(manifest->tune), R"({"BLOCK_M":[64,128]})");
  EXPECT_EQ(dump(manifest->bench), R"({"small":{"n":1024}})");
}

TEST(Manifest, TheNameGivesTheSource) {
  EXPECT_THAT(parse_manifest("name = 'add'", "")->sources, ElementsAre("add.cu"));
}

TEST(Manifest, FindingsAreAWarningOrAnError) {
  EXPECT_FALSE(parse_manifest("name = 'a'\nfindings = 'warning'", "")->findings_fail);
  Error error = error_of("name = 'a'\nfindings = 'loud'");
  EXPECT_THAT(error.what, HasSubstr("kiln.toml:2:12: 'findings'"));
  EXPECT_EQ(error.why, "it must be \"warning\" or \"error\"");
}

TEST(Manifest, AnUnknownKeyHasAPlaceAndASuggestion) {
  Error error = error_of("name = 'a'\n  sorces = []\n");
  EXPECT_EQ(error.fault, Fault::Usage);
  EXPECT_EQ(error.what, "kiln.toml:2:3: unknown key 'sorces'");
  EXPECT_THAT(error.why, HasSubstr("sources"));
  EXPECT_EQ(error.fix, "write sources");
}

TEST(Manifest, ASyntaxErrorHasAPlace) {
  Error error = error_of("name = 'a'\narch = [1,\n");
  EXPECT_THAT(error.what, HasSubstr("kiln.toml:"));
  EXPECT_NE(error.why, "");
  EXPECT_NE(error.fix, "");
}

TEST(Manifest, AWrongTypeNamesBoth) {
  Error error = error_of("name = 'a'\nsources = 'a.cu'");
  EXPECT_EQ(error.what, "kiln.toml:2:11: 'sources' is a string");
  EXPECT_EQ(error.why, "it must be an array of strings");
  error = error_of("name = 'a'\nsources = ['a', 3]");
  EXPECT_EQ(error.what, "kiln.toml:2:17: 'sources[1]' is an integer");
  EXPECT_EQ(error.why, "it must be a string");
  EXPECT_THAT(error_of("name = 'a'\nfast_math = 1").why, HasSubstr("must be a boolean"));
  EXPECT_THAT(error_of("name = 'a'\ntune = 1").why, HasSubstr("must be a table"));
}

TEST(Manifest, ANameMustBeThereAndFit) {
  EXPECT_THAT(error_of("sources = ['a.cu']").what, HasSubstr("'name' is missing"));
  EXPECT_EQ(error_of("name = 'my-ops'").fix, "name = \"my_ops\"");
  EXPECT_THAT(error_of("name = 'a'\nsources = []").what, HasSubstr("'sources' is empty"));
}

}  // namespace
}  // namespace kiln::project
