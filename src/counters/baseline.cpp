// SPDX-License-Identifier: Apache-2.0
#include "counters/baseline.h"

#include <fmt/format.h>

#include "base/json.h"

namespace kiln::counters {
namespace {

constexpr const char* kHeader = "kiln_counters_baseline";
constexpr int kForm = 1;

struct Judged {
  const char* metric;
  bool more_is_worse;
};
// What a person would call a regression. Instructions are those of PTX, which only a change of the
// source or of the compiler moves.
constexpr Judged kJudged[] = {
    {"inst_executed", true},
    {"branches_divergent", true},
    {"global_ld_requests", true},
    {"global_ld_sectors", true},
    {"global_st_requests", true},
    {"global_st_sectors", true},
    {"global_atom_requests", true},
    {"global_red_requests", true},
    {"atomic_serial", true},
    {"shared_ld_wavefronts", true},
    {"shared_st_wavefronts", true},
    {"shared_ld_conflicts", true},
    {"shared_st_conflicts", true},
    {"local_ld_requests", true},
    {"local_st_requests", true},
    {"barriers", true},
    {"dram__bytes_read.sum", true},
    {"dram__bytes_write.sum", true},
    {"launch__registers_per_thread", true},
    {"sm__maximum_warps_per_active_cycle_pct", false},
};

Error refused(const std::string& source, std::string why) {
  return Error{Fault::Usage, "cannot compare with the baseline " + source, std::move(why),
               "replace it: --save-baseline " + source};
}

}  // namespace

std::filesystem::path baseline_path(const std::filesystem::path& directory,
                                    const std::string& name) {
  if (name.find('/') != name.npos || name.ends_with(".json")) return directory / name;
  return directory / "kiln-counters" / (name + ".json");
}

std::string baseline_text(const results::CounterReport& report) {
  Json launches = Json::array();
  for (const results::LaunchReport& launch : report.launches) {
    Json metrics = Json::object();
    for (const Judged& judged : kJudged) {
      if (const double* value = results::find_number(launch.metrics, judged.metric))
        metrics[judged.metric] = *value;
    }
    launches.push_back({{"kernel", launch.kernel}, {"metrics", std::move(metrics)}});
  }
  const Json all{{kHeader, kForm},
                 {"version", report.version},
                 {"gpu", report.gpu},
                 {"launches", std::move(launches)}};
  return all.dump(1) + "\n";
}

Result<std::vector<Change>> compare_with_baseline(const results::CounterReport& report,
                                                  const std::string& text,
                                                  const std::string& source) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object() || !json.contains(kHeader))
    return refused(source, "it is not a baseline of kiln counters");
  if (json[kHeader] != kForm || json.value("version", "") != report.version)
    return refused(source, fmt::format("it was saved by kiln {}, this is {}",
                                       json.value("version", "?"), report.version));
  if (json.value("gpu", "") != report.gpu)
    return refused(source, fmt::format("it is for {}, this run is for {}", json.value("gpu", "?"),
                                       report.gpu));
  const Json launches = json.value("launches", Json::array());
  if (launches.size() != report.launches.size())
    return refused(source, fmt::format("it has {} launches, this run has {}", launches.size(),
                                       report.launches.size()));
  std::vector<Change> out;
  for (size_t i = 0; i < launches.size(); ++i) {
    const results::LaunchReport& now = report.launches[i];
    if (launches[i].value("kernel", "") != now.kernel)
      return refused(source, fmt::format("its launch {} is {}, here it is {}", i + 1,
                                         launches[i].value("kernel", "?"), now.kernel));
    const Json metrics = launches[i].value("metrics", Json::object());
    for (const Judged& judged : kJudged) {
      const double* seen = results::find_number(now.metrics, judged.metric);
      const double was = metrics.value(judged.metric, 0.0), is = seen ? *seen : 0;
      if (was != is)
        out.push_back(
            {i + 1, now.kernel, judged.metric, was, is, (is > was) == judged.more_is_worse});
    }
  }
  return out;
}

}  // namespace kiln::counters
