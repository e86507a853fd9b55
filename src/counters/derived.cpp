// SPDX-License-Identifier: Apache-2.0
#include "counters/derived.h"

#include <optional>

namespace kiln::counters {
namespace {

using results::Counts;
using enum results::Metric;

std::optional<double> ratio(uint64_t above, uint64_t below, double scale = 1) {
  if (below == 0) return std::nullopt;
  return scale * static_cast<double>(above) / static_cast<double>(below);
}

struct Derived {
  const char *name, *meaning;
  std::optional<double> (*value)(const Counts&);
};

const Derived kDerived[] = {
    {"sectors_per_request", "sectors of a request to global memory, on average",
     [](const Counts& c) {
       const GlobalTraffic all = global_traffic(c);
       return ratio(all.sectors, all.requests);
     }},
    {"ld_sectors_per_request", "the same of loads",
     [](const Counts& c) { return ratio(c[global_ld_sectors], c[global_ld_requests]); }},
    {"st_sectors_per_request", "the same of stores",
     [](const Counts& c) { return ratio(c[global_st_sectors], c[global_st_requests]); }},
    {"bytes_asked", "bytes of global memory that lanes asked for",
     [](const Counts& c) { return ratio(global_traffic(c).bytes, 1); }},
    {"bytes_moved", "bytes of the sectors that hold them",
     [](const Counts& c) { return ratio(32 * global_traffic(c).sectors, 1); }},
    {"bytes_used_pct", "share of the moved bytes that lanes asked for",
     [](const Counts& c) {
       const GlobalTraffic all = global_traffic(c);
       return ratio(all.bytes, 32 * all.sectors, 100);
     }},
    {"active_lanes", "lanes that execute an instruction, on average (PTX)",
     [](const Counts& c) { return ratio(c[thread_inst_executed], c[inst_executed]); }},
    {"divergent_branches_pct", "share of branches after which lanes went several ways",
     [](const Counts& c) { return ratio(c[branches_divergent], c[branches], 100); }},
    {"shared_ld_wavefronts_per_request", "passes through the banks of a load, on average",
     [](const Counts& c) { return ratio(c[shared_ld_wavefronts], c[shared_ld_requests]); }},
    {"shared_st_wavefronts_per_request", "passes through the banks of a store, on average",
     [](const Counts& c) { return ratio(c[shared_st_wavefronts], c[shared_st_requests]); }},
    {"bank_conflicts", "passes through the banks beyond the ideal",
     [](const Counts& c) { return ratio(c[shared_ld_conflicts] + c[shared_st_conflicts], 1); }},
    {"atomic_contention", "lanes that update the busiest address of an atomic, on average",
     [](const Counts& c) {
       return ratio(c[atomic_serial],
                    c[global_atom_requests] + c[global_red_requests] + c[shared_atom_requests]);
     }},
};

struct Fact {
  const char *name, *tag, *meaning;
};
constexpr Fact kMoreFacts[] = {
    {"lts__t_sectors_op_read.sum", "modelled", "sectors that L2 was asked for by loads"},
    {"lts__t_sectors_op_write.sum", "modelled", "sectors that stores sent to L2"},
    {"dram__bytes_read.sum", "modelled", "bytes from DRAM; L2 is empty at the start"},
    {"dram__bytes_write.sum", "modelled", "bytes to DRAM before the kernel ends"},
    {"launch__grid_size", "exact", "blocks"},
    {"launch__block_size", "exact", "threads of a block"},
    {"launch__shared_mem_per_block_dynamic", "exact", "bytes that the launch asked for"},
    {"launch__shared_mem_per_block_static", "exact", "bytes, from the cubin"},
    {"launch__registers_per_thread", "exact", "from the cubin"},
    {"sm__maximum_warps_per_active_cycle_pct", "exact", "theoretical occupancy, from the cubin"},
    {"launch__waves_per_multiprocessor", "exact", "grid / blocks that run at once"},
    {"smsp__inst_executed.sum", "unavailable",
     "SASS instructions; PTX is counted instead (inst_executed)"},
    {"smsp__thread_inst_executed.sum", "unavailable",
     "SASS instructions; PTX is counted instead (thread_inst_executed)"},
    {"l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum", "unavailable",
     "spills are not in PTX; their bytes in the code are under resources"},
    {"l1tex__t_sector_hit_rate.pct", "unavailable", "needs the order in which warps ran"},
    {"sm__throughput.avg.pct_of_peak_sustained_elapsed", "unavailable", "needs a time"},
    {"gpu__time_duration.sum", "unavailable", "needs a GPU; the bound is the least it can be"},
};

}  // namespace

GlobalTraffic global_traffic(const Counts& c) {
  return {
      c[global_ld_requests] + c[global_st_requests] + c[global_atom_requests] +
          c[global_red_requests],
      c[global_ld_sectors] + c[global_st_sectors] + c[global_atom_sectors] + c[global_red_sectors],
      c[global_ld_bytes] + c[global_st_bytes] + c[global_atom_bytes] + c[global_red_bytes]};
}

results::NamedNumbers numbers_of(const Counts& counts, bool with_ncu) {
  results::NamedNumbers out;
  for (size_t i = 0; i < results::kMetricCount; ++i) {
    if (counts.of[i] || with_ncu)
      out.emplace_back(results::kMetrics[i].id, static_cast<double>(counts.of[i]));
  }
  for (const Derived& derived : kDerived) {
    const std::optional<double> value = derived.value(counts);
    if (value && (*value != 0 || with_ncu)) out.emplace_back(derived.name, *value);
  }
  for (size_t i = 0; with_ncu && i < results::kMetricCount; ++i) {
    if (!results::kMetrics[i].ncu.empty())
      out.emplace_back(results::kMetrics[i].ncu, static_cast<double>(counts.of[i]));
  }
  return out;
}

std::vector<results::MetricFact> metric_facts() {
  std::vector<results::MetricFact> out;
  for (const results::MetricName& metric : results::kMetrics) {
    // How often a sector counts that several lanes update is only near to what a GPU does.
    const bool atomics = metric.id == "global_atom_sectors" || metric.id == "global_red_sectors";
    const std::string tag = atomics ? "modelled" : "exact";
    out.push_back({std::string(metric.id), tag, std::string(metric.meaning)});
    if (!metric.ncu.empty())
      out.push_back({std::string(metric.ncu), tag, "is " + std::string(metric.id)});
  }
  for (const Derived& derived : kDerived) out.push_back({derived.name, "exact", derived.meaning});
  for (const Fact& fact : kMoreFacts) out.push_back({fact.name, fact.tag, fact.meaning});
  return out;
}

std::vector<std::string> metric_names() {
  std::vector<std::string> out;
  for (const results::MetricName& metric : results::kMetrics) out.emplace_back(metric.id);
  for (const Derived& derived : kDerived) out.emplace_back(derived.name);
  return out;
}

}  // namespace kiln::counters
