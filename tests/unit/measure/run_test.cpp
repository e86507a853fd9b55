// SPDX-License-Identifier: Apache-2.0
// Does a whole benchmark on a simulated GPU tell the true time, and does each trap spring?
#include "measure/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "measure/device/fake_device.h"
#include "measure/trust.h"

namespace kiln::measure {
namespace {

using testing::HasSubstr;

constexpr double kMiB = 1 << 20;

RunOptions quick() {
  RunOptions options;
  options.patience.min_warm_up_s = 0.005;
  options.patience.min_time_s = 0.01;
  options.patience.max_time_s = 0.3;
  options.side_s = 0.002;
  return options;
}

Contender kernel_of(FakeDevice& device, std::string name, double bytes, double factor = 1) {
  Contender contender{
      .name = std::move(name), .call = [&device, bytes, factor](int rotation) -> Status {
        device.launch({.fixed_ns = 1500 * factor, .bytes = bytes * factor, .buffer = rotation});
        return {};
      }};
  contender.bytes = bytes;
  return contender;
}

const Finding* find(const Report& report, std::string_view trap) {
  for (const Finding& finding : report.findings)
    if (finding.trap == trap) return &finding;
  return nullptr;
}

Report run_one(FakeDevice& device, const Contender& contender) {
  auto report = run(device, {contender}, quick());
  EXPECT_TRUE(report) << (report ? "" : format(report.error()));
  return report ? *report : Report{};
}

TEST(Run, TellsColdHotBatchedGraphAndLaunchApart) {
  FakeDevice device({});
  const double bytes = 24 * kMiB;
  const Report report = run_one(device, kernel_of(device, "add", bytes));
  const Timing& t = report.timings[0];
  const double cold = 900 + 500 + 1500 + bytes / 4000, hot = 900 + 500 + 1500 + bytes / 9000;
  EXPECT_NEAR(median(t.cold.ns), cold, 0.01 * cold);
  EXPECT_NEAR(median(t.hot), hot, 0.01 * hot);
  EXPECT_NEAR(median(t.launch), 4000, 1);
  EXPECT_LT(median(t.graph), median(t.batched));
  EXPECT_NEAR(median(t.kernel), 1500 + bytes / 4000, 0.01 * cold);
  EXPECT_EQ(t.cold.outcome, Progress::Converged);
  EXPECT_TRUE(find(report, "L2-resident inputs"));
  EXPECT_FALSE(is_refused(report));
}

TEST(Run, AColdTimeDoesNotHoldTheLaunch) {
  // The host takes 100 us for a call of 2 us: events around an unheld call would show the host.
  FakeDevice device({.launch_host_ns = 100e3});
  const Report report = run_one(device, kernel_of(device, "tiny", 1024));
  EXPECT_LT(median(report.timings[0].cold.ns), 4000);
  EXPECT_TRUE(find(report, "launch bound"));
}

TEST(Run, WorkOnAnotherStreamIsRefused) {
  FakeDevice device({});
  Contender sly{.name = "sly", .call = [&](int) -> Status {
                  device.launch({.bytes = 400 * kMiB, .other_stream = true});
                  return {};
                }};
  const Report report = run_one(device, sly);
  const Finding* finding = find(report, "other stream");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->weight, Weight::Refusal);
  EXPECT_TRUE(is_refused(report));
}

TEST(Run, ImpossibleSpeedIsRefusedWhenBytesAreDeclared) {
  FakeDevice device({});
  Contender lazy = kernel_of(device, "lazy", 4096);
  lazy.bytes = 800 * kMiB;
  const Report assumed = run_one(device, lazy);
  ASSERT_TRUE(find(assumed, "impossible speed"));
  EXPECT_FALSE(is_refused(assumed));
  lazy.bytes_declared = true;
  EXPECT_TRUE(is_refused(run_one(device, lazy)));
}

TEST(Run, ImpossibleFlops) {
  FakeDevice device({});
  Contender lazy = kernel_of(device, "lazy", 4096);
  lazy.flops = 1e12;
  EXPECT_TRUE(is_refused(run_one(device, lazy)));
}

TEST(Run, ACallThatSynchronisesIsTold) {
  FakeDevice device({});
  Contender waits{.name = "waits", .call = [&](int) -> Status {
                    device.launch({.bytes = kMiB});
                    device.synchronize_inside();
                    return {};
                  }};
  const Report report = run_one(device, waits);
  const Finding* finding = find(report, "synchronises inside");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("waits for the device"));
}

