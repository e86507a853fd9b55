// SPDX-License-Identifier: Apache-2.0
// Do errors know which commands have an option, and do they call files what the user calls them?
#include "cli/usage.h"

#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <set>

#include "cli/as_written.h"
#include "cli/build_options.h"

namespace kiln::cli {
namespace {

using ::testing::HasSubstr;
using Choice = BuildChoice;

std::set<std::string> names_of(const CLI::App& app) {
  std::set<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& one : option->get_lnames()) names.insert("--" + one);
    for (const std::string& one : option->get_snames()) names.insert("-" + one);
  }
  names.erase("--help");
  names.erase("-h");
  return names;
}

TEST(Usage, KnowsTheBuildOptionsOfEveryChoice) {
  build::Request request;
  CLI::App all;
  add_build_options(all, request);
  for (const Choice& choice : {Choice{}, Choice{.name = false}, Choice{.library = false},
                               Choice{.explain = false}, Choice{.watch = false}}) {
    CLI::App whole;
    add_build_options(whole, request, choice);
    std::set<std::string> found;
    for (const std::string& name : names_of(all)) {
      CLI::App asked("", name);
      asked.disabled();
      add_build_options(asked, request, choice);
      found.merge(names_of(asked));
    }
    EXPECT_EQ(found, names_of(whole));
  }
}

TEST(Usage, ListsTheCommandsThatHaveAnOption) {
  const CLI::App app("", "kiln docs");
  EXPECT_THAT(unknown_option(app, "--arch").why, HasSubstr("build, call, run"));
  EXPECT_THAT(unknown_option(app, "--arch").why, HasSubstr("setup"));
  EXPECT_EQ(unknown_option(app, "--size").why, "only cache prune has it");
  EXPECT_EQ(unknown_option(app, "--no-such").why, "no option has a similar name");
}

std::string shown(const std::string& text, const std::vector<std::string>& words) {
  return as_written(text, words, "/code/me");
}

TEST(AsWritten, PathsAreRelativeToTheWorkingFolder) {
  EXPECT_EQ(shown("cannot read /code/me/a/x.so", {"inspect", "a/x.so"}), "cannot read a/x.so");
  EXPECT_EQ(shown("'/code/me/x.cu(3): error'", {}), "'x.cu(3): error'");
  EXPECT_EQ(shown("mkdir -p /code/me/none", {}), "mkdir -p none");
}

TEST(AsWritten, PathsAreWhatTheWordsCallThem) {
  EXPECT_EQ(shown("no /code/me/x.so.", {"./x.so"}), "no ./x.so.");
  EXPECT_EQ(shown("no /code/x.so", {"../x.so"}), "no ../x.so");
  EXPECT_EQ(shown("in /code/other/src/a.cu(3)", {"../other/"}), "in ../other/src/a.cu(3)");
  EXPECT_EQ(shown("no /code/me/x.so", {"/code/me/x.so"}), "no /code/me/x.so");
  EXPECT_EQ(shown("no /code/p/page.html", {"--html=../p/page.html"}), "no ../p/page.html");
}

TEST(AsWritten, OtherPathsStay) {
  EXPECT_EQ(shown("no kiln.toml in /code/me", {"build"}), "no kiln.toml in /code/me");
  EXPECT_EQ(shown("/code/mean/x /mnt/code/me/x", {}), "/code/mean/x /mnt/code/me/x");
  EXPECT_EQ(shown("/code/me/x.so.1", {"x.so"}), "x.so.1");
  EXPECT_EQ(as_written("/usr/bin/nvcc", {}, "/"), "/usr/bin/nvcc");
}

}  // namespace
}  // namespace kiln::cli
