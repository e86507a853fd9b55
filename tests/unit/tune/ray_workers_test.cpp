// SPDX-License-Identifier: Apache-2.0
// Does the command understand what Ray's side says? A shell plays that side.
#include "tune/ray_workers.h"

#include <gtest/gtest.h>

namespace kiln::tune {
namespace {

Result<std::unique_ptr<RayWorkers>> open_ray(const std::string& script) {
  RayPlan plan;
  plan.bridge = {"/bin/sh", "-c", script};
  plan.env = sys::Environment::of_this_process();
  plan.address = "local";
  plan.request.targets = {"x.cu"};
  return RayWorkers::open(std::move(plan));
}

constexpr const char* kReady =
    R"(read open; echo '{"ready": {"builders": 3, "lanes": [{"name": "A"}, {"name": "B"}]}}';)";

TEST(RayWorkers, SayWhoThereIs) {
  auto workers = open_ray(std::string(kReady) + "read more");
  ASSERT_TRUE(workers) << format(workers.error());
  EXPECT_EQ((*workers)->builders(), 3u);
  ASSERT_EQ((*workers)->lanes().size(), 2u);
  EXPECT_EQ(mixed_lanes((*workers)->lanes()), "A, B");
}

TEST(RayWorkers, AnErrorIsPassedOn) {
  auto workers = open_ray(
      R"(read open; echo '{"error": {"what": "cannot use Ray", "why": "it is not installed"}}'
      read x)");
  ASSERT_FALSE(workers);
  EXPECT_EQ(workers.error().what, "cannot use Ray");
  EXPECT_EQ(workers.error().why, "it is not installed");
}

TEST(RayWorkers, AnEndBeforeTheAnswerIsAnError) {
  auto workers = open_ray("echo 'no module named kiln' >&2; exit 1");
  ASSERT_FALSE(workers);
  EXPECT_EQ(workers.error().what, "the connection to Ray ended");
  EXPECT_EQ(workers.error().why, "no module named kiln");
}

TEST(RayWorkers, AnswersBecomeEvents) {
  auto workers = open_ray(std::string(kReady) + R"(
    read build; echo '{"built": 7, "answer": {"library": "l.so"}}';
    read measure; echo '{"lane_ended": 1, "id": 7, "words": "gone"}';
    read restart; echo '{"measured": 8, "lane": 0, "answer": {"us": 3}}'
    echo '{"restarted": 1, "device": {}}'; read end)");
  ASSERT_TRUE(workers);
  ASSERT_TRUE((*workers)->build(7, {"A=1"}));
  auto events = (*workers)->wait(10);
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ((*events)[0].kind, WorkEvent::Kind::Built);
  EXPECT_EQ((*events)[0].id, 7u);
  EXPECT_EQ((*events)[0].answer["library"], "l.so");
  ASSERT_TRUE((*workers)->measure(1, 7, Json{{"do", "time"}}));
  events = (*workers)->wait(10);
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ((*events)[0].kind, WorkEvent::Kind::LaneEnded);
  EXPECT_EQ((*events)[0].lane, 1u);
  EXPECT_EQ((*events)[0].words, "gone");
  ASSERT_TRUE((*workers)->restart_lane(1));
  // What came before the answer was kept.
  events = (*workers)->wait(10);
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 1u);
  EXPECT_EQ((*events)[0].kind, WorkEvent::Kind::Measured);
  EXPECT_EQ((*events)[0].id, 8u);
}

TEST(RayWorkers, LinesThatAreNobodysAnswerArePassedOver) {
  auto workers = open_ray(std::string("echo 'a library says hello';") + kReady + R"(
    read build; echo 'half a line {'; echo '[1]'; echo '{"built": "seven"}'
    echo '{"built": 7, "lane": "x", "answer": 3}'; read end)");
  ASSERT_TRUE(workers) << format(workers.error());
  ASSERT_TRUE((*workers)->build(7, {"A=1"}));
  std::vector<WorkEvent> all;
  for (int i = 0; i < 100 && all.empty(); ++i) {
    auto events = (*workers)->wait(1);
    ASSERT_TRUE(events) << format(events.error());
    all.insert(all.end(), events->begin(), events->end());
  }
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].id, 7u);
  EXPECT_EQ(all[0].answer, Json(3));
}

}  // namespace
}  // namespace kiln::tune
