// SPDX-License-Identifier: Apache-2.0
#include "measure/run.h"

#include <fmt/format.h>

#include <algorithm>

#include "measure/trust.h"

namespace kiln::measure {
namespace {

constexpr int kSpins = 40;
constexpr int kLookedAt = 12;                     // calls for each of the checks that need a few
constexpr int kRepeated = 12, kRepeatedSlow = 4;  // pairs with new contents
constexpr double kTrace_ns =
    120e6;  // about how long kernels are traced: their times have several modes
constexpr double kTraceEach_ns = 1e5;  // next to the call: the flush, and CUPTI's own work

// Another process on the GPU takes time slices out of kernels whose length is known.
Status look_around(Device& device, Surroundings& around) {
  for (const Neighbour& one : device.neighbours()) around.neighbours.push_back(one);
  for (int i = 0; i < kSpins; ++i) {
    TRY(const Spin spin, device.spin(kSpin_ns));
    if (spin.event_ns <= 0) return {};
    if (i < kSpins / 8) continue;  // the clock comes up
    around.spin_ns.push_back(spin.event_ns);
    if (spin.sm_mhz > 0) around.watch.sm_mhz.push_back(spin.sm_mhz);
  }
  return {};
}

Status take_side(Device& device, Sampler& sampler, const Contender& contender,
                 const RunOptions& options, Timing& timing) {
  const double call_ns = median(timing.cold.ns);
  timing.batch_calls = batch_calls(call_ns, contender.bytes, device.facts().l2_bytes);
  // A call of a second is not made hundreds of times for the sake of a table.
  if (call_ns > 0.2e9) timing.batch_calls = 2;
  TRY(timing.launch, sampler.launch(contender, options.side_s));
  TRY(timing.hot, sampler.hot(contender, options.side_s));
  TRY(timing.batched, sampler.batched(contender, timing.batch_calls, options.side_s));
  if (!device.is_gpu()) return {};
  // A capture of these fails, and leaves torch's own state broken.
  if (leaves_work_behind(timing) || timing.forced_open > 0) {
    timing.graph_why = timing.forced_open > 0 ? "the call waits for the device"
                                              : "the call leaves work on another stream";
    return {};
  }
  auto graph = sampler.graph(contender, std::min(timing.batch_calls, 64), options.side_s);
  if (graph)
    timing.graph = std::move(*graph);
  else
    timing.graph_why = graph.error().why;
  return {};
}

void take_kernels(Sampler& sampler, const Contender& contender, Timing& timing) {
  const double call_ns = median(timing.cold.ns);
  const int count =
      call_ns > 0.05e9
          ? 3
          : static_cast<int>(std::clamp(kTrace_ns / (call_ns + kTraceEach_ns), 40.0, 1000.0));
  auto traced = sampler.traced(contender, count);
  if (!traced) {
    timing.kernel_why = traced.error().why;
    return;
  }
  timing.kernel = std::move(traced->ns);
  timing.kernel_busy = std::move(traced->busy_ns);
  timing.kernels = std::move(traced->kernels);
  timing.cupti_clock = traced->clock;
}

// Last of all that is timed: an op that begins to recognize its contents late is seen too.
Status take_repeated(Sampler& sampler, const Contender& contender, Timing& timing) {
  if (!contender.refresh || timing.forced_open > 0) return {};
  TRY(Sampler::Repeated pairs,
      sampler.repeated(contender, median(timing.cold.ns) > 0.2e9 ? kRepeatedSlow : kRepeated));
  timing.fresh = std::move(pairs.fresh);
  timing.again = std::move(pairs.again);
  return {};
}

Status take_roof(Device& device, Sampler& sampler, const Contender& first, Surroundings& around,
                 double seconds) {
  const int64_t l2 = std::max<int64_t>(device.facts().l2_bytes, 1 << 20);
  const int64_t large = std::min<int64_t>(16 * l2, std::max<int64_t>(device.free_bytes() / 4, l2));
  TRY(const std::vector<double> copies, sampler.copies(large, seconds));
  around.copy_gbs = median(copies);
  if (first.bytes > 0 && first.bytes < static_cast<double>(large)) {
    TRY(const std::vector<double> same,
        sampler.copies(std::max<int64_t>(64, static_cast<int64_t>(first.bytes)), seconds));
    around.copy_same_gbs = median(same);
  } else {
    around.copy_same_gbs = around.copy_gbs;
  }
  if (first.flops > 0) {
    auto gemm = device.gemm_tflops();
    if (gemm)
      around.gemm_tflops = *gemm;
    else
      around.gemm_why = gemm.error().why;
  }
  return {};
}

Timing begin_timing(const Contender& contender) {
  Timing timing;
  timing.name = contender.name;
  timing.bytes = contender.bytes;
  timing.flops = contender.flops;
  timing.bytes_declared = contender.bytes_declared;
  return timing;
}

// The first contender once more under another name: what a ratio of equals comes to in these
// rounds.
std::vector<const Contender*> in_turns(const std::vector<Contender>& contenders) {
  std::vector<const Contender*> turns;
  for (const Contender& contender : contenders) turns.push_back(&contender);
  if (contenders.size() > 1) turns.push_back(&contenders.front());
  return turns;
}

}  // namespace

std::string_view name_of(Weight weight) {
  switch (weight) {
    case Weight::Note:
      return "note";
    case Weight::Warning:
      return "warning";
    case Weight::Refusal:
      break;
  }
  return "refusal";
}

bool is_refused(const Report& report) {
  return std::any_of(report.findings.begin(), report.findings.end(),
                     [](const Finding& finding) { return finding.weight == Weight::Refusal; });
}

Result<Report> run(Device& device, const std::vector<Contender>& contenders,
                   const RunOptions& options) {
  Report report;
  report.device = device.facts();
  const double begin = device.now_ns();
  Sampler sampler(device, options.limits, options.seed);
  Surroundings& around = report.surroundings;
  CHECK_OK(look_around(device, around));
  for (const Contender& contender : contenders) {
    Timing& timing = report.timings.emplace_back(begin_timing(contender));
    TRY(const Sampler::First first, sampler.first_calls(contender));
    timing.first_ns = first.first_ns;
    timing.second_ns = first.second_ns;
  }
  const std::vector<const Contender*> turns = in_turns(contenders);
  CHECK_OK(sampler.warm_up(turns, options.patience));
  TRY(const std::vector<double> empty, sampler.empty_pairs(50));
  around.empty_pair_ns = median(empty);
  TRY(around.own_host_ns, sampler.own_host_ns(512));
  for (size_t i = 0; i < contenders.size(); ++i) {
    // A slow call is looked at less often.
    const int count = report.timings[i].second_ns > 0.2e9 ? 3 : kLookedAt;
    TRY(report.timings[i].host_sync, sampler.host_and_sync(contenders[i], count));
    TRY(report.timings[i].plain_events, sampler.plain_events(contenders[i], count));
    TRY(report.timings[i].left_behind, sampler.left_behind(contenders[i], count));
    TRY(report.timings[i].forced_open, sampler.waits_inside(contenders[i], kProbes));
    // Four points in time: memory that falls at each of them is not a cache that fills.
    Timing& timing = report.timings[i];
    timing.free_bytes.push_back(device.free_bytes());
    for (int point = 0; point < 4; ++point) {
      for (int call = 0; call < count; ++call) CHECK_OK(contenders[i].call(0));
      CHECK_OK(device.synchronize(options.limits.call_s));
      timing.calls += count;
      timing.free_bytes.push_back(device.free_bytes());
    }
  }
  if (const Finding* endless = add_memory_findings(report); endless)
    return Error{Fault::Work, endless->contender + " cannot be timed", endless->text,
                 "free what a call allocates, or allocate it once outside the call"};

  std::vector<Series> series;
  CHECK_OK(sampler.interleaved(turns, options.patience, options.check_share, series, around.watch));
  for (size_t i = 0; i < contenders.size(); ++i) {
    report.timings[i].cold = std::move(series[i]);
  }
  for (size_t i = 1; i < contenders.size(); ++i)
    report.comparisons.push_back(
        {contenders[0].name, contenders[i].name,
         judge(report.timings[0].cold.ns, report.timings[i].cold.ns, report.timings[0].cold.ns,
               series.back().ns, options.seed)});
  if (options.side)
    for (size_t i = 0; i < contenders.size(); ++i)
      CHECK_OK(take_side(device, sampler, contenders[i], options, report.timings[i]));
  if (options.kernels)
    for (size_t i = 0; i < contenders.size(); ++i)
      take_kernels(sampler, contenders[i], report.timings[i]);
  for (size_t i = 0; i < contenders.size(); ++i)
    CHECK_OK(take_repeated(sampler, contenders[i], report.timings[i]));
  around.pinned_l2_bytes = sampler.pinned_l2_bytes();
  if (options.roof && device.is_gpu())
    CHECK_OK(take_roof(device, sampler, contenders.front(), around, options.side_s / 2));
  CHECK_OK(look_around(device, around));
  around.spin_ns.insert(around.spin_ns.end(), around.watch.spin_ns.begin(),
                        around.watch.spin_ns.end());
  report.seconds = (device.now_ns() - begin) / 1e9;
  add_findings(report);
  return report;
}

}  // namespace kiln::measure