TEST(Run, LinesThatACallPinsInL2AreColdAllTheSame) {
  FakeDevice device({});
  const double bytes = 10 * kMiB;
  Contender pins{.name = "pins", .call = [&](int rotation) -> Status {
                   device.launch({.bytes = bytes, .buffer = rotation, .pins = true});
                   return {};
                 }};
  pins.bytes = bytes;
  const Report report = run_one(device, pins);
  const Timing& t = report.timings[0];
  const double cold = 900 + 500 + 1500 + bytes / 4000;
  EXPECT_NEAR(median(t.cold.ns), cold, 0.01 * cold);
  EXPECT_NEAR(median(t.kernel), 1500 + bytes / 4000, 0.01 * cold);
  const Finding* finding = find(report, "pinned in L2");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("15.0 MiB of L2"));
  EXPECT_FALSE(is_refused(report));
}

TEST(Run, ACallThatRecognizesItsContentsIsRefused) {
  for (const bool recognizes : {true, false}) {
    FakeDevice device({});
    int contents = 0, known = -1;
    Contender sly{.name = "sly",
                  .call = [&](int) -> Status {
                    const bool lazy = recognizes && contents == known;
                    device.launch({.bytes = lazy ? 4096 : 48 * kMiB});
                    known = contents;
                    return {};
                  },
                  .refresh = [&](bool fresh) -> Status {
                    device.launch({.bytes = 48 * kMiB, .buffer = 7});
                    contents += fresh;
                    return device.synchronize(1);
                  }};
    const Report report = run_one(device, sly);
    const Finding* finding = find(report, "replay by contents");
    ASSERT_EQ(finding != nullptr, recognizes);
    EXPECT_EQ(is_refused(report), recognizes);
    EXPECT_THAT(finding ? finding->text : "in 12 of 12 pairs", HasSubstr("in 12 of 12 pairs"));
  }
}

TEST(Run, FirstCallIsToldAndNotCounted) {
  FakeDevice device({});
  int calls = 0;
  Contender lazy{.name = "lazy", .call = [&](int) -> Status {
                   if (calls++ == 0) device.host_work(30e6);
                   device.launch({.bytes = 100 * kMiB});
                   return {};
                 }};
  const Report report = run_one(device, lazy);
  ASSERT_TRUE(find(report, "slow first call"));
  EXPECT_LT(median(report.timings[0].cold.ns), 1e5);
}

TEST(Run, ThrottledSamplesAreTaggedAndKept) {
  FakeDevice device({.throttle_after_ns = 60e6});
  RunOptions options = quick();
  options.patience.min_time_s = 0.1;
  const auto result = run(device, {kernel_of(device, "add", 48 * kMiB)}, options);
  ASSERT_TRUE(result);
  const Report& report = *result;
  const Finding* finding = find(report, "power throttle");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("power cap"));
  const Timing& t = report.timings[0];
  EXPECT_EQ(t.cold.ns.size(), t.cold.throttled.size());
  EXPECT_TRUE(find(report, "clock changed"));
}

TEST(Run, ACompetingProcessIsFoundWithoutNvml) {
  FakeDevice device({.competitor_slice_ns = 2e6, .competitor_every_ns = 4e6});
  EXPECT_TRUE(find(run_one(device, kernel_of(device, "add", 48 * kMiB)), "competing process"));
}

TEST(Run, ACompetingProcessIsFoundByNvml) {
  FakeDevice device({.competitor_listed = true});
  const Report report = run_one(device, kernel_of(device, "add", 48 * kMiB));
  const Finding* finding = find(report, "competing process");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("4711"));
}

TEST(Run, AloneNobodyIsAccused) {
  FakeDevice device({});
  const Report report = run_one(device, kernel_of(device, "add", 192 * kMiB));
  EXPECT_THAT(report.findings, testing::IsEmpty()) << report.findings.front().text;
}

TEST(Run, OutliersAreLabelledAndKept) {
  FakeDevice device({.outlier_share = 0.1});
  const Report report = run_one(device, kernel_of(device, "add", 192 * kMiB));
  EXPECT_TRUE(find(report, "outliers"));
  const std::vector<double> ordered = sorted(report.timings[0].cold.ns);
  EXPECT_GT(ordered.back(), 2.5 * quantile(ordered, 0.5));
}

TEST(Run, NoiseThatNeverSettlesIsNotConverged) {
  FakeDevice device({.noise = 0.3});
  RunOptions options = quick();
  options.patience.max_time_s = 0.02;
  const auto report = run(device, {kernel_of(device, "add", 192 * kMiB)}, options);
  ASSERT_TRUE(report);
  EXPECT_TRUE(find(*report, "not converged"));
}

