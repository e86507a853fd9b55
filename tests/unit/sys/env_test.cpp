// SPDX-License-Identifier: Apache-2.0
// Are variables and terminals read as their conventions say?
#include "sys/env.h"

#include <gmock/gmock.h>

#include "sys/terminal.h"

namespace kiln::sys {
namespace {

TEST(Environment, EmptyIsAsGoodAsUnset) {
  Environment env{{"A", ""}, {"B", "x"}};
  EXPECT_EQ(env.get("A"), std::nullopt);
  EXPECT_EQ(env.get("B"), "x");
  EXPECT_EQ(env.get("C"), std::nullopt);
  EXPECT_THAT(env.entries(), ::testing::ElementsAre("A=", "B=x"));
}

TEST(Environment, IsThatOfTheProcess) {
  ::setenv("KILN_ENV_TEST", "a=b", 1);
  EXPECT_EQ(Environment::of_this_process().get("KILN_ENV_TEST"), "a=b");
}

TEST(Terminal, ColorFollowsTheOptionThenTheEnvironment) {
  EXPECT_TRUE(look_at_terminal({}, ColorChoice::Always).color_err);
  EXPECT_TRUE(look_at_terminal({{"CLICOLOR_FORCE", "1"}}, ColorChoice::Auto).color_err);
  EXPECT_FALSE(
      look_at_terminal({{"CLICOLOR_FORCE", "1"}, {"NO_COLOR", "1"}}, ColorChoice::Auto).color_err);
  EXPECT_FALSE(look_at_terminal({{"CLICOLOR_FORCE", "1"}}, ColorChoice::Never).color_err);
}

}  // namespace
}  // namespace kiln::sys
