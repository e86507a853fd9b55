// SPDX-License-Identifier: Apache-2.0
#include "tune/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "fake_workers.h"

namespace kiln::tune {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

class TunerTest : public testing::Test {
 protected:
  TunerTest() {
    char name[] = "/tmp/kiln-tuner-XXXXXX";
    folder_ = ::mkdtemp(name);
    space_ = *Space::from_flags({"A=1,2,3,4", "B=1,2"}, {});
    workers_.variant = [](const std::string& text) {
      FakeVariant one;
      one.us = 100 - 10 * (text[2] - '0') - (text[6] - '0');
      return one;
    };
    task_.op = "op";
    task_.finalists = 3;
    task_.lane_limit_s = 5;
  }
  ~TunerTest() override { std::filesystem::remove_all(folder_); }

  Result<Tuned> run(uint64_t trials = 0) {
    auto journal = Journal::open(sys::real_files(), folder_ / "journal.jsonl", Json{{"op", "op"}});
    EXPECT_TRUE(journal);
    Hooks hooks;
    hooks.now = [this] { return workers_.clock; };
    hooks.on_progress = [this](const Progress& now) { progress_.push_back(now); };
    auto search = Search::make(space_, {trials, 1});
    Tuner tuner(space_, *search, *journal, workers_, task_, hooks);
    auto tuned = tuner.run();
    outcomes_ = journal->outcomes();
    return tuned;
  }
  std::map<std::string, Fate> fates() const {
    std::map<std::string, Fate> found;
    for (const Outcome& outcome : outcomes_) found[text::join(outcome.defines, " ")] = outcome.fate;
    return found;
  }

  std::filesystem::path folder_;
  Space space_;
  FakeWorkers workers_;
  Task task_;
  std::vector<Outcome> outcomes_;
  std::vector<Progress> progress_;
};

TEST_F(TunerTest, TriesAllAndRacesTheFastest) {
  auto tuned = run();
  ASSERT_TRUE(tuned) << format(tuned.error());
  EXPECT_EQ(outcomes_.size(), 8u);
  EXPECT_TRUE(tuned->timed);
  ASSERT_EQ(tuned->finalists.size(), 3u);
  // By single times "A=4 B=2" is first; the race has the last word.
  EXPECT_THAT(tuned->finalists[0].defines, ElementsAre("A=4", "B=1"));
  EXPECT_EQ(workers_.races, 1);
  EXPECT_EQ(best_of(outcomes_)->defines, (std::vector<std::string>{"A=4", "B=2"}));
}

TEST_F(TunerTest, BuildersRunAheadOfTheLane) {
  workers_.slots = 3;
  auto tuned = run();
  ASSERT_TRUE(tuned);
  EXPECT_EQ(workers_.most_builds, 3u);
  // Eight measurements of a second after a first build of a second, and the race: what takes
  // longest sets the pace.
  EXPECT_NEAR(tuned->measure_s, 9, 0.1);
  EXPECT_NEAR(tuned->build_s, 3, 0.1);
  EXPECT_NEAR(tuned->total_s, 10, 0.1);
}

TEST_F(TunerTest, EveryKindOfFailureIsRecordedAndSkipped) {
  auto right = workers_.variant;
  workers_.variant = [right](const std::string& text) {
    FakeVariant one = right(text);
    if (text == "A=1 B=2") one.end = FakeVariant::Wrong;
    if (text == "A=2 B=1") one.end = FakeVariant::Crash;
    if (text == "A=2 B=2") one.end = FakeVariant::Hang;
    if (text == "A=3 B=1") one.end = FakeVariant::Lose;
    if (text == "A=3 B=2")
      one.build_error = "x.cu(3): error: static assertion failed with \"too large\"\n1 error";
    return one;
  };
  auto tuned = run();
  ASSERT_TRUE(tuned) << format(tuned.error());
  const auto seen = fates();
  EXPECT_EQ(seen.at("A=1 B=1"), Fate::Timed);
  EXPECT_EQ(seen.at("A=1 B=2"), Fate::Wrong);
  EXPECT_EQ(seen.at("A=2 B=1"), Fate::Crashed);
  EXPECT_EQ(seen.at("A=2 B=2"), Fate::Hung);
  EXPECT_EQ(seen.at("A=3 B=1"), Fate::Crashed);
  EXPECT_EQ(seen.at("A=3 B=2"), Fate::Unbuildable);
  EXPECT_EQ(workers_.restarts, 3);  // after the crash, the hang and the lost device
  std::map<Fate, std::string> reasons;
  for (const Outcome& outcome : outcomes_) reasons[outcome.fate] = outcome.reason;
  EXPECT_EQ(reasons[Fate::Unbuildable],
            "x.cu(3): error: static assertion failed with \"too large\"");
  EXPECT_EQ(reasons[Fate::Hung], "it did not finish in 5 s");
  EXPECT_EQ(reasons[Fate::Wrong], "3 of 8 elements differ");
  EXPECT_THAT(tuned->finalists[0].defines, ElementsAre("A=4", "B=1"));
}

TEST_F(TunerTest, WhatABuildRefusesForItsSpillsIsPruned) {
  auto right = workers_.variant;
  workers_.variant = [right](const std::string& text) {
    FakeVariant one = right(text);
    if (text == "A=1 B=1")
      one.build_error =
          "error: ptxas findings are errors here\nk<64>(): registers spill to local "
          "memory: 8";
    return one;
  };
  ASSERT_TRUE(run());
  EXPECT_EQ(fates().at("A=1 B=1"), Fate::Pruned);
}

TEST_F(TunerTest, GoesOnWhereItWasEnded) {
  task_.seconds = 4;  // enough for a few
  auto first = run();
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->time_is_over);
  const size_t done = outcomes_.size();
  ASSERT_GT(done, 0u);
  ASSERT_LT(done, 8u);
  task_.seconds = 0;
  const size_t built_before = workers_.measured.size();
  auto second = run();
  ASSERT_TRUE(second);
  EXPECT_EQ(outcomes_.size(), 8u);
  EXPECT_EQ(workers_.measured.size() - built_before, 8 - done);
}

