// SPDX-License-Identifier: Apache-2.0
// Is a result of kiln tune shown whole; also with nothing timed, many configurations, hostile
// names?
#include "report/tune.h"

#include <gmock/gmock.h>

#include "count_of.h"

namespace kiln::report {
namespace {

using results::TuneResult;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TuneResult tuned(size_t count, const std::string& word = "4") {
  TuneResult out;
  out.op = "forward";
  out.device = {{"name", "NVIDIA H200"}};
  out.mode = "exhaustive";
  out.timed = count > 0;
  for (size_t i = 0; i < count; ++i) {
    results::TuneOutcome one;
    one.defines = {"A=" + std::to_string(i), "B=" + word};
    one.fate = i % 2 ? "pruned" : "timed";
    if (i % 2)
      one.reason = word;
    else
      one.us = 100.0 + static_cast<double>(i);
    one.facts = Json{{"registers", 32}, {"build_s", 1.25}};
    out.outcomes.push_back(one);
  }
  if (count) {
    out.space.params = {{"A", {"0"}}, {"B", {word}}};
    out.finalists = {{{"A=0"}, 100, 99, 101, {1, 1, 1}}, {{"A=2"}, 102, 101, 103, {1.02, 1, 1.04}}};
    out.best = out.finalists.front();
    out.counts = {{"timed", static_cast<int64_t>((count + 1) / 2)}};
  }
  return out;
}

TEST(TunePage, NothingOneAndMany) {
  const std::string none = tune_page(tuned(0));
  EXPECT_THAT(none, AllOf(HasSubstr("Nothing was timed"), Not(HasSubstr("Heat map"))));
  EXPECT_THAT(tune_page(tuned(1)), AllOf(HasSubstr("Heat map"), HasSubstr("100.00 us")));
  EXPECT_EQ(count_of(tune_page(tuned(500)), "<code>A="), 502u);
}

// All were wrong or crashed: there is a GPU, and no time.
TEST(TunePage, NothingPassedOnAGpu) {
  TuneResult failed = tuned(0);
  failed.timed = true;
  EXPECT_THAT(tune_page(failed),
              AllOf(HasSubstr("No variant could be timed"), Not(HasSubstr("there is no GPU"))));
}

TEST(TunePage, HostileNamesAreText) {
  const std::string hostile = "</script><script>alert(1)</script>";
  TuneResult bad = tuned(4, hostile);
  bad.op = bad.date = hostile;
  bad.arguments = {hostile};
  bad.device = {{"name", hostile}};
  bad.best->defines = {hostile};
  const std::string page = tune_page(bad);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_EQ(count_of(page, "<script"), 3u);  // its data, what all pages have, its own
}

TEST(TuneText, FinalistsReasonsAndWarnings) {
  TuneResult result = tuned(6, "spills");
  result.findings = std::vector<std::string>{"slow: 3 of 9", "slow: 5 of 9"};
  EXPECT_THAT(tune_text(result),
              AllOf(HasSubstr("forward() on NVIDIA H200"), HasSubstr("1.020x  A=2"),
                    HasSubstr("3 x pruned: spills"), HasSubstr("warning: slow: 3-5 of 9")));
  EXPECT_THAT(tune_text(tuned(0)), HasSubstr("nothing was timed"));
  EXPECT_EQ(count_of(tune_markdown(result), "\n| A="), 8u);
}

TEST(SaidOnce, OneWarningForAllFinalists) {
  EXPECT_THAT(said_once({"outliers: 46 of 897 samples are outliers (115 us to 128 us)",
                         "slow: 880 of 897, 117.5 us", "slow: 880 of 897, 99.25 us",
                         "clock changed", "slow: 879 of 897, 136 us", "clock changed"}),
              testing::ElementsAre("outliers: 46 of 897 samples are outliers (115 us to 128 us)",
                                   "slow: 879-880 of 897, 99.25-136 us", "clock changed"));
}

}  // namespace
}  // namespace kiln::report
