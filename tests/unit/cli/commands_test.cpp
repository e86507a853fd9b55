// SPDX-License-Identifier: Apache-2.0
// Does every command have what a command must have: a summary, options that parse, a guide, a
// golden test?
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <set>

#include "cli/build_options.h"
#include "cli/command.h"
#include "tune/local_workers.h"

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

// A value for an option of `kiln build` that is not its default.
std::string value_for(const CLI::Option& option) {
  const std::string name = option.get_lnames().front();
  if (name == "compat") return "never";
  if (name == "findings") return "error";
  if (name == "build-dir") return "/b";
  return name == "define" ? "A=1" : "x";
}

// `kiln tune` builds its variants by these words: an option that it takes and drops would tune
// something else.
TEST(BuildWords, CarryEveryOptionOfABuild) {
  CLI::App all;
  build::Request unused;
  add_build_options(all, unused);
  for (const CLI::Option* option : all.get_options()) {
    const std::string name = option->get_lnames().empty() ? "" : option->get_lnames().front();
    // --watch is run_command_line's, --explain for whoever reads the outcome.
    if (name.empty() || name == "help" || name == "watch" || name == "explain") continue;
    const bool flag = option->get_expected_max() == 0;
    CLI::App app;
    build::Request request;
    add_build_options(app, request);
    const std::string word = "--" + name + (flag ? "" : "=" + value_for(*option));
    app.parse(word);
    EXPECT_EQ(tune::build_words(request), std::vector<std::string>{word});
  }
}

}  // namespace
}  // namespace kiln::cli