TEST_F(TunerTest, AFinalistThatCannotBeBuiltAgainIsTold) {
  ASSERT_TRUE(run());
  auto right = workers_.variant;
  workers_.variant = [right](const std::string& text) {
    FakeVariant one = right(text);
    if (text == "A=4 B=2") one.build_error = "the disk is full";
    return one;
  };
  auto again = run();
  ASSERT_TRUE(again) << format(again.error());
  EXPECT_THAT(
      again->findings,
      ElementsAre("the fastest were not timed in alternation: A=4 B=2 could not be built again"));
  EXPECT_THAT(again->finalists[0].defines, ElementsAre("A=4", "B=2"));  // by its single time
}

TEST_F(TunerTest, ABuildThatHangsBeforeTheRaceEnds) {
  ASSERT_TRUE(run());
  auto right = workers_.variant;
  workers_.variant = [right](const std::string& text) {
    FakeVariant one = right(text);
    if (text == "A=4 B=1") one.build_s = 1e9;
    return one;
  };
  task_.build_limit_s = 7;
  auto again = run();
  ASSERT_TRUE(again) << format(again.error());
  EXPECT_THAT(again->findings, ElementsAre(testing::HasSubstr("A=4 B=1 could not be built again")));
  EXPECT_LT(again->total_s, 10);
}

TEST_F(TunerTest, OnlyTheFastestLibrariesAreKept) {
  ASSERT_TRUE(run());
  EXPECT_EQ(workers_.forgotten.size(), 5u);
  EXPECT_THAT(workers_.forgotten, testing::Not(testing::Contains("A=4 B=2")));
}

TEST_F(TunerTest, WithoutAGpuNothingIsTimed) {
  workers_.devices = {Json{{"kind", "engine"}, {"name", "kiln's engine on this CPU"}}};
  auto tuned = run();
  ASSERT_TRUE(tuned);
  EXPECT_FALSE(tuned->timed);
  EXPECT_TRUE(tuned->finalists.empty());
  EXPECT_EQ(workers_.races, 0);
  EXPECT_EQ(outcomes_[0].fate, Fate::Checked);
}

TEST_F(TunerTest, DifferentGpusAreRefused) {
  workers_.devices.push_back(Json{{"kind", "cuda"}, {"name", "GPU B"}, {"compute", "8.0"}});
  auto tuned = run();
  ASSERT_FALSE(tuned);
  EXPECT_EQ(tuned.error().why, "times of GPU A, GPU B cannot be compared");
  EXPECT_TRUE(workers_.built.empty());
}

TEST_F(TunerTest, SeveralLanesShareTheWork) {
  workers_.devices.push_back(workers_.devices[0]);
  workers_.slots = 8;
  auto tuned = run();
  ASSERT_TRUE(tuned);
  EXPECT_EQ(outcomes_.size(), 8u);
  // The first makes the reference alone; then two at a time.
  EXPECT_NEAR(tuned->measure_s, 1 + 4 + 1, 0.6);
}

TEST_F(TunerTest, ASearchFindsOneNearTheBestWithoutTryingAll) {
  space_ = *Space::from_flags({"A=1,2,3,4,5,6", "B=1,2,3,4,5,6"}, {});
  auto tuned = run(18);
  ASSERT_TRUE(tuned);
  EXPECT_EQ(outcomes_.size(), 18u);
  EXPECT_LE(best_of(outcomes_)->time_us, 34 * 1.1);  // of A=6 B=6
}

