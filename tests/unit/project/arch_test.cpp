// SPDX-License-Identifier: Apache-2.0
// Is every way to write an architecture read, and is PTX always there?
#include "project/arch.h"

#include <gmock/gmock.h>

namespace kiln::project {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string flags(std::string_view text) {
  auto list = parse_arch_list(text);
  if (!list) return "error: " + list.error().what;
  std::string out;
  for (const std::string& flag : gencode_flags(*list)) out += (out.empty() ? "" : " ") + flag;
  return out;
}

TEST(Arch, OneGetsItsCodeAndItsPtx) {
  for (const char* text : {"9.0", "90", "sm_90", "9.0+PTX", "SM_90", " 9.0; "})
    EXPECT_EQ(flags(text), "-gencode=arch=compute_90,code=[sm_90,compute_90]") << text;
}

TEST(Arch, OfSeveralTheNewestGetsPtx) {
  EXPECT_EQ(
      flags("9.0;8.0"),
      "-gencode=arch=compute_80,code=[sm_80] -gencode=arch=compute_90,code=[sm_90,compute_90]");
}

TEST(Arch, ExplicitPtxIsWhatWasAskedFor) {
  EXPECT_EQ(
      flags("8.0+PTX 9.0"),
      "-gencode=arch=compute_80,code=[sm_80,compute_80] -gencode=arch=compute_90,code=[sm_90]");
}

TEST(Arch, AVariantGetsPtxOfItsOwn) {
  EXPECT_EQ(flags("9.0a"), "-gencode=arch=compute_90a,code=[sm_90a,compute_90a]");
  EXPECT_EQ(flags("8.0,9.0a"),
            "-gencode=arch=compute_80,code=[sm_80,compute_80] "
            "-gencode=arch=compute_90a,code=[sm_90a,compute_90a]");
}

TEST(Arch, ComputeAloneIsPtxAlone) {
  EXPECT_EQ(flags("compute_80"), "-gencode=arch=compute_80,code=[compute_80]");
}

TEST(Arch, KnowsTorchsFamilyNames) { EXPECT_EQ(flags("Hopper"), flags("9.0+PTX")); }

TEST(Arch, TwoDigitMajorsAreRead) {
  auto list = parse_arch_list("10.0;120");
  ASSERT_TRUE(list);
  EXPECT_THAT(list->sass, ElementsAre(Arch{10, 0, 0}, Arch{12, 0, 0}));
}

TEST(Arch, RefusesWhatIsNone) {
  for (const char* text : {"9", "x", "9.0b", "9.0.1", "sm_", "9999", "-9.0", "9.00"}) {
    auto list = parse_arch_list(text);
    ASSERT_FALSE(list) << text;
    EXPECT_EQ(list.error().fault, Fault::Usage);
    EXPECT_THAT(list.error().what, HasSubstr(text));
  }
  EXPECT_FALSE(parse_arch_list(" ; "));
}

TEST(Arch, FlagsOfNvccAreTakenForAList) {
  auto taken = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "-O2");
    flags.emplace_back("-lineinfo");
    std::string list = take_arch_flags(flags);
    EXPECT_THAT(flags, ElementsAre("-O2", "-lineinfo"));
    return list;
  };
  EXPECT_EQ(taken({}), "");
  EXPECT_EQ(taken({"-gencode=arch=compute_90a,code=sm_90a"}), "sm_90a");
  EXPECT_EQ(taken({"-gencode", "arch=compute_80,code=[sm_80,compute_80]",
                   "--generate-code=arch=compute_90,code=sm_90"}),
            "sm_80;compute_80;sm_90");
  EXPECT_EQ(taken({"-gencode=arch=compute_80,code=\"sm_80,compute_80\""}), "sm_80;compute_80");
  EXPECT_EQ(taken({"-arch=sm_90"}), "sm_90");
  EXPECT_EQ(taken({"--gpu-architecture", "compute_80"}), "compute_80");
  EXPECT_EQ(taken({"-arch=compute_80", "-code=sm_80,sm_86"}), "sm_80;sm_86");
  EXPECT_EQ(taken({"-arch=native"}), "native");
  std::vector<std::string> flags = {"-arch=all-major", "-O2"};
  EXPECT_EQ(take_arch_flags(flags), "");
  EXPECT_EQ(flags.size(), 2u);
}

TEST(Arch, DescribesAList) {
  EXPECT_EQ(describe(*parse_arch_list("8.0;9.0a")), "sm_80, sm_90a + PTX compute_80, compute_90a");
}

}  // namespace
}  // namespace kiln::project
