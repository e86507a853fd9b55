// SPDX-License-Identifier: Apache-2.0
// Are benchmarks, cold starts and profiles shown whole; also with no rows, many, and hostile names?
#include "report/bench.h"

#include <gmock/gmock.h>

#include <limits>

#include "count_of.h"
#include "report/cold.h"
#include "report/profile.h"

namespace kiln::report {
namespace {

using results::BenchResult;
using results::Contender;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::string kHostile = "<script>alert(1)</script>\"'&";
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Contender contender(std::string name, double us) {
  Contender out;
  out.name = std::move(name);
  out.cold.median_ns = us * 1e3;
  out.cold.low_ns = us * 990;
  out.cold.high_ns = us * 1010;
  out.cold.count = 1234;
  out.cold.converged = true;
  out.cold.samples_ns = {us * 990, us * 1000, us * 1010};
  out.hot = results::Summary{.median_ns = us * 800};
  out.first_ns = 5e6;
  out.bytes = 12e6;
  out.gb_per_s = 12e6 / out.cold.median_ns;
  return out;
}

BenchResult result(std::vector<Contender> contenders) {
  BenchResult out;
  out.time = "GPU time";
  out.title = "my_add(f32 8)";
  out.date = "2026-01-01";
  out.device.name = "NVIDIA H200";
  out.contenders = std::move(contenders);
  return out;
}

TEST(BenchPage, NothingOneAndMany) {
  EXPECT_THAT(bench_page({}, {}), AllOf(HasSubstr("No result."), Not(HasSubstr("<svg"))));
  const std::string one = bench_page({result({contender("my_add", 5)})}, {});
  EXPECT_THAT(one, AllOf(HasSubstr("5.00 us"), HasSubstr("4.95 us to 5.05 us"), HasSubstr("1,234"),
                         Not(HasSubstr("History"))));
  std::vector<BenchResult> many;
  for (int i = 1; i <= 60; ++i) many.push_back(result({contender("a", i), contender("b", i)}));
  const std::string page = bench_page(many, many);
  EXPECT_EQ(count_of(page, "<details class=\"card\""), 60u);
  EXPECT_THAT(page, HasSubstr("History"));
}

TEST(BenchPage, AnAxisIsAChartWithATable) {
  std::vector<BenchResult> sweep;
  for (const char* dtype : {"f16", "f32"})
    for (int bits : {10, 14, 18}) {
      sweep.push_back(result({contender("my_add", bits), contender("torch.add", 2 * bits)}));
      sweep.back().axes = Json{{"n", "2^" + std::to_string(bits)}, {"dtype", dtype}};
      sweep.back().comparisons = {{"my_add", "torch.add", "FASTER", {0.5, 0.5, 0.5}, 0, {}}};
    }
  const std::string page = bench_page(sweep, {});
  EXPECT_THAT(page, HasSubstr("<h2>my_add over dtype, n</h2>"));
  // Both dtypes of both contenders, each with three sizes.
  EXPECT_THAT(page, HasSubstr("my_add, dtype=f16</span>"));
  EXPECT_THAT(page, HasSubstr("torch.add, dtype=f32</span>"));
  EXPECT_EQ(count_of(page, "<circle class=\"mark"), 12u);
  EXPECT_THAT(page, HasSubstr("<span data-value=\"262144\">2^18</span>"));
  EXPECT_THAT(page, HasSubstr("<a href=\"#result5\">"));
  sweep.resize(1);
  EXPECT_THAT(bench_page(sweep, {}), Not(HasSubstr(" over ")));
}

TEST(BenchPage, AnAxisOfWordsHasATableAlone) {
  std::vector<BenchResult> sweep;
  for (const char* dtype : {"f16", "f32"}) {
    sweep.push_back(result({contender("my_add", 5)}));
    sweep.back().axes = Json{{"dtype", dtype}};
  }
  const std::string page = bench_page(sweep, {});
  EXPECT_THAT(page, HasSubstr("<h2>my_add over dtype</h2>"));
  EXPECT_EQ(count_of(page, "<circle class=\"mark"), 0u);
}

TEST(BenchPage, NumbersAtTheEdges) {
  for (double us : {0.0, -1.0, 1e-9, 1e12, kNan}) {
    BenchResult edge = result({contender("a", us)});
    edge.roof.copy_gb_per_s = 4000;
    const std::string page = bench_page({edge}, {edge, edge});
    EXPECT_THAT(page, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("\"inf")))) << us;
  }
}

TEST(BenchPage, HostileNamesAreText) {
  BenchResult bad = result({contender(kHostile, 5)});
  bad.title = bad.correct = bad.date = bad.kiln = bad.source_hash = kHostile;
  bad.device.name = bad.device.driver = bad.device.cuda = kHostile;
  bad.machine = Json{{"host", kHostile}, {"cpu", kHostile}};
  bad.versions = Json{{"torch", kHostile}};
  bad.comparisons = {{kHostile, kHostile, kHostile, {}, 0.01, {}}};
  bad.findings = {{kHostile, kHostile, kHostile, kHostile}};
  bad.roof.copy_gb_per_s = 1;
  const std::string page = bench_page({bad}, {bad, bad});
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script")), HasSubstr("&lt;script&gt;")));
}

