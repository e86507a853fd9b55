// SPDX-License-Identifier: Apache-2.0
#include "measure/trust.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"

namespace kiln::measure {
namespace {

// Above the measured roof by more than its own noise.
constexpr double kAboveRoof = 1.10;
// A slice of another process takes hundreds of microseconds at least; the kernels that look for it
// take 250.
constexpr double kPreempted = 1.3;
constexpr double kSwitch_ns = 20e3;
constexpr double kLowClock = 0.97;

}  // namespace

bool leaves_work_behind(const Timing& t) {
  // What the host waits for when the device is idle is a few microseconds.
  const double left = median(t.left_behind);
  return left >= 20e3 && left >= 0.1 * median(t.cold.ns);
}

namespace {

class Finder {
 public:
  explicit Finder(Report& report) : report_(report) {}
  void add(std::string trap, Weight weight, const std::string& contender, std::string text) {
    report_.findings.push_back({std::move(trap), weight, contender, std::move(text)});
  }

  void other_stream(const Timing& t) {
    const double left = median(t.left_behind), call = median(t.cold.ns);
    if (!leaves_work_behind(t)) return;
    add("other stream", Weight::Refusal, t.name,
        fmt::format("after the event that ends the call the device was still busy for {}; the "
                    "events measured {}. The call leaves work on another stream: let the current "
                    "stream wait for it",
                    time_text(left), time_text(call)));
  }

  void synchronises(const Timing& t) {
    if (t.forced_open == 0) return;
    add("synchronises inside", Weight::Warning, t.name,
        fmt::format("the call waits for the device (in {} of {} checked calls): the figures "
                    "include the host's time",
                    t.forced_open, kProbes));
  }

  // Both calls of a pair come after the same work; only the contents of the first are new.
  void replayed(const Timing& t) {
    constexpr double kFaster = 1.4, kLeast_ns = 1e3;
    const size_t count = t.fresh.size();
    if (count == 0 || t.again.size() != count) return;
    size_t faster = 0;
    for (size_t i = 0; i < count; ++i) faster += t.fresh[i] > kFaster * t.again[i] + kLeast_ns;
    if (faster + count / 6 < count) return;
    add("replay by contents", Weight::Refusal, t.name,
        fmt::format("a call takes {} with new contents and {} with the same ones again (in {} of "
                    "{} pairs): it recognizes its inputs and does not compute again",
                    time_text(median(t.fresh)), time_text(median(t.again)), faster, count));
  }

  void pinned() {
    if (report_.surroundings.pinned_l2_bytes == 0) return;
    add("pinned in L2", Weight::Warning, "",
        fmt::format("{} of L2 are set aside for persisting accesses: kiln resets them before each "
                    "cold sample, and they make calls in a row and in a graph faster",
                    memory_text(static_cast<double>(report_.surroundings.pinned_l2_bytes))));
  }

  void too_fast(const Timing& t) {
    const double ns = median(t.cold.ns),
                 roof = std::max(report_.surroundings.copy_same_gbs, report_.surroundings.copy_gbs);
    if (ns <= 0) return;
    const double gbs = t.bytes / ns;
    // Reads alone are faster than a copy; nothing is faster than the memory's own clock.
    if (roof > 0 && gbs > std::max(kAboveRoof * roof, report_.device.peak_gbs))
      add("impossible speed", t.bytes_declared ? Weight::Refusal : Weight::Warning, t.name,
          fmt::format(
              "{:.0f} GB/s, and a copy on this GPU reaches {:.0f}: {}", gbs, roof,
              t.bytes_declared
                  ? "the call does not move the declared bytes"
                  : "it does not access all of its tensors, or does nothing; declare the bytes"));
    const double tflops = t.flops / ns * 1e-3, peak = report_.surroundings.gemm_tflops;
    if (peak > 0 && tflops > kAboveRoof * peak)
      add("impossible speed", Weight::Refusal, t.name,
          fmt::format("{:.0f} TFLOP/s, and a bf16 matrix product on this GPU reaches {:.0f}",
                      tflops, peak));
  }

  void in_cache(const Timing& t) {
    const double hot = median(t.hot), cold = median(t.cold.ns);
    if (hot <= 0 || cold < 1.15 * hot || !is_gpu()) return;
    add("L2-resident inputs", Weight::Note, t.name,
        fmt::format("with its data in L2 the call takes {}, {:.2f}x less than from memory ({}): a "
                    "loop over the same tensors measures the former",
                    time_text(hot), cold / hot, time_text(cold)));
  }

