// SPDX-License-Identifier: Apache-2.0
// Does every command have what a command must have: a summary, options that parse, a guide, a golden test?
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <set>

#include "cli/command.h"

namespace kiln::cli {
namespace {

namespace fs = std::filesystem;

TEST(Commands, HaveEachAnOwnNameAndASummaryOfOneLine) {
  std::set<std::string> names;
  for (const Command* command : commands()) {
    EXPECT_TRUE(names.insert(command->name).second) << command->name;
    std::string summary = command->summary;
    EXPECT_FALSE(summary.empty()) << command->name;
    EXPECT_LE(summary.size(), 60u) << command->name;
    EXPECT_EQ(summary.find('\n'), std::string::npos) << command->name;
    EXPECT_FALSE(summary.ends_with('.')) << command->name;
  }
}

TEST(Commands, DescribeEveryOption) {
  for (const Command* command : commands()) {
    CLI::App app;
    ASSERT_TRUE(command->setup(app)) << command->name;
    for (const CLI::Option* option : app.get_options())
      EXPECT_FALSE(option->get_description().empty()) << command->name << " " << option->get_name();
  }
}

TEST(Commands, HaveEachAGuideAndAGoldenTest) {
  fs::path tests = KILN_TEST_DATA;
  for (const Command* command : commands()) {
    std::string name = command->name;
    EXPECT_TRUE(fs::is_regular_file(tests.parent_path() / "docs/guide" / (name + ".md"))) << name;
    EXPECT_TRUE(fs::is_directory(tests / "golden" / name)) << name;
  }
}

}  // namespace
}  // namespace kiln::cli
