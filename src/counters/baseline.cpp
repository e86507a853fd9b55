// SPDX-License-Identifier: Apache-2.0
#include "counters/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

// What of it is judged, in the order of the table.
std::vector<double> judged_numbers(const results::NamedNumbers& numbers) {
  std::vector<double> out;
  for (const Judged& judged : kJudged) {
    const double* found = results::find_number(numbers, judged.metric);
    out.push_back(found ? *found : 0);
  }
  return out;
}
std::vector<double> judged_numbers(const Json& metrics) {
  std::vector<double> out;
  for (const Judged& judged : kJudged) out.push_back(metrics.value(judged.metric, 0.0));
  return out;
}

Json judged_json(const results::NamedNumbers& numbers) {
  Json out = Json::object();
  for (const Judged& judged : kJudged) {
    if (const double* value = results::find_number(numbers, judged.metric))
      out[judged.metric] = *value;
  }
  return out;
}

struct JudgedLine {
  std::string at;
  std::vector<double> numbers;
};

// Which line was which? An edit moves lines, so those with the same numbers are matched first, in
// order; what is left between two such is paired if it is as many lines before as now.
std::vector<std::pair<size_t, size_t>> changed_pairs(const std::vector<JudgedLine>& before,
                                                     const std::vector<JudgedLine>& now) {
  const size_t rows = before.size(), columns = now.size();
  std::vector<std::vector<uint32_t>> same(rows + 1, std::vector<uint32_t>(columns + 1, 0));
  for (size_t i = rows; i-- > 0;) {
    for (size_t k = columns; k-- > 0;)
      same[i][k] = before[i].numbers == now[k].numbers ? same[i + 1][k + 1] + 1
                                                       : std::max(same[i + 1][k], same[i][k + 1]);
  }
  std::vector<std::pair<size_t, size_t>> out;
  size_t from_i = 0, from_k = 0;
  const auto pair_up_to = [&](size_t i, size_t k) {
    for (size_t step = 0; i - from_i == k - from_k && step < i - from_i; ++step)
      out.emplace_back(from_i + step, from_k + step);
    from_i = i + 1;
    from_k = k + 1;
  };
  for (size_t i = 0, k = 0; i < rows && k < columns;) {
    if (before[i].numbers == now[k].numbers) {
      pair_up_to(i++, k++);
    } else if (same[i + 1][k] >= same[i][k + 1]) {
      ++i;
    } else {
      ++k;
    }
  }
  pair_up_to(rows, columns);
  return out;
}

void add_changes(const std::vector<double>& was, const std::vector<double>& is, const Change& like,
                 std::vector<Change>* out) {
  for (size_t i = 0; i < std::size(kJudged); ++i) {
    if (was[i] == is[i]) continue;
    Change change = like;
    change.metric = kJudged[i].metric;
    change.before = was[i];
    change.now = is[i];
    change.worse = (is[i] > was[i]) == kJudged[i].more_is_worse;
    out->push_back(std::move(change));
  }
}

void compare_lines(const Json& saved, const results::LaunchReport& launch, size_t number,
                   std::vector<Change>* out) {
  std::vector<JudgedLine> before, now;
  for (const Json& line : saved)
    before.push_back({line.value("at", ""), judged_numbers(line.value("metrics", Json::object()))});
  for (const results::CounterLine& line : launch.lines)
    now.push_back({line.at, judged_numbers(line.metrics)});
  for (const auto& [i, k] : changed_pairs(before, now))
    add_changes(before[i].numbers, now[k].numbers, {number, launch.kernel, "", now[k].at}, out);
}

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
    Json lines = Json::array();
    for (const results::CounterLine& line : launch.lines)
      lines.push_back({{"at", line.at}, {"metrics", judged_json(line.metrics)}});
    launches.push_back({{"kernel", launch.kernel},
                        {"metrics", judged_json(launch.metrics)},
                        {"lines", std::move(lines)}});
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
    add_changes(judged_numbers(launches[i].value("metrics", Json::object())),
                judged_numbers(now.metrics), {i + 1, now.kernel, "", ""}, &out);
    compare_lines(launches[i].value("lines", Json::array()), now, i + 1, &out);
  }
  return out;
}

}  // namespace kiln::counters
