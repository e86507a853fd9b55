// SPDX-License-Identifier: Apache-2.0
// What would a timer say that is started and stopped without care, and what is wrong with it?
#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/bench.h"

namespace kiln::report {
namespace {

double median_of(const std::optional<results::Summary>& times) {
  return times ? times->median_ns : 0;
}

std::string times(double naive, double real) {
  if (real <= 0) return "";
  return naive > real ? fmt::format("{:.3g}x too long", naive / real)
                      : fmt::format("{:.3g}x too short", real / naive);
}

}  // namespace

std::vector<NaiveTime> naive_times(const results::BenchResult& result) {
  const results::Contender& one = result.contenders.front();
  const bool gpu = !result.on_engine();
  const double cold = one.cold.median_ns, hot = median_of(one.hot), launch = median_of(one.launch),
               sync = median_of(one.host_sync), batched = median_of(one.batched),
               first = one.first_ns, events = median_of(one.plain_events);
  std::vector<NaiveTime> rows;
  if (result.start && result.start->is_object()) {
    std::vector<std::string> parts;
    double all = first;
    const auto add = [&](const char* key, const char* name) {
      const auto found = result.start->find(key);
      const double s =
          found != result.start->end() && found->is_number() ? found->get<double>() : 0;
      if (s <= 0) return;
      all += s * 1e9;
      parts.push_back(fmt::format("{} {}", name, time_text(s * 1e9)));
    };
    add("import_s", "import torch");
    add("build_s", "build");
    add("load_s", "load");
    parts.push_back("first call " + time_text(first));
    rows.push_back(
        {"timer started at the top of the script", all,
         "includes one-time costs: " + text::join(parts, ", ") + "; none of it is the kernel"});
  }
  rows.push_back(
      {"timer around the first call", first,
       gpu ? fmt::format("includes the CUDA context, the module load and the first allocation ({})",
                         times(first, cold))
           : fmt::format("includes the compilation of the PTX ({})", times(first, cold))});
  if (launch > 0 && gpu)
    rows.push_back(
        {"timer around a call, no synchronisation", launch,
         fmt::format("stops when the launch returns: measures the host, not the kernel ({})",
                     times(launch, cold))});
  if (sync > 0 && gpu)
    rows.push_back(
        {"timer around a call and a synchronisation", sync,
         fmt::format(
             "includes the launch and the wait, as .item(), .cpu() and print() silently do ({})",
             times(sync, cold))});
  if (events > 0 && gpu)
    rows.push_back(
        {"events around a call on an idle stream", events,
         fmt::format(
             "includes the host's time between the two events, and finds its data in L2 ({})",
             times(events, cold))});
  if (batched > 0 && gpu)
    rows.push_back({"a loop of calls, one synchronisation, divided", batched,
                    batched > 1.1 * hot && launch > hot
                        ? fmt::format("measures the host's launch time: the GPU waits for it ({})",
                                      times(batched, cold))
                        : fmt::format("overlaps the ends of kernels, and with one set of tensors "
                                      "it finds them in L2 ({})",
                                      times(batched, cold))});
  if (hot > 0 && gpu)
    rows.push_back({"events, stream held, same tensors again", hot,
                    fmt::format("finds its data in L2, where a real program would not ({})",
                                times(hot, cold))});
  rows.push_back({gpu ? "true: events, stream held, cold L2, median"
                      : "true: the engine's time of a call, median",
                  cold,
                  gpu ? "the GPU's time for the call, its data in memory"
                      : "how long a test waits; not GPU time"});
  return rows;
}

std::string naive_times_text(const results::BenchResult& result) {
  std::string out = "  what other timers would report:\n";
  for (const NaiveTime& row : naive_times(result))
    out += fmt::format("    {:<46} {:>9}  {}\n", row.how, time_text(row.ns), row.wrong);
  return out;
}

}  // namespace kiln::report