  void first_call(const Timing& t) {
    const double ns = std::max(median(t.host_sync), 1.0);
    if (t.first_ns < 5 * ns) return;
    add("slow first call", Weight::Note, t.name,
        fmt::format(
            "the first call took {}, {:.0f}x the later ones ({}); the figures do not include it",
            time_text(t.first_ns), t.first_ns / ns, time_text(ns)));
  }

  void idle_clock(const Timing& t) {
    const double batched = median(t.batched), hot = median(t.hot), launch = median(t.launch);
    if (batched <= 0 || hot <= 0 || !is_gpu()) return;
    if (launch > 1.1 * hot && batched > 1.1 * hot)
      add("launch bound", Weight::Note, t.name,
          fmt::format("calls in a row take {} each, the GPU needs {}: the host's {} per launch is "
                      "the limit; CUDA graphs help ({})",
                      time_text(batched), time_text(hot), time_text(launch),
                      t.graph.empty() ? "not captured: " + t.graph_why
                                      : time_text(median(t.graph)) + " per call"));
    else if (hot > 1.25 * batched && hot > 10e3 &&
             t.bytes < static_cast<double>(report_.device.l2_bytes))
      add("idle clock", Weight::Warning, t.name,
          fmt::format("isolated calls take {}, calls in a row {}: the GPU runs slower when it is "
                      "not kept busy",
                      time_text(hot), time_text(batched)));
  }

  void spread(const Timing& t) {
    const Summary s = summarise(t.cold.ns);
    if (t.cold.outcome == Progress::NotConverged)
      add("not converged", Weight::Warning, t.name,
          fmt::format(
              "the 95 % interval of the median is {} to {}, {:.2g} % to each side, after {} "
              "samples",
              time_text(s.interval.low), time_text(s.interval.high),
              100 * (s.interval.high - s.interval.low) / (s.interval.high + s.interval.low),
              s.count));
    if (const std::vector<double> ordered = sorted(t.cold.ns); has_two_modes(ordered))
      add("two modes", Weight::Note, t.name,
          fmt::format(
              "the samples form two clusters, around {} and {}: the median is between them, and "
              "may be near either in another run; the mean without the outer tenths is {}",
              time_text(quantile(ordered, 0.25)), time_text(quantile(ordered, 0.75)),
              time_text(s.trimmed)));
    if (s.count >= 20 && s.outliers.far * 20 > s.count)
      add("outliers", Weight::Warning, t.name,
          fmt::format("{} of {} samples are outliers ({} to {}); they are kept", s.outliers.far,
                      s.count, time_text(s.least), time_text(s.greatest)));
  }

  void late(const Timing& t) {
    const auto count = static_cast<int64_t>(t.cold.ns.size());
    if (t.cold.late * 20 <= count) return;
    add("late host", Weight::Warning, t.name,
        fmt::format("in {} of {} samples the GPU was idle before the call was enqueued: they "
                    "include the host's time",
                    t.cold.late, count));
  }

  void throttled(const Timing& t) {
    const auto count = std::count(t.cold.throttled.begin(), t.cold.throttled.end(), 1);
    if (count == 0) return;
    std::vector<double> slow, full;
    for (size_t i = 0; i < t.cold.ns.size(); ++i)
      (t.cold.throttled[i] ? slow : full).push_back(t.cold.ns[i]);
    std::string text = fmt::format(
        "{} of {} samples were taken while the GPU throttled its clock ({})", count,
        t.cold.ns.size(), reason_names(report_.surroundings.watch.reasons & kThrottleReasons));
    if (!full.empty())
      text += fmt::format(": {} then, {} else", time_text(median(slow)), time_text(median(full)));
    add("power throttle", Weight::Warning, t.name, text);
  }

  void clocks() {
    const std::vector<double>& mhz = report_.surroundings.watch.sm_mhz;
    if (mhz.size() < 3) return;
    const std::vector<double> ordered = sorted(mhz);
    const double low = quantile(ordered, 0.05), high = quantile(ordered, 0.95);
    if (low < kLowClock * high)
      add("clock changed", Weight::Warning, "",
          fmt::format("the SM clock varied between {:.0f} and {:.0f} MHz during the run", low,
                      high));
  }

