// SPDX-License-Identifier: Apache-2.0
// Is the report of a build shown whole: steps, programs, why; also when nothing ran?
#include "report/build.h"

#include <gmock/gmock.h>

#include "count_of.h"

namespace kiln::report {
namespace {

using results::BuildReport;
using results::BuildStep;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

BuildStep step(std::string what, int64_t begin_ms, double seconds, std::string cache = "made") {
  BuildStep out;
  out.what = std::move(what);
  out.kind = "device";
  out.cache = std::move(cache);
  out.begin_ns = 1'000'000'000 + begin_ms * 1'000'000;
  out.seconds = seconds;
  return out;
}

BuildReport report(std::vector<BuildStep> steps) {
  BuildReport out;
  out.name = "add";
  out.rebuilt = !steps.empty();
  out.seconds = 1.5;
  out.architectures = "sm_90";
  out.trigger = "add.cu changed";
  out.lane = "full";
  out.why_lane = "the first build";
  out.jobs = 2;
  out.cores = 4;
  out.why_jobs = "as many as cores";
  out.available_bytes = 3'500'000'000;
  out.steps = std::move(steps);
  return out;
}

TEST(Lanes, StepsThatOverlapAreApart) {
  EXPECT_THAT(lanes_of({}), ElementsAre());
  EXPECT_THAT(lanes_of({step("a", 0, 1), step("b", 500, 1), step("c", 1000, 1)}),
              ElementsAre(0, 1, 0));
}

TEST(BuildText, SaysWhyAndHowLong) {
  BuildStep one = step("compile add.cu", 0, 1.25);
  one.cache_why = "miss: add.cu changed";
  one.peak_bytes = 512'000'000;
  one.commands = {{"cicc", one.begin_ns, 0.5, 0.4, 512'000'000}};
  BuildReport built = report({one});
  built.headers = {{"cub.cuh", 0.25}};
  EXPECT_EQ(build_text(built),
            "because       add.cu changed\n"
            "lane          full: the first build\n"
            "architectures sm_90\n"
            "jobs          2 (as many as cores); 4 cores, 3.50 GB of memory available\n"
            "step          compile add.cu 1.25 s, 512 MB\n"
            "                miss: add.cu changed\n"
            "                cicc 500 ms\n"
            "outside steps 250 ms, timing the headers included\n"
            "header        cub.cuh 250 ms\n");
}

TEST(BuildPage, SaysWhatIsInNoStep) {
  const std::string page = build_page(report({step("a", 0, 0.5), step("b", 500, 0.5)}));
  EXPECT_THAT(page, HasSubstr("500 ms of it outside the steps"));
  EXPECT_THAT(page, HasSubstr("full build (the first build)"));
  EXPECT_THAT(build_page(report({step("a", 0, 1.5)})), Not(HasSubstr("outside the steps")));
}

TEST(BuildPage, NothingRan) {
  const std::string page = build_page(report({}));
  EXPECT_THAT(page, HasSubstr("nothing changed"));
  EXPECT_THAT(page, HasSubstr("No step had to run."));
  EXPECT_THAT(page, Not(HasSubstr("<svg")));
}

TEST(BuildPage, OneStepAndMany) {
  EXPECT_EQ(count_of(build_page(report({step("a", 0, 1)})), "<rect"), 1u);
  std::vector<BuildStep> steps;
  for (int i = 0; i < 300; ++i) {
    steps.push_back(step("step " + std::to_string(i), 10 * i, 0.05));
    steps.back().commands = {{"ptxas", steps.back().begin_ns, 0.01, 0.01, 1000}};
  }
  const std::string page = build_page(report(steps));
  EXPECT_EQ(count_of(page, "<rect"), 600u);
  EXPECT_EQ(count_of(page, "<tr>"), 301u);
}

TEST(BuildPage, StepsWithoutDurationAreDrawn) {
  const std::string page = build_page(report({step("a", 0, 0), step("b", 0, 0)}));
  EXPECT_EQ(count_of(page, "<rect"), 2u);
  EXPECT_THAT(page, Not(HasSubstr("nan")));
  EXPECT_THAT(page, Not(HasSubstr("inf")));
}

TEST(BuildPage, HostileNamesAreText) {
  const std::string hostile = "<script>alert(1)</script>\"'&";
  BuildReport built = report({step(hostile, 0, 1)});
  built.steps[0].kind = built.steps[0].cache = built.name = built.architectures = hostile;
  built.lane = built.why_lane = built.why_jobs = hostile;
  built.steps[0].commands = {{hostile, 0, 1, 1, 1}};
  built.headers = {{hostile, 1}};
  const std::string page = build_page(built);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"));
}

TEST(BuildTrace, HasAnEventForEachStepAndProgram) {
  BuildStep one = step("a", 5, 1), two = step("b", 0, 1);
  two.commands = {{"cicc", two.begin_ns, 0.5, 0.4, 7}};
  const Json trace = build_trace(report({one, two}));
  ASSERT_EQ(trace["traceEvents"].size(), 3u);
  EXPECT_EQ(trace["traceEvents"][0]["ts"], 5000.0);  // since the first that began
  EXPECT_EQ(trace["traceEvents"][1]["tid"], 2);
  EXPECT_EQ(trace["traceEvents"][2]["name"], "cicc");
  EXPECT_TRUE(build_trace(report({}))["traceEvents"].empty());
}

}  // namespace
}  // namespace kiln::report
