// SPDX-License-Identifier: Apache-2.0
// Is what people read complete: results, naive times, cold starts, profiles, pages?
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "measure/cold.h"
#include "measure/device/fake_device.h"
#include "measure/render.h"
#include "measure/result.h"
#include "report/bench.h"
#include "report/cold.h"
#include "report/profile.h"

namespace kiln::measure {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

results::BenchResult measured(double bytes = 192 << 20) {
  FakeDevice device({});
  const auto contender = [&](std::string name) {
    Contender one{.name = std::move(name), .call = [&device, bytes](int rotation) -> Status {
                    device.launch({.bytes = bytes, .buffer = rotation});
                    return {};
                  }};
    one.bytes = bytes;
    one.flops = bytes / 12;
    return one;
  };
  RunOptions options;
  options.patience = {.min_warm_up_s = 0.005, .min_time_s = 0.02, .max_time_s = 0.1};
  options.side_s = 0.002;
  const auto report = run(device, {contender("my_add"), contender("torch.add")}, options);
  EXPECT_TRUE(report);
  results::BenchResult result = report ? result_of(*report) : results::BenchResult();
  result.title = "my_add(<a>, b)";
  result.date = "2026-01-01T00:00:00Z";
  return result;
}

TEST(Shown, TheTableHasEveryTime) {
  const std::string text = report::bench_text(measured());
  for (const char* word :
       {"my_add", "torch.add", "isolated, cold L2", "isolated, hot L2", "in a row",
        "in a CUDA graph", "its kernels (CUPTI)", "launch (host)", "first call (host)", "SAME",
        "% of a copy", "TFLOP/s", "two events with nothing in between", "1980 MHz"})
    EXPECT_THAT(text, HasSubstr(word));
}

TEST(Shown, NaiveTimesAndTheTrueOne) {
  results::BenchResult result = measured();
  result.start = Json{{"import_s", 5.1}, {"build_s", 1.2}, {"load_s", 0.01}};
  const std::vector<report::NaiveTime> rows = report::naive_times(result);
  EXPECT_THAT(rows.front().wrong,
              AllOf(HasSubstr("import torch 5.10 s"), HasSubstr("build 1.20 s")));
  EXPECT_GT(rows.front().ns, 6e9);
  const double real = rows.back().ns;
  EXPECT_NEAR(real, result.contenders[0].cold.median_ns, 1);
  const auto row = [&](std::string_view how) {
    for (const report::NaiveTime& one : rows)
      if (one.how.find(how) != std::string::npos) return one;
    return report::NaiveTime{};
  };
  EXPECT_LT(row("no synchronisation").ns, real / 5);
  EXPECT_THAT(row("no synchronisation").wrong, HasSubstr("too short"));
  EXPECT_GT(row("a call and a synchronisation").ns, real);
  EXPECT_THAT(report::naive_times_text(result),
              HasSubstr("true: events, stream held, cold L2, median"));
}

TEST(Shown, Csv) {
  results::BenchResult result = measured();
  result.title = "a, \"b\"";
  const std::string csv = report::bench_csv({result});
  EXPECT_THAT(csv, HasSubstr("\"a, \"\"b\"\"\",my_add,GPU time"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3);
}

TEST(Shown, ThePageIsWholeAndEscaped) {
  const Json result = to_json(measured());
  const auto page = render("html", {{"results", {result}}, {"history", {result, result}}});
  ASSERT_TRUE(page) << page.error().why;
  EXPECT_THAT(*page, AllOf(HasSubstr("<!doctype html>"), HasSubstr("my_add(&lt;a&gt;, b)"),
                           HasSubstr("Roofline"), HasSubstr("History"), HasSubstr("</html>"),
                           Not(HasSubstr("http://")), Not(HasSubstr("nan"))));
}

TEST(Shown, UnknownFormsAndBrokenInput) {
  EXPECT_FALSE(render("pdf", to_json(measured())));
  for (const char* kind : {"text", "html", "csv", "profile-html", "cold-html"}) {
    const auto shown = render(kind, Json::object());
    ASSERT_FALSE(shown) << kind;
    EXPECT_THAT(shown.error().why, HasSubstr("it has no key '"));
  }
  EXPECT_FALSE(run_options({{"no such", 1}}));
  EXPECT_FALSE(run_options({{"precision_percent", "much"}}));
  EXPECT_EQ(run_options({{"precision_percent", 1}, {"side", false}})->patience.precision, 0.01);
}

ColdRun cold(std::string kind, double first_ms) {
  return {std::move(kind),
          {{"driver library", 1e6, ""},
           {"cuInit", 30e6, ""},
           {"context", 200e6, ""},
           {"cuDNN handle", -1, "not there"},
           {"first allocation", 2e6, ""},
           {"second allocation", 0.1e6, ""},
           {"first call", first_ms * 1e6, ""},
           {"wait for it", 0.1e6, ""},
           {"second call", 0.05e6, ""},
           {"steady call", 0.02e6, ""}}};
}

TEST(Cold, StagesTotalsAndAdvice) {
  ColdRun python = cold("python", 20);
  python.stages.insert(python.stages.begin(), {"import torch", 5e9, ""});
  const results::ColdResult result =
      cold_result("my_add", {cold("native", 3), cold("native", 5), cold("native", 4),
                             cold("native, no SASS for this GPU", 60), python});
  EXPECT_NEAR(result.kinds[0].total_ns, 237.1e6, 1e3);
  const auto advice = cold_advice(result);
  ASSERT_GE(advice.size(), 4u);
  EXPECT_THAT(advice[0], HasSubstr("import torch takes 5.00 s"));
  EXPECT_THAT(advice[1], HasSubstr("context take 230 ms"));
  EXPECT_THAT(
      advice[2],
      HasSubstr("without SASS for this GPU: the first call takes 60.0 ms instead of 4.00 ms"));
  const std::string text = report::cold_text(result);
  EXPECT_THAT(text, AllOf(HasSubstr("native (3 processes), 237 ms until the first result"),
                          HasSubstr("not there"), HasSubstr("###")));
  EXPECT_EQ(cold_run(to_json(python))->stages.size(), python.stages.size());
  EXPECT_FALSE(cold_run(Json::object()));
  EXPECT_THAT(*render("cold-html", to_json(result)),
              AllOf(HasSubstr("<svg"), HasSubstr("What helps")));
}

TEST(Profile, TreeAndPage) {
  const Json kernel = {{"name", "add_kernel<float>"},
                       {"us", 50.0},
                       {"grid", {1024, 1, 1}},
                       {"block", {256, 1, 1}},
                       {"registers", 16},
                       {"occupancy", 92},
                       {"stream", 7},
                       {"shared_bytes", 0},
                       {"bytes", 192000000}};
  const Json leaf = {{"name", "aten::mul"}, {"shapes", "16x16"},   {"begin_us", 1.0},
                     {"cpu_us", 10.0},      {"cpu_self_us", 10.0}, {"gpu_us", 50.0},
                     {"gpu_self_us", 50.0}, {"kernels", {kernel}}, {"children", Json::array()}};
  Json root = leaf;
  root["name"] = "aten::outer";
  root["kernels"] = Json::array();
  root["children"] = {leaf, leaf};
  const Json profile = {{"title", "sqrt"},
                        {"time", "GPU time"},
                        {"wall_us", 200.0},
                        {"gpu_us", 100.0},
                        {"gpu_idle", 0.5},
                        {"verdict", "launch bound"},
                        {"kernel_count", 2},
                        {"tree", {root}},
                        {"timeline",
                         {{{"kind", "op"},
                           {"name", "aten::outer"},
                           {"begin_us", 1.0},
                           {"us", 20.0},
                           {"lane", "CPU 0"}},
                          {{"kind", "kernel"},
                           {"name", "add"},
                           {"begin_us", 9.0},
                           {"us", 50.0},
                           {"lane", "stream 7"}}}}};
  const auto text = render("profile-text", profile);
  ASSERT_TRUE(text) << text.error().why;
  EXPECT_THAT(*text, AllOf(HasSubstr("aten::mul (2 calls)"), HasSubstr("* add_kernel<float>"),
                           HasSubstr("1024 blocks of 256"), HasSubstr("16 registers"),
                           HasSubstr("occupancy 92 %"), HasSubstr("3840 GB/s"),
                           HasSubstr("idle 50 %"), HasSubstr("launch bound")));
  EXPECT_THAT(*render("profile-html", profile),
              AllOf(HasSubstr("flame graph"), HasSubstr("Timeline"), HasSubstr("aten::mul")));
}

}  // namespace
}  // namespace kiln::measure
