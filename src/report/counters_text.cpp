// SPDX-License-Identifier: Apache-2.0
// How do counters read on a terminal?
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/units.h"
#include "report/counters.h"

namespace kiln::report {
namespace {

using results::CounterLine;
using results::CounterReport;
using results::find_number;
using results::LaunchReport;
using results::NamedNumbers;

double number(const NamedNumbers& numbers, std::string_view name) {
  const double* found = find_number(numbers, name);
  return found ? *found : 0;
}

std::string dims_text(const std::array<uint32_t, 3>& dims) {
  std::string out = fmt::format("{}x{}x{}", dims[0], dims[1], dims[2]);
  while (out.ends_with("x1")) out.resize(out.size() - 2);
  return out;
}

// "12", "4.25", "-" for nothing.
std::string short_number(double value) {
  if (value == 0) return "-";
  if (value == static_cast<double>(static_cast<uint64_t>(value)))
    return grouped(static_cast<uint64_t>(value));
  return fmt::format("{:.2f}", value);
}

std::string bound_text(const LaunchReport& launch, const std::string& gpu) {
  const auto& limits = launch.bound.limits;
  if (limits.empty()) return fmt::format("  lower bound on {}: none, no traffic\n", gpu);
  std::string out = fmt::format("  lower bound on {}: {}, limited by {} ({})", gpu,
                                time_text(limits[0].us * 1e3), limits[0].resource, limits[0].work);
  for (size_t i = 1; i < limits.size(); ++i)
    out += fmt::format("{} {} {}", i == 1 ? ";" : ",", limits[i].resource,
                       time_text(limits[i].us * 1e3));
  return out + "\n";
}

std::string resources_text(const LaunchReport& launch) {
  if (!launch.resources) return fmt::format("  no registers: {}\n", launch.no_resources);
  const results::KernelResources& used = *launch.resources;
  std::string out = fmt::format(
      "  {}: {} registers, {} of shared memory, occupancy {:.0f} % (limited by {})", used.arch,
      used.registers, memory_text(static_cast<double>(used.static_shared_bytes)),
      100 * used.occupancy, used.limiter);
  if (used.spill_store_bytes + used.spill_load_bytes)
    out += fmt::format(", spills {} bytes", used.spill_store_bytes + used.spill_load_bytes);
  return out + "\n";
}

struct CounterColumn {
  const char *title, *metric;
};
// By what a line has: a column without a number in any line is left out.
constexpr CounterColumn kCounterColumns[] = {
    {"instr", "inst_executed"},
    {"lanes", "active_lanes"},
    {"ld req", "global_ld_requests"},
    {"sect/req", "ld_sectors_per_request"},
    {"st req", "global_st_requests"},
    {"sect/req", "st_sectors_per_request"},
    {"used %", "bytes_used_pct"},
    {"atomics", "atomic_lanes"},
    {"contention", "atomic_contention"},
    {"sh ld", "shared_ld_wavefronts"},
    {"sh st", "shared_st_wavefronts"},
    {"conflicts", "bank_conflicts"},
    {"branches", "branches"},
    {"divergent", "branches_divergent"},
    {"tensor flops", "flops_tensor"},
};

std::vector<CounterColumn> columns_of(const LaunchReport& launch) {
  std::vector<CounterColumn> out;
  for (const CounterColumn& column : kCounterColumns) {
    if (std::any_of(launch.lines.begin(), launch.lines.end(), [&](const CounterLine& line) {
          return number(line.metrics, column.metric) != 0;
        }))
      out.push_back(column);
  }
  return out;
}

std::vector<std::vector<std::string>> line_rows(const LaunchReport& launch) {
  const std::vector<CounterColumn> columns = columns_of(launch);
  std::vector<std::vector<std::string>> rows(1, {"line"});
  for (const CounterColumn& column : columns) rows[0].emplace_back(column.title);
  const auto add = [&](const std::string& name, const NamedNumbers& numbers) {
    rows.push_back({name});
    for (const CounterColumn& column : columns)
      rows.back().push_back(short_number(number(numbers, column.metric)));
  };
  for (const CounterLine& line : launch.lines) {
    std::string name = line.at;
    if (!line.inlined_at.empty()) name += " (in " + line.inlined_at.front() + ")";
    add(name, line.metrics);
  }
  add("all", launch.metrics);
  return rows;
}

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out;
  for (const auto& row : rows) {
    out += fmt::format("  {:<{}}", row[0], widths[0]);
    for (size_t i = 1; i < row.size(); ++i) out += fmt::format("  {:>{}}", row[i], widths[i]);
    out += "\n";
  }
  return out;
}

std::string launch_text(const LaunchReport& launch, const std::string& gpu) {
  std::string out = fmt::format("{}. {}: {} blocks of {}\n", launch.number, launch.kernel,
                                dims_text(launch.grid), dims_text(launch.block));
  if (launch.code)
    out += fmt::format("  failed with CUDA error {}: the counts end there\n", launch.code);
  out += bound_text(launch, gpu) + resources_text(launch);
  out += fmt::format("  DRAM {} read, {} written (modelled); L2 {} sectors read (modelled)\n",
                     bytes_text(number(launch.metrics, "dram__bytes_read.sum")),
                     bytes_text(number(launch.metrics, "dram__bytes_write.sum")),
                     short_number(number(launch.metrics, "lts__t_sectors_op_read.sum")));
  out += table_text(line_rows(launch));
  for (const results::Advice& advice : launch.advice)
    out += fmt::format("  {}{}{}\n", advice.at, advice.at.empty() ? "" : ": ", advice.text);
  return out;
}

// Launches of one kernel that counted the same are shown once.
bool is_same(const LaunchReport& a, const LaunchReport& b) {
  return a.kernel == b.kernel && a.grid == b.grid && a.block == b.block && a.metrics == b.metrics;
}

}  // namespace

