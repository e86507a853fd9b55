// SPDX-License-Identifier: Apache-2.0
// Which words reach the parser, which the program or script, and what is said about wrong ones?
#include "cli/words.h"

#include <gmock/gmock.h>

#include "cli/globals.h"
#include "cli/renamed.h"

namespace kiln::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

const Command& named(std::string_view name) {
  for (const Command* row : commands())
    if (name == row->name) return *row;
  throw std::runtime_error("no such command");
}

Result<Prepared> prepared(std::string_view name, const Words& words) {
  const Command& command = named(name);
  CLI::App app(command.summary, std::string("kiln ") + command.name);
  const Run keeps_the_options = command.setup(app);
  Globals globals;
  add_global_options(app, globals);
  return prepare_words(command, app, words);
}

TEST(Words, FindTheCommandBehindGlobalOptions) {
  EXPECT_EQ(command_at({"build", "x"}), 0u);
  EXPECT_EQ(command_at({"--json", "-q", "build"}), 2u);
  EXPECT_EQ(command_at({"--color", "never", "build"}), 2u);
  EXPECT_EQ(command_at({"--color=never", "build"}), 1u);
  EXPECT_EQ(command_at({"--help"}), 1u);
  EXPECT_EQ(command_at({"--color"}), 1u);
}

TEST(Words, JoinOptionsWithTheirValues) {
  EXPECT_THAT(prepared("build", {"a.cu", "--arch", "9.0", "-D", "A=1,2", "-DB", "-I", "x"})->words,
              ElementsAre("a.cu", "--arch=9.0", "--define=A=1,2", "--define=B", "--include=x"));
  EXPECT_THAT(prepared("build", {"--name", "", "a.cu"})->words, ElementsAre("--name", "", "a.cu"));
}

TEST(Words, TakeFlagsOfCompilersAsValues) {
  EXPECT_THAT(prepared("build", {"--cuda-flag", "-Xptxas=-v", "--ldflag", "-lm"})->words,
              ElementsAre("--cuda-flag=-Xptxas=-v", "--ldflag=-lm"));
}

TEST(Words, TakeNegativeNumbersAsValues) {
  EXPECT_THAT(prepared("call", {"a.cu", "op", "-5", "-.5", "--repeat", "-1"})->words,
              ElementsAre("a.cu", "op", "-5", "-.5", "--repeat=-1"));
}

TEST(Words, NameAnOptionOfKilnThatTheScriptGets) {
  const auto after = prepared("profile", {"train.py", "--steps", "3", "--html", "p.html"});
  EXPECT_THAT(after->rest, ElementsAre("--steps", "3", "--html", "p.html"));
  EXPECT_THAT(after->notes, ElementsAre(HasSubstr("--html stands after the script")));
  EXPECT_THAT(prepared("sanitize", {"train.py", "--sarif=x"})->notes,
              ElementsAre(HasSubstr("--sarif")));
  EXPECT_THAT(prepared("profile", {"train.py", "--steps", "3"})->notes, IsEmpty());
  EXPECT_THAT(prepared("profile", {"train.py", "--", "--html", "p.html"})->notes, IsEmpty());
  EXPECT_THAT(prepared("profile", {"--html", "p.html", "train.py"})->notes, IsEmpty());
}

TEST(Words, TakeShortFlagsTogether) {
  EXPECT_THAT(prepared("build", {"-vq", "a.cu"})->words, ElementsAre("-v", "-q", "a.cu"));
}

TEST(Words, AfterDashesAreTheProgramsOfRun) {
  const auto run = prepared("run", {"a.cu", "b.cu", "--arch", "9.0", "--", "--limit", "5", "--"});
  EXPECT_THAT(run->words, ElementsAre("a.cu", "b.cu", "--arch=9.0"));
  EXPECT_THAT(run->rest, ElementsAre("--limit", "5", "--"));
  const auto call = prepared("call", {"a.cu", "op", "--", "-inf"});
  EXPECT_THAT(call->words, ElementsAre("a.cu", "op", "--", "-inf"));
  EXPECT_THAT(call->rest, IsEmpty());
}

