// SPDX-License-Identifier: Apache-2.0
// Does a variant's build get what the command line asked for, and does an odd answer of the lane
// end the lane alone? A shell plays the lane.
#include "tune/local_workers.h"

#include <gmock/gmock.h>

namespace kiln::tune {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Result<std::unique_ptr<LocalWorkers>> open(const std::string& script) {
  LocalPlan plan;
  plan.kiln = "/bin/true";
  plan.env = sys::Environment::of_this_process();
  plan.lane = {"/bin/sh", "-c",
               R"(read hello; echo '{"device": {"kind": "engine", "name": "A"}}'; )" + script};
  return LocalWorkers::open(std::move(plan));
}

Result<std::vector<WorkEvent>> first_events(LocalWorkers& workers) {
  for (int i = 0; i < 100; ++i) {
    auto events = workers.wait(1);
    if (!events || !events->empty()) return events;
  }
  return std::vector<WorkEvent>();
}

TEST(LocalWorkers, WordsOfABuildNameEveryOptionThatWasGiven) {
  EXPECT_THAT(build_words({}), IsEmpty());
  build::Request request;
  request.compat = "never";
  request.findings_fail = true;
  request.fresh = true;
  for (const char* word : {"--compat=never", "--findings=error", "--fresh"})
    EXPECT_THAT(build_words(request), Contains(word));
  request.findings_fail = false;  // else a project's own setting would hold
  EXPECT_THAT(build_words(request), Contains("--findings=warning"));
}

TEST(LocalWorkers, AnOddAnswerEndsTheLane) {
  for (const char* odd :
       {"printf of a kernel", "[]", "{}", R"({"id": "one"})", R"({"id": -1})", R"({"us": 1)"}) {
    auto workers = open("read question; echo '" + std::string(odd) + "'; read end");
    ASSERT_TRUE(workers) << format(workers.error());
    ASSERT_TRUE((*workers)->measure(0, 3, Json{{"do", "time"}}));
    auto events = first_events(**workers);
    ASSERT_TRUE(events) << odd << format(events.error());
    ASSERT_EQ(events->size(), 1u) << odd;
    EXPECT_EQ((*events)[0].kind, WorkEvent::Kind::LaneEnded) << odd;
    EXPECT_THAT((*events)[0].words, HasSubstr("unexpected answer"));
    EXPECT_TRUE((*workers)->restart_lane(0));
  }
}

TEST(LocalWorkers, AnAnswerWithItsNumberIsAMeasurement) {
  auto workers = open(R"(read question; echo '{"id": 3, "us": 1.5}'; read end)");
  ASSERT_TRUE(workers);
  ASSERT_TRUE((*workers)->measure(0, 3, Json{{"do", "time"}}));
  auto events = first_events(**workers);
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ((*events)[0].kind, WorkEvent::Kind::Measured);
  EXPECT_EQ((*events)[0].id, 3u);
}

}  // namespace
}  // namespace kiln::tune