std::string counters_text(const CounterReport& report) {
  std::string out;
  for (size_t i = 0; i < report.launches.size();) {
    size_t end = i + 1;
    while (end < report.launches.size() && is_same(report.launches[i], report.launches[end])) ++end;
    out += launch_text(report.launches[i], report.gpu);
    if (end - i > 1) out += fmt::format("  the next {} launches counted the same\n", end - i - 1);
    out += "\n";
    i = end;
  }
  return out + "Instructions are PTX. Counts are exact; modelled values are marked.\n";
}

std::string counters_csv(const CounterReport& report) {
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const LaunchReport& launch : report.launches)
    for (const auto& [name, value] : launch.metrics)
      if (known.insert(name).second) names.push_back(name);
  std::string out = "launch,kernel";
  for (const std::string& name : names) out += "," + name;
  out += "\n";
  for (const LaunchReport& launch : report.launches) {
    std::string kernel;
    for (char c : launch.kernel) kernel += c == '"' ? std::string("\"\"") : std::string(1, c);
    out += fmt::format("{},\"{}\"", launch.number, kernel);
    for (const std::string& name : names) {
      const double* value = find_number(launch.metrics, name);
      out += value ? fmt::format(",{}", *value) : ",";
    }
    out += "\n";
  }
  return out;
}

std::string counters_markdown(const CounterReport& report) {
  std::string out = fmt::format("# Counters\n\nFor {} ({}).\n", report.gpu, report.gpu_source);
  for (const LaunchReport& launch : report.launches) {
    out += fmt::format("\n## {}. `{}`\n\n", launch.number, launch.kernel);
    if (!launch.bound.limits.empty()) {
      const results::Limit& limit = launch.bound.limits[0];
      out += fmt::format("Lower bound: {} ({}: {}).\n\n", time_text(limit.us * 1e3), limit.resource,
                         limit.work);
    }
    const auto rows = line_rows(launch);
    for (size_t r = 0; r < rows.size(); ++r) {
      out += fmt::format("| {} |\n", fmt::join(rows[r], " | "));
      if (r == 0) {
        for (size_t i = 0; i < rows[0].size(); ++i) out += i == 0 ? "|---" : "|---:";
        out += "|\n";
      }
    }
    for (const results::Advice& advice : launch.advice)
      out += fmt::format("\n- {}{}{}", advice.at, advice.at.empty() ? "" : ": ", advice.text);
    if (!launch.advice.empty()) out += "\n";
  }
  return out;
}

}  // namespace kiln::report
