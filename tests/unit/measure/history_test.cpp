// SPDX-License-Identifier: Apache-2.0
// Is a regression found, and are results that cannot be compared kept apart?
#include "measure/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "sys/fake_files.h"

namespace kiln::measure {
namespace {

using testing::HasSubstr;

results::BenchResult result(double us, std::string device = "NVIDIA H200",
                            std::string host = "here") {
  results::Contender contender;
  contender.name = "my_add";
  contender.cold.median_ns = 1e3 * us;
  for (int i = 0; i < 50; ++i)
    contender.cold.samples_ns.push_back(1e3 * us * (1 + 0.002 * std::sin(i)));
  results::BenchResult out;
  out.time = "GPU time";
  out.title = "my_add(f32 4)";
  out.device.name = std::move(device);
  out.device.driver = "580.1";
  out.machine = Json{{"host", std::move(host)}};
  out.versions = Json{{"torch", "2.11.0"}};
  out.contenders = {contender};
  return out;
}

TEST(History, ARegressionIsFound) {
  const auto changes = compare_with({result(54)}, {result(50)});
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].verdict, Verdict::Slower);
  EXPECT_NEAR(changes[0].ratio.value, 1.08, 0.005);
  EXPECT_TRUE(has_regression(changes));
  EXPECT_THAT(changes_text(changes), HasSubstr("SLOWER"));
}

TEST(History, NoiseBetweenRunsIsNoRegression) {
  EXPECT_FALSE(has_regression(compare_with({result(50.9)}, {result(50)})));
  EXPECT_EQ(compare_with({result(50.9)}, {result(50)})[0].verdict, Verdict::Same);
  EXPECT_EQ(compare_with({result(40)}, {result(50)})[0].verdict, Verdict::Faster);
}

TEST(History, OtherBenchmarksAreNotCompared) {
  results::BenchResult other = result(50);
  other.title = "my_add(f32 8)";
  EXPECT_TRUE(compare_with({result(50)}, {other}).empty());
  other = result(50);
  other.defines = std::vector<std::string>{"BLOCK=128"};
  EXPECT_TRUE(compare_with({result(50)}, {other}).empty());
}

TEST(History, AnotherMachineIsTold) {
  EXPECT_EQ(incomparable(result(1), result(1)), "");
  EXPECT_EQ(incomparable(result(1), result(1, "NVIDIA L4")),
            "another device (now NVIDIA H200, then NVIDIA L4)");
  EXPECT_EQ(incomparable(result(1), result(1, "NVIDIA H200", "there")),
            "another machine (now here, then there)");
  results::BenchResult engine = result(1);
  engine.time = "engine time";
  EXPECT_EQ(incomparable(engine, result(1)),
            "another kind of device (now engine time, then GPU time)");
}

TEST(History, OtherVersionsAreNoted) {
  results::BenchResult then = result(1);
  then.device.driver = "570.0";
  (*then.versions)["torch"] = "2.10.0";
  EXPECT_EQ(differences(result(1), then),
            "driver now 580.1, then 570.0; torch now 2.11.0, then 2.10.0");
  EXPECT_EQ(differences(result(1), result(1)), "");
}

TEST(History, LinesThatAreNoResultAreSkipped) {
  const std::string text = dump(to_json(result(1))) +
                           "\n{\"format\": 1, \"contend\nnonsense\n[]\n" +
                           dump(to_json(result(2))) + "\n";
  int skipped = 0;
  EXPECT_EQ(read_results(text, &skipped).size(), 2u);
  EXPECT_EQ(skipped, 3);
  EXPECT_TRUE(read_results("").empty());
}

TEST(History, AppendKeepsWhatIsThere) {
  sys::FakeFiles files;
  ASSERT_TRUE(append_result(files, "/h/history.jsonl", result(1)));
  ASSERT_TRUE(append_result(files, "/h/history.jsonl", result(2)));
  EXPECT_EQ(read_results(*files.read("/h/history.jsonl")).size(), 2u);
}

}  // namespace
}  // namespace kiln::measure