TEST_F(TunerTest, ProgressTellsTheBestAndTheTimeLeft) {
  ASSERT_TRUE(run());
  const Progress& late = progress_[progress_.size() - 2];
  EXPECT_EQ(late.trials, 8u);
  ASSERT_TRUE(late.best);
  EXPECT_GT(late.left_s, 0);
}

TEST_F(TunerTest, WrongArgumentsEndItAtOnce) {
  // Not the variant's fault: every one of them would fail alike.
  class Refusing final : public Workers {
   public:
    std::vector<Json> devices = {Json{{"kind", "cuda"}, {"name", "GPU"}}};
    std::deque<WorkEvent> events;
    size_t builders() const override { return 1; }
    const std::vector<Json>& lanes() const override { return devices; }
    Status build(uint64_t id, const std::vector<std::string>&) override {
      events.push_back({WorkEvent::Kind::Built, id, 0, Json{{"library", "/proc/self/exe"}}, ""});
      return {};
    }
    Status measure(size_t, uint64_t id, const Json&) override {
      const Json error = {
          {"what", "op takes 2 arguments"}, {"why", "3 were given"}, {"fault", "usage"}};
      events.push_back(
          {WorkEvent::Kind::Measured, id, 0, Json{{"error", error}, {"fate", "crashed"}}, ""});
      return {};
    }
    Result<std::vector<WorkEvent>> wait(double) override {
      std::vector<WorkEvent> out(events.begin(), events.end());
      events.clear();
      return out;
    }
    Status restart_lane(size_t) override { return {}; }
    void stop_build(uint64_t) override {}
    void forget(uint64_t) override {}
  } refusing;
  auto journal = Journal::open(sys::real_files(), folder_ / "other.jsonl", Json{{"op", "op"}});
  Hooks hooks;
  hooks.now = [] { return 0.0; };
  Tuner tuner(space_, *Search::make(space_, {}), *journal, refusing, task_, hooks);
  auto tuned = tuner.run();
  ASSERT_FALSE(tuned);
  EXPECT_EQ(tuned.error().what, "op takes 2 arguments");
  EXPECT_TRUE(journal->outcomes().empty());
}

const std::vector<Json> kOdd = {
    Json(),
    Json(7),
    Json("text"),
    Json::array({1}),
    Json{{"us", "fast"}},
    Json{{"us", nullptr}, {"low_us", Json::object()}},
    Json{{"error", "not an object"}},
    Json{{"error", {{"why", 3}, {"fault", 4}}}, {"fate", 5}, {"lost", "yes"}},
    Json{{"library", 9}}};

TEST_F(TunerTest, AnOddAnswerEndsItsTrialAlone) {
  for (const Json& odd : kOdd)
    for (const char* of : {"build A=2 B=1", "measure A=2 B=1"}) {
      std::filesystem::remove(folder_ / "journal.jsonl");
      workers_.garble = [&](const std::string& what, Json answer) {
        return what == of ? odd : answer;
      };
      auto tuned = run();
      ASSERT_TRUE(tuned) << of << " " << odd << format(tuned.error());
      EXPECT_EQ(outcomes_.size(), 8u);
      const auto fate = fates().at("A=2 B=1");
      // {"library": 9} and the like say nothing of a time: checked is what such an answer means.
      EXPECT_NE(fate, Fate::Timed) << of << " " << odd;
      EXPECT_EQ(best_of(outcomes_)->defines, (std::vector<std::string>{"A=4", "B=2"}));
    }
}

TEST_F(TunerTest, AnOddAnswerOfTheRaceIsAFinding) {
  std::vector<Json> odd = kOdd;
  odd.push_back(
      {{"us", {1, 2}}, {"low_us", {1, 2}}, {"high_us", {1, 2}}, {"ratio", {{1, 1, 1}, {1, 1, 1}}}});
  odd.push_back(
      {{"us", {1, 2, 3}}, {"low_us", {1, 2, 3}}, {"high_us", {1, 2, 3}}, {"ratio", {1, 2, 3}}});
  odd.push_back({{"us", {1, 2, 3}},
                 {"low_us", {1, 2, 3}},
                 {"high_us", {1, 2, 3}},
                 {"ratio", {{1}, {1}, {1}}}});
  for (const Json& answer : odd) {
    workers_.garble = [&](const std::string& what, Json given) {
      return what == "race" ? answer : given;
    };
    auto tuned = run();
    ASSERT_TRUE(tuned) << answer;
    EXPECT_THAT(tuned->findings,
                ElementsAre(testing::HasSubstr("the fastest were not timed in alternation")))
        << answer;
    EXPECT_THAT(tuned->finalists[0].defines, ElementsAre("A=4", "B=2")) << "by their single times";
  }
}

}  // namespace
}  // namespace kiln::tune
