// SPDX-License-Identifier: Apache-2.0
#include "counters/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "counters/advice.h"
#include "counters/bound.h"
#include "counters/derived.h"
#include "counters/predict.h"
#include "counters/resources.h"

namespace kiln::counters {
namespace {

using results::Counts;
using results::Metric;

const results::CounterInstruction* instruction_of(const Programs& programs,
                                                  const results::CounterSite& site) {
  const auto found = programs.find(site.program);
  if (found == programs.end() || site.instruction >= found->second->instructions.size())
    return nullptr;
  return &found->second->instructions[site.instruction];
}

// The kernel's own program, not that of a function it calls.
const results::CounterProgram* program_of(const results::CounterLaunch& launch,
                                          const Programs& programs) {
  for (const results::CounterSite& site : launch.sites) {
    const auto found = programs.find(site.program);
    if (found != programs.end() && found->second->name == launch.kernel) return found->second;
  }
  return nullptr;
}

struct LineSum {
  Counts counts;
  std::string function;
  std::vector<std::string> inlined_at;
  uint32_t ptx_line = 0;
};

std::string place_of(const results::CounterInstruction& instruction) {
  return instruction.at.empty() ? fmt::format("PTX line {}", instruction.ptx_line) : instruction.at;
}

using LineSums = std::map<std::string, LineSum>;

void add_lines(const results::CounterLaunch& launch, const Programs& programs, LineSums& sums) {
  for (const results::CounterSite& site : launch.sites) {
    const results::CounterInstruction* instruction = instruction_of(programs, site);
    if (!instruction) continue;
    LineSum& sum = sums[place_of(*instruction)];
    if (sum.ptx_line == 0) {
      sum.ptx_line = instruction->ptx_line;
      sum.function = programs.at(site.program)->name;
    }
    sum.counts.add(site.counts);
    const std::string& outer = instruction->inlined_at;
    auto& known = sum.inlined_at;
    if (!outer.empty() && std::find(known.begin(), known.end(), outer) == known.end())
      known.push_back(outer);
  }
}

std::vector<results::CounterLine> lines_of(const LineSums& sums) {
  std::vector<results::CounterLine> out;
  for (const auto& [at, sum] : sums)
    out.push_back({at, sum.function, sum.inlined_at, numbers_of(sum.counts, false)});
  // By file, then by number: 9 before 12.
  const auto key = [](const results::CounterLine& line) {
    const size_t colon = line.at.find_last_of(": ");
    return std::pair(line.at.substr(0, colon), std::stoul("0" + line.at.substr(colon + 1)));
  };
  std::stable_sort(out.begin(), out.end(),
                   [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return out;
}

bool has_eight_bit_products(const results::CounterLaunch& launch, const Programs& programs) {
  for (const results::CounterSite& site : launch.sites) {
    const results::CounterInstruction* instruction = instruction_of(programs, site);
    if (!instruction || !site.counts[Metric::flops_tensor]) continue;
    for (const char* word : {".e4m3", ".e5m2", ".s8", ".u8", ".s4", ".u4", ".b1", ".e2m"})
      if (instruction->ptx.find(word) != std::string::npos) return true;
  }
  return false;
}

// A thread has at least 16, also where its code uses fewer.
double allocated_registers(uint32_t used) { return std::max(16u, used); }

void add_launch_metrics(const results::CounterLaunch& launch, const Gpu& gpu,
                        results::LaunchReport* out) {
  const auto add = [&](const char* name, double value) { out->metrics.emplace_back(name, value); };
  const results::ModelledTraffic& traffic = launch.traffic;
  add("lts__t_sectors_op_read.sum", static_cast<double>(traffic.l2_read_sectors));
  add("lts__t_sectors_op_write.sum", static_cast<double>(traffic.l2_write_sectors));
  add("dram__bytes_read.sum", static_cast<double>(traffic.dram_read_bytes));
  add("dram__bytes_write.sum", static_cast<double>(traffic.dram_write_bytes));
  const double blocks = static_cast<double>(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  add("launch__grid_size", blocks);
  add("launch__block_size",
      static_cast<double>(launch.block[0]) * launch.block[1] * launch.block[2]);
  add("launch__shared_mem_per_block_dynamic", static_cast<double>(launch.dynamic_shared_bytes));
  if (!out->resources) return;
  const results::KernelResources& resources = *out->resources;
  add("launch__shared_mem_per_block_static", static_cast<double>(resources.static_shared_bytes));
  add("launch__registers_per_thread", allocated_registers(resources.registers));
  add("sm__maximum_warps_per_active_cycle_pct", 100 * resources.occupancy);
  if (resources.blocks)
    add("launch__waves_per_multiprocessor", blocks / (resources.blocks * gpu.multiprocessors));
}

}  // namespace

Result<results::CounterReport> make_report(results::CounterRun& run, const Gpu& gpu,
                                           const std::string& kernel) {
  Programs programs;
  for (const results::CounterProgram& program : run.programs) programs[program.id] = &program;
  results::CounterReport report;
  report.version = run.version;
  report.gpu = gpu.name;
  report.gpu_source = gpu.source;
  report.facts = metric_facts();
  CubinReader cubins(gpu);
  LineSums all_lines;
  for (results::CounterLaunch& launch : run.launches) {
    if (launch.kernel.find(kernel) == std::string::npos) continue;
    results::LaunchReport out;
    out.number = report.launches.size() + 1;
    out.kernel = launch.kernel;
    out.grid = launch.grid;
    out.block = launch.block;
    out.code = launch.code;
    cubins.add_resources(program_of(launch, programs), &launch, &out);
    Counts total;
    for (const results::CounterSite& site : launch.sites) total.add(site.counts);
    out.metrics = numbers_of(total, true);
    add_launch_metrics(launch, gpu, &out);
    LineSums own;
    add_lines(launch, programs, own);
    add_lines(launch, programs, all_lines);
    out.lines = lines_of(own);
    out.bound = bound_of(launch, total, has_eight_bit_products(launch, programs), gpu);
    predict_time(launch, programs, total, gpu, &out);
    out.advice = advice_for(out);
    report.launches.push_back(std::move(out));
  }
  report.lines = lines_of(all_lines);
  if (!report.launches.empty()) return report;
  if (run.launches.empty())
    return Error{Fault::Work, "there is nothing to count", "no kernel was launched on the engine",
                 "check that the call reaches a kernel: kiln call, kiln run"};
  return Error{
      Fault::Usage, fmt::format("no kernel has '{}' in its name", kernel),
      "launched: " + run.launches.front().kernel +
          (run.launches.size() > 1 ? fmt::format(" and {} more", run.launches.size() - 1) : ""),
      "give a part of a kernel's name to --kernel"};
}

}  // namespace kiln::counters
