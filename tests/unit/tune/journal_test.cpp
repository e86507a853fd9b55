// SPDX-License-Identifier: Apache-2.0
// Does a journal survive a kill, and is one of another subject refused?
#include "tune/journal.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace kiln::tune {
namespace {

class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = sys::fs::temp_directory_path() / ("kiln-journal-" + std::to_string(::getpid())) /
            "tune.jsonl";
    sys::fs::remove_all(path_.parent_path());
  }
  void TearDown() override { sys::fs::remove_all(path_.parent_path()); }

  Result<Journal> open(const Json& subject = {{"gpu", "H200"}}) {
    return Journal::open(sys::real_files(), path_, subject);
  }
  static Outcome timed(const char* define, double us) {
    Outcome outcome;
    outcome.defines = {define};
    outcome.time_us = us;
    outcome.facts = {{"registers", 40}};
    return outcome;
  }

  sys::fs::path path_;
};

TEST_F(JournalTest, WhatIsAddedIsThereAgain) {
  {
    Result<Journal> journal = open();
    ASSERT_TRUE(journal);
    ASSERT_TRUE(journal->add(timed("M=64", 12.5)));
    Outcome wrong;
    wrong.defines = {"M=128"};
    wrong.fate = Fate::Wrong;
    wrong.reason = "3 of 8 elements differ";
    ASSERT_TRUE(journal->add(wrong));
  }
  const Result<Journal> again = open();
  ASSERT_TRUE(again);
  ASSERT_EQ(again->outcomes().size(), 2u);
  EXPECT_EQ(to_json(again->outcomes()[0]), to_json(timed("M=64", 12.5)));
  EXPECT_EQ(again->outcomes()[1].fate, Fate::Wrong);
  EXPECT_EQ(again->outcomes()[1].reason, "3 of 8 elements differ");
}

TEST_F(JournalTest, RunsOverOtherValuesShareTheFileAndAreNotCounted) {
  {
    Result<Journal> journal = open();
    for (const char* define : {"M=64", "M=128", "M=256", "N=64"})
      ASSERT_TRUE(journal->add(timed(define, 1)));
  }
  const Result<Space> space = Space::from_flags({"M=64,128,512"}, {"M != 128"});
  ASSERT_TRUE(space);
  Result<Journal> again = open();
  again->keep_those_of(*space);
  ASSERT_EQ(again->outcomes().size(), 1u);
  EXPECT_EQ(again->outcomes()[0].defines.front(), "M=64");
  ASSERT_TRUE(again->add(timed("M=512", 2)));
  EXPECT_EQ(again->outcomes().size(), 2u);
  EXPECT_EQ(open()->outcomes().size(), 5u);
}

TEST_F(JournalTest, ALineThatWasCutOffIsDropped) {
  { ASSERT_TRUE(open()->add(timed("M=64", 1))); }
  { std::ofstream(path_, std::ios::app) << R"({"defines": ["M=1)"; }
  {
    Result<Journal> journal = open();
    ASSERT_TRUE(journal) << journal.error().why;
    EXPECT_EQ(journal->outcomes().size(), 1u);
    ASSERT_TRUE(journal->add(timed("M=32", 2)));
  }
  EXPECT_EQ(open()->outcomes().size(), 2u);
}

TEST_F(JournalTest, AnotherSubjectIsRefused) {
  { ASSERT_TRUE(open()); }
  EXPECT_EQ(open({{"gpu", "A100"}}).error().why,
            "it belongs to another run: gpu was \"H200\", now \"A100\"");
}

TEST_F(JournalTest, WhatIsNoJournal) {
  const auto why = [&](std::string_view content) {
    EXPECT_TRUE(sys::real_files().write(path_, content));
    const Result<Journal> journal = open();
    return journal ? std::string("accepted") : journal.error().why;
  };
  const std::string first = R"({"kiln_tune":1,"subject":{"gpu":"H200"}})"
                            "\n";
  EXPECT_EQ(why(""), "it is not a journal of kiln tune");
  EXPECT_EQ(why("{}\n"), "it is not a journal of kiln tune");
  EXPECT_EQ(why("{\"kiln_tune\":2}\n"), "it was written by another version of kiln");
  EXPECT_EQ(why(first + "{}\n"), "it has no defines: {}");
  EXPECT_EQ(why(first + "{\"defines\":[],\"fate\":\"lost\"}\n"),
            "its fate is unknown: {\"defines\":[],\"fate\":\"lost\"}");
  EXPECT_EQ(why(first + "{\"defines\":[],\"fate\":\"timed\"}\n"),
            "it was timed but has no time: {\"defines\":[],\"fate\":\"timed\"}");
  EXPECT_NE(why(first + "not json\n"), "accepted");
  EXPECT_EQ(why(first), "accepted");
}

}  // namespace
}  // namespace kiln::tune
