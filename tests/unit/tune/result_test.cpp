// SPDX-License-Identifier: Apache-2.0
#include "tune/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::tune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Choice choice(std::vector<std::string> arguments, std::string gpu, std::string compute,
              std::vector<std::string> defines) {
  return {"op",
          std::move(arguments),
          std::move(gpu),
          std::move(compute),
          std::move(defines),
          5,
          "today",
          "0.1",
          {"ALONE"},
          "9.0a"};
}

TEST(Choices, AreReadAsTheyWereWritten) {
  Choices choices;
  put(choices, choice({"f32 8"}, "GPU A", "9.0", {"B=1"}));
  auto read = parse_choices(write_choices(choices), "tuned.json");
  ASSERT_TRUE(read);
  ASSERT_EQ(read->entries.size(), 1u);
  EXPECT_THAT(read->entries[0].defines, ElementsAre("B=1"));
  EXPECT_THAT(read->entries[0].with, ElementsAre("ALONE"));
  EXPECT_EQ(read->entries[0].arch, "9.0a");
}

TEST(Choices, ANewerOneTakesThePlaceOfTheSameShapeAndGpu) {
  Choices choices;
  put(choices, choice({"f32 8"}, "GPU A", "9.0", {"B=1"}));
  put(choices, choice({"f32 8"}, "GPU A", "9.0", {"B=2"}));
  put(choices, choice({"f32 9"}, "GPU A", "9.0", {"B=3"}));
  ASSERT_EQ(choices.entries.size(), 2u);
  EXPECT_THAT(choices.entries[0].defines, ElementsAre("B=2"));
}

TEST(Choices, ABuildTakesTheOneForItsArchitecture) {
  Choices choices;
  put(choices, choice({"f32 8"}, "GPU A", "9.0", {"B=1"}));
  put(choices, choice({"f32 8"}, "GPU B", "8.0", {"B=2"}));
  auto chosen = choose(choices, {"8.0"}, "", "tuned.json");
  ASSERT_TRUE(chosen);
  EXPECT_THAT(*chosen, ElementsAre("B=2"));
  auto none = choose(choices, {"8.9"}, "", "tuned.json");
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().why, HasSubstr("none is for 8.9; it has op(f32 8) on GPU A: B=1"));
}

TEST(Choices, SeveralThatDifferMustBeChosenFrom) {
  Choices choices;
  put(choices, choice({"f32 8"}, "GPU A", "9.0", {"B=1"}));
  put(choices, choice({"f32 9"}, "GPU A", "9.0", {"B=2"}));
  auto both = choose(choices, {"9.0"}, "", "tuned.json");
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().what, "several tuned configurations in tuned.json");
  auto one = choose(choices, {"9.0"}, "f32 9", "tuned.json");
  ASSERT_TRUE(one);
  EXPECT_THAT(*one, ElementsAre("B=2"));
}

TEST(Choices, AnythingElseIsRefused) {
  for (const char* text :
       {"", "[]", "{}", "{\"kiln_tuned\": 2}", "{\"kiln_tuned\": 1}",
        "{\"kiln_tuned\": 1, \"entries\": [{\"op\": 3}]}", "{\"kiln_tuned\": 1, \"entries\": 5}"})
    EXPECT_FALSE(parse_choices(text, "tuned.json")) << text;
}

TEST(Choices, AMissingKeyIsNamed) {
  Choices choices;
  put(choices, choice({"f32 8"}, "GPU A", "9.0", {"B=1"}));
  Json json = results::to_json(choices);
  json["entries"][0].erase("arch");
  const auto read = parse_choices(dump(json), "tuned.json");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().why, "entries[0] has no key 'arch'");
}

TEST(Progress, SaysHowFarItIs) {
  Progress now;
  now.done = 3;
  now.trials = 8;
  now.counts = {{Fate::Timed, 2}, {Fate::Pruned, 1}};
  Outcome best;
  best.defines = {"A=1", "B=2"};
  best.time_us = 12.345;
  now.best = best;
  now.left_s = 72;
  EXPECT_EQ(progress_text(now), "[3/8] 2 timed, 1 pruned; best 12.3 us: A=1 B=2; 1 min 12 s left");
}

}  // namespace
}  // namespace kiln::tune