TEST(Words, AfterAScriptAreTheScriptsOfProfile) {
  const auto bare = prepared("profile", {"--html", "p.html", "train.py", "--steps", "3", "--html"});
  EXPECT_THAT(bare->words, ElementsAre("--html=p.html", "train.py"));
  EXPECT_THAT(bare->rest, ElementsAre("--steps", "3", "--html"));
  EXPECT_THAT(prepared("profile", {"train.py", "--", "--steps"})->rest, ElementsAre("--steps"));
  // The value of an option is not the target, and an op has no script.
  EXPECT_THAT(prepared("profile", {"--trace", "x.py", "a.cu", "op", "--limit", "5"})->words,
              ElementsAre("--trace=x.py", "a.cu", "op", "--limit=5"));
}

TEST(Words, OldNamesBecomeNewOnesWithANote) {
  const auto bench = prepared("bench", {"--most", "5", "--time", "2", "--axis", "n=1,2"});
  EXPECT_THAT(bench->words, ElementsAre("--time=5", "--time=2", "--axis=n=1,2"));
  EXPECT_THAT(bench->notes, ElementsAre(HasSubstr("--most is now --time"),
                                        HasSubstr("--time now stops after SECONDS")));
  EXPECT_THAT(prepared("build", {"--timeline", "t.json"})->words, ElementsAre("--trace=t.json"));
  EXPECT_THAT(prepared("build", {"--timeline=t.html"})->words, ElementsAre("--html=t.html"));
  EXPECT_THAT(prepared("build", {"--lane", "full", "a.cu"})->words, ElementsAre("--fresh", "a.cu"));
  EXPECT_THAT(prepared("build", {"--lane=auto", "a.cu"})->words, ElementsAre("a.cu"));
  EXPECT_THAT(prepared("run", {"a.cu", "--source=b.cu"})->words, ElementsAre("a.cu", "b.cu"));
  EXPECT_THAT(prepared("doctor", {"--build", ".", "--quick"})->words,
              ElementsAre(".", "--no-compile"));
  EXPECT_THAT(prepared("test", {"--clean"})->words, ElementsAre("--fresh"));
}

// A name in the table that no command has would be a dead end.
TEST(Words, EveryOldNameLeadsToAnOption) {
  const std::pair<const char*, const char*> kRows[] = {
      {"call", "--save=x.npy"},    {"bench", "--most=1"},    {"bench", "--update"},
      {"bench", "--explain"},      {"tune", "--param=A=1"},  {"tune", "--reference=torch.add"},
      {"tune", "--check=x"},       {"inspect", "--block=8"}, {"setup", "--cache=x"},
      {"bench", "--axis=D:A=1,2"},
  };
  for (const auto& [command, word] : kRows) {
    const auto made = prepared(command, {word});
    ASSERT_TRUE(made) << command << " " << word;
    EXPECT_EQ(made->notes.size(), 1u) << command << " " << word;
  }
}

TEST(Words, WrongOnesAreUsageErrorsThatSuggest) {
  const auto why = [](std::string_view command, const Words& words) {
    const auto made = prepared(command, words);
    return made ? std::string("no error") : made.error().what + ": " + made.error().why;
  };
  EXPECT_EQ(why("build", {"--archs", "9.0"}),
            "kiln build has no option --archs: did you mean --arch?");
  EXPECT_THAT(why("wheel", {"--watch"}),
              HasSubstr("only build, call, run, test, sanitize and bench have it"));
  EXPECT_THAT(why("build", {"--arch"}), HasSubstr("--arch needs a value"));
  EXPECT_THAT(why("build", {"--arch", "--fast-math"}), HasSubstr("--arch needs a value"));
  EXPECT_THAT(why("build", {"--fast-math=1"}), HasSubstr("--fast-math takes no value"));
  EXPECT_THAT(why("cache", {"claer"}), HasSubstr("kiln cache has no command 'claer'"));
  EXPECT_EQ(why("cache", {"clear", "--all"}), "no error");
}

}  // namespace
}  // namespace kiln::cli