TEST(BenchText, TheEngineHasNoRates) {
  BenchResult engine = result({contender("my_add", 5)});
  engine.time = "engine time";
  EXPECT_THAT(bench_text(engine), AllOf(HasSubstr("CPU engine time (not GPU time)"),
                                        Not(HasSubstr("GB/s")), Not(HasSubstr("hot L2"))));
  EXPECT_THAT(bench_text(result({contender("my_add", 5)})),
              AllOf(HasSubstr("isolated, hot L2"), HasSubstr("2400 GB/s")));
}

TEST(BenchText, LongLabelsKeepTheColumns) {
  const std::string text =
      bench_text(result({contender("add", 5), contender("torch.add(x, y, alpha=alpha)", 6)}));
  EXPECT_THAT(text, HasSubstr("  torch.add(x, y, alpha...   6.00 us  +-"));
  EXPECT_THAT(text, HasSubstr("            add torch.add(x, y, alpha...\n"));
  EXPECT_THAT(text, HasSubstr("        5.00 us                  6.00 us\n"));
}

TEST(BenchPage, RunsAreCountedInWholeNumbers) {
  const BenchResult one = result({contender("a", 5)});
  EXPECT_THAT(bench_page({one}, {one, one}), Not(HasSubstr(">1.2</text>")));
}

TEST(BenchTables, OneRowAContender) {
  const BenchResult two = result({contender("a", 5), contender("b, c", 6)});
  EXPECT_EQ(count_of(bench_csv({two, two}), "\n"), 5u);
  EXPECT_THAT(bench_csv({two}), HasSubstr("\"b, c\""));
  EXPECT_EQ(count_of(bench_markdown({two}), "| my_add(f32 8) |"), 2u);
  EXPECT_EQ(count_of(bench_csv({}), "\n"), 1u);
  EXPECT_THAT(bench_markdown({}), Not(HasSubstr("driver")));
}

TEST(ColdPage, StagesThatDidNotHappenSayWhy) {
  results::ColdResult cold;
  EXPECT_THAT(cold_page(cold), Not(HasSubstr("What helps")));
  cold.title = kHostile;
  cold.advice = {kHostile};
  results::ColdStage stage;
  stage.name = "cuInit";
  stage.median_ns = 30e6;
  results::ColdStage missing;
  missing.name = missing.why.emplace(kHostile);
  cold.kinds = {{kHostile, 3, {stage, missing}, 30e6}};
  const std::string page = cold_page(cold);
  EXPECT_THAT(page, AllOf(HasSubstr("30.0 ms"), Not(HasSubstr("<script")), HasSubstr("<rect")));
  EXPECT_THAT(cold_text(cold), AllOf(HasSubstr("cuInit"), HasSubstr("####")));
}

results::Profile profile(const std::string& name) {
  results::ProfileKernel kernel;
  kernel.name = name;
  kernel.us = 5;
  kernel.grid = {1024, 1, 1};
  kernel.block = {256, 1, 1};
  kernel.shared_bytes = 49152;
  results::ProfileNode node;
  node.name = node.shapes = name;
  node.cpu_us = node.cpu_self_us = 10;
  node.kernels = {kernel};
  results::ProfileNode root = node;
  root.kernels.clear();
  root.children = {node, node, node};
  results::Profile out;
  out.title = out.verdict = name;
  out.time = "GPU time";
  out.gpu_idle = 0.5;
  out.wall_us = 50;
  out.tree = {root};
  out.timeline = {{"op", name, name, 0, 10}, {"kernel", name, "stream 7", 2, 5}};
  return out;
}

TEST(ProfilePage, NothingAndHostileNames) {
  const std::string empty = profile_page({});
  EXPECT_THAT(empty, AllOf(Not(HasSubstr("<svg")), HasSubstr("<h2>Ops</h2>")));
  const std::string page = profile_page(profile(kHostile));
  EXPECT_THAT(page, AllOf(Not(HasSubstr("<script>alert")), HasSubstr("flame graph")));
  EXPECT_EQ(count_of(page, "<script"), 2u);  // what all pages have, and its own
}

TEST(ProfileText, EqualSiblingsAreOneLine) {
  const std::string text = profile_text(profile("aten::mul"));
  EXPECT_THAT(text, AllOf(HasSubstr("aten::mul (3 calls)"), HasSubstr("1024 blocks of 256"),
                          HasSubstr("48.0 KiB shared"), HasSubstr("idle 50 %")));
  EXPECT_THAT(profile_text({}), HasSubstr("until it returned"));
}

TEST(ProfileText, TimesOfTheEngineAreInItsColumn) {
  results::Profile engine = profile("aten::mul");
  engine.time = "engine time";
  const std::string text = profile_text(engine);
  EXPECT_THAT(text, AllOf(HasSubstr("    engine  shapes"), Not(HasSubstr("GPU"))));
  EXPECT_THAT(profile_page(engine), Not(HasSubstr("<th></th>")));
}

}  // namespace
}  // namespace kiln::report