  void neighbours() {
    const Surroundings& around = report_.surroundings;
    const double usual = median(around.spin_ns);
    // A throttled clock changes the length of many of them, and is reported elsewhere.
    const auto slow = std::count_if(around.spin_ns.begin(), around.spin_ns.end(), [&](double ns) {
      return ns > kPreempted * usual + kSwitch_ns;
    });
    if (slow > 0)
      add("competing process", Weight::Warning, "",
          fmt::format("{} of {} kernels with a fixed time of {} took up to {}: another process "
                      "uses this GPU",
                      slow, around.spin_ns.size(), time_text(usual),
                      time_text(*std::max_element(around.spin_ns.begin(), around.spin_ns.end()))));
    if (!around.neighbours.empty()) {
      std::vector<int64_t> pids;
      for (const Neighbour& one : around.neighbours)
        if (std::find(pids.begin(), pids.end(), one.pid) == pids.end()) pids.push_back(one.pid);
      add("competing process", Weight::Warning, "",
          fmt::format("the driver lists {} other process{} on this GPU (pid {})", pids.size(),
                      pids.size() == 1 ? "" : "es", fmt::join(pids, ", ")));
    }
  }

  void engine() {
    if (is_gpu() || report_.timings.size() < 2) return;
    add("engine time", Weight::Note, "",
        "these are CPU times: the engine runs the kernel's PTX on the CPU; a verdict here says "
        "nothing about a GPU");
  }

  void few_events(const Timing& t) {
    const double ns = median(t.cold.ns), pair = report_.surroundings.empty_pair_ns;
    if (!is_gpu() || ns <= 0 || pair < 0.05 * ns) return;
    add("near the resolution", Weight::Note, t.name,
        fmt::format("two events with nothing in between are {} apart, {:.0f} % of this time{}",
                    time_text(pair), 100 * pair / ns,
                    t.kernel.empty() ? ""
                                     : fmt::format("; the kernel itself takes {}",
                                                   time_text(median(t.kernel)))));
  }

  bool is_gpu() const { return report_.device.kind != "engine"; }

 private:
  Report& report_;
};

}  // namespace

void add_findings(Report& report) {
  Finder find(report);
  for (const Timing& t : report.timings) {
    find.other_stream(t);
    find.synchronises(t);
    find.replayed(t);
    find.too_fast(t);
    find.in_cache(t);
    find.first_call(t);
    find.idle_clock(t);
    find.spread(t);
    find.late(t);
    find.throttled(t);
    find.few_events(t);
  }
  find.pinned();
  find.clocks();
  find.engine();
  find.neighbours();
}

const Finding* add_memory_findings(Report& report) {
  for (const Timing& t : report.timings) {
    const std::vector<int64_t>& free_bytes = t.free_bytes;
    bool falls = free_bytes.size() >= 4 && t.calls > 0;
    for (size_t i = 1; i < free_bytes.size(); ++i)
      falls &= free_bytes[i] >= 0 && free_bytes[i] < free_bytes[i - 1];
    if (!falls) continue;
    const int64_t lost = free_bytes.front() - free_bytes.back();
    // A log of the driver, or a few pages that an allocator touches for the first time, are not
    // tensors.
    constexpr int64_t kFewPages = 64 << 10;
    if (lost < std::max<int64_t>(64 * t.calls, kFewPages)) continue;
    report.findings.push_back({"allocates without end", Weight::Refusal, t.name,
                               fmt::format("free memory fell at each check, by {} in {} calls",
                                           memory_text(static_cast<double>(lost)), t.calls)});
    return &report.findings.back();
  }
  return nullptr;
}

std::string growth_finding(std::span<const double> bytes, std::span<const double> ns) {
  for (size_t i = 0; i < bytes.size(); ++i)
    for (size_t k = 0; k < bytes.size(); ++k) {
      // Four times the work in the same time can be launch overhead; above 32 MiB it is memory
      // traffic on any GPU.
      if (bytes[k] < 4 * bytes[i] || bytes[k] < 32 << 20 || ns[k] > 1.1 * ns[i]) continue;
      return fmt::format(
          "{} take {} and {} take {}: the time does not grow with the size, so it is not the "
          "kernel's",
          memory_text(bytes[i]), time_text(ns[i]), memory_text(bytes[k]), time_text(ns[k]));
    }
  return "";
}

}  // namespace kiln::measure
