// SPDX-License-Identifier: Apache-2.0
// Does a variant's build get what the command line asked for, and does an odd answer of the lane
// end the lane alone? A shell plays the lane.
#include "tune/local_workers.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

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

// The lane that is started again holds this process until the build has ended and it has said hello
// itself, so that both are there at once.
constexpr char kLaneThatHolds[] = R"(
hello='{"device": {"kind": "engine", "name": "A"}}'
read question
if [ ! -e again ]; then
  touch again; echo "$hello"; read end
fi
while [ ! -e builder ]; do sleep 0.01; done
kill -STOP $PPID
touch end
until grep -q "^State:.Z" /proc/$(cat builder)/status; do sleep 0.01; done
echo "$hello"
kill -CONT $PPID
read end
)";
constexpr char kBuilder[] = R"(#!/bin/sh
echo $$ > new; mv new builder
while [ ! -e end ]; do sleep 0.01; done
echo '{"library": "a.so"}'
)";

// Whether the end of a build that comes with the hello of a lane is seen.
bool sees_the_build(const sys::fs::path& folder) {
  sys::fs::current_path(folder);
  std::ofstream("build.sh") << kBuilder;
  sys::fs::permissions("build.sh", sys::fs::perms::owner_all);
  LocalPlan plan;
  plan.kiln = folder / "build.sh";
  plan.env = sys::Environment::of_this_process();
  plan.request.directory = folder;
  plan.lane = {"/bin/sh", "-c", kLaneThatHolds};
  auto workers = LocalWorkers::open(std::move(plan));
  if (!workers || !(*workers)->build(7, {}) || !(*workers)->restart_lane(0)) return false;
  for (int i = 0; i < 20; ++i) {
    auto events = (*workers)->wait(0.1);
    if (!events) return false;
    for (const WorkEvent& event : *events)
      if (event.kind == WorkEvent::Kind::Built)
        return event.id == 7 && event.answer.value("library", "") == "a.so";
  }
  return false;
}

TEST(LocalWorkers, ABuildThatEndsAsALaneStartsIsSeen) {
  for (int i = 0; i < 3; ++i) {
    std::string name = testing::TempDir() + "/workersXXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    // In a process of its own, which may be stopped.
    EXPECT_EXIT(::_exit(sees_the_build(name) ? 0 : 1), testing::ExitedWithCode(0), "");
    sys::fs::remove_all(name);
  }
}

}  // namespace
}  // namespace kiln::tune