TEST(Run, AllocationWithoutEndIsRefused) {
  FakeDevice device({});
  Contender leaky{.name = "leaky", .call = [&](int) -> Status {
                    device.launch({.bytes = kMiB});
                    device.allocate(1 << 20);
                    return {};
                  }};
  const auto report = run(device, {leaky}, quick());
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().why,
              HasSubstr("free memory fell at each check, by 48.0 MiB in 48 calls"));
}

TEST(Run, AHangEndsAtItsLimit) {
  FakeDevice device({});
  Contender endless{.name = "endless", .call = [&](int) -> Status {
                      device.hang();
                      return {};
                    }};
  EXPECT_FALSE(run(device, {endless}, quick()));
}

TEST(Run, AThrowingCallIsItsError) {
  FakeDevice device({});
  int calls = 0;
  Contender broken{.name = "broken", .call = [&](int) -> Status {
                     device.launch({});
                     if (++calls == 30) return Error{Fault::Work, "broken failed", "a reason", ""};
                     return {};
                   }};
  const auto report = run(device, {broken}, quick());
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().why, "a reason");
}

TEST(Run, TimedCallsAreChecked) {
  FakeDevice device({});
  Contender right = kernel_of(device, "right", 48 * kMiB), wrong = right;
  int checks = 0;
  right.check = [&]() -> Status { return ++checks, Status(); };
  EXPECT_TRUE(run(device, {right}, quick()));
  EXPECT_GT(checks, 3);
  wrong.check = [] { return Status(Error{Fault::Work, "wrong gave another result", "", ""}); };
  EXPECT_FALSE(run(device, {wrong}, quick()));
}

TEST(Run, WithoutCuptiTheReasonIsKept) {
  FakeDevice device({.cupti = false});
  const Report report = run_one(device, kernel_of(device, "add", 48 * kMiB));
  EXPECT_TRUE(report.timings[0].kernel.empty());
  EXPECT_EQ(report.timings[0].kernel_why, "it is not permitted");
}

TEST(Run, AClockOfCuptiThatAnotherProfilerLeftIsSeen) {
  const double bytes = 48 * kMiB;
  FakeDevice device({.cupti_clock = 2.1});  // cycles of a CPU, as torch.profiler counts them
  const Report report = run_one(device, kernel_of(device, "add", bytes));
  EXPECT_NEAR(report.timings[0].cupti_clock, 2.1, 0.02);
  EXPECT_NEAR(median(report.timings[0].kernel), 1500 + bytes / 4000, 0.01 * bytes / 4000);
}

TEST(Run, ALateHostIsTold) {
  FakeDevice device({});
  int calls = 0;
  Contender slow{.name = "slow", .call = [&](int) -> Status {
                   if (++calls % 4 == 0) device.host_work(2e6);  // as a collection of garbage
                   device.launch({.bytes = 24 * kMiB});
                   return {};
                 }};
  const Report report = run_one(device, slow);
  const Finding* finding = find(report, "late host");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("they include the host's time"));
  EXPECT_EQ(find(run_one(device, kernel_of(device, "add", 24 * kMiB)), "late host"), nullptr);
}

TEST(Findings, AGpuThatIsSlowerWhenItIsNotKeptBusy) {
  Report report;
  report.device.kind = "cuda";
  report.device.l2_bytes = 60ll << 20;
  Timing timing;
  timing.name = "short";
  timing.bytes = kMiB;
  timing.cold.ns = timing.hot = std::vector<double>(20, 20e3);
  timing.batched = std::vector<double>(20, 12e3);
  timing.launch = std::vector<double>(20, 4e3);
  report.timings.push_back(timing);
  add_findings(report);
  const Finding* finding = find(report, "idle clock");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->text, HasSubstr("isolated calls take 20.0 us, calls in a row 12.0 us"));
  report.findings.clear();
  report.timings[0].batched = std::vector<double>(20, 19e3);
  add_findings(report);
  EXPECT_EQ(find(report, "idle clock"), nullptr);
}

TEST(Growth, ATimeThatDoesNotGrowWithTheSizeIsALaunch) {
  const std::vector<double> bytes = {kMiB, 64 * kMiB, 1024 * kMiB};
  EXPECT_THAT(growth_finding(bytes, std::vector{3000.0, 3010.0, 3005.0}),
              HasSubstr("does not grow"));
  EXPECT_EQ(growth_finding(bytes, std::vector{3000.0, 18000.0, 260000.0}), "");
}

}  // namespace
}  // namespace kiln::measure
