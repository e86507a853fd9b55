// SPDX-License-Identifier: Apache-2.0
#include "counters/chain.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kiln::counters {
namespace {

using results::CounterInstruction;
using results::CounterSite;
using results::Metric;

double times_of(uint64_t value) { return static_cast<double>(value); }

// Names of registers begin with a percent sign; what stands first is written, unless it is an
// address.
struct Registers {
  std::vector<std::string_view> writes, reads;
};
void add_registers(std::string_view text, std::vector<std::string_view>& to) {
  for (size_t at = text.find('%'); at != text.npos; at = text.find('%', at + 1)) {
    const size_t end = text.find_first_of(" ,;|]}+)", at);
    to.push_back(text.substr(at, end == text.npos ? end : end - at));
  }
}
Registers registers_of(std::string_view ptx, Registers out) {
  out.writes.clear();
  out.reads.clear();
  if (ptx.starts_with('@')) {
    const size_t end = std::min(ptx.find(' '), ptx.size());
    add_registers(ptx.substr(0, end), out.reads);
    ptx = ptx.substr(std::min(end + 1, ptx.size()));
  }
  const size_t begin = ptx.find(' ');
  if (begin == ptx.npos) return out;
  std::string_view operands = ptx.substr(begin + 1);
  if (!operands.starts_with('[')) {
    const bool vector = operands.starts_with('{');
    size_t end = operands.find(vector ? "}" : ",");
    if (end == operands.npos) end = operands.size();
    add_registers(operands.substr(0, end), out.writes);
    operands = operands.substr(end);
  }
  add_registers(operands, out.reads);
  return out;
}

double latency_of(const CounterInstruction& instruction, const CounterSite& site,
                  const Latencies& clocks) {
  const auto& counts = site.counts;
  if (counts[Metric::global_atom_requests]) return clocks.atomic;
  if (counts[Metric::global_ld_requests]) return clocks.global;
  if (counts[Metric::shared_ld_requests] || counts[Metric::shared_atom_requests])
    return clocks.shared;
  if (instruction.kind == "exchange") return clocks.exchange;
  if (instruction.kind == "matrix") return clocks.matrix;
  return clocks.arithmetic;
}

// Code that the same warps run from its first instruction to its last.
struct Stretch {
  struct Part {
    const CounterInstruction* instruction = nullptr;
    const CounterSite* site = nullptr;
  };
  std::vector<Part> parts;
};

// A division is many instructions, most of them for numbers near the ends of the range, which few
// kernels have: what an instruction of PTX runs as a rule is less.
constexpr double kMostOfOne = 12;

// How many instructions the GPU issues for those of a stretch, each time it runs. ptxas may unroll
// a loop, which shows as several copies of most lines: those run so much less often.
double issued_by(const Stretch& stretch) {
  std::vector<uint32_t> copies;
  for (const Stretch::Part& part : stretch.parts) {
    if (!part.site->sass_instructions) return times_of(stretch.parts.size());
    if (*part.site->sass_instructions) copies.push_back(*part.site->sass_instructions);
  }
  if (copies.empty()) return 0;
  const auto middle = copies.begin() + static_cast<std::ptrdiff_t>(copies.size() / 2);
  std::nth_element(copies.begin(), middle, copies.end());
  double all = 0;
  for (const uint32_t found : copies)
    all += std::min(kMostOfOne, static_cast<double>(found) / static_cast<double>(*middle));
  return all;
}

// Clocks from the first instruction to the last result. After a barrier nothing goes on before all
// that came earlier has ended.
double longest_chain(const Stretch& stretch, const Latencies& clocks) {
  std::unordered_map<std::string_view, double> ready;
  double from = 0, last = 0;
  Registers used;
  for (const Stretch::Part& part : stretch.parts) {
    used = registers_of(part.instruction->ptx, std::move(used));
    double begin = from;
    for (const std::string_view reg : used.reads) {
      const auto found = ready.find(reg);
      if (found != ready.end()) begin = std::max(begin, found->second);
    }
    if (part.instruction->kind == "sync") {
      from = last = std::max(begin, last) + clocks.barrier;
      continue;
    }
    const double end = begin + latency_of(*part.instruction, *part.site, clocks);
    for (const std::string_view reg : used.writes) ready[reg] = end;
    last = std::max(last, used.writes.empty() ? begin + 1 : end);
  }
  return last;
}

}  // namespace

Chain chain_of(const results::CounterLaunch& launch, const Programs& programs,
               const Latencies& latencies) {
  Chain out;
  Stretch now;
  uint64_t times = 0, program = 0;
  const auto end = [&] {
    if (now.parts.empty()) return;
    const double issued = issued_by(now);
    out.instructions += times_of(times) * issued;
    // A warp issues one instruction per clock at best.
    out.clocks += times_of(times) * std::max(longest_chain(now, latencies), issued);
    now.parts.clear();
  };
  for (const CounterSite& site : launch.sites) {
    const auto found = programs.find(site.program);
    if (found == programs.end()) continue;
    const auto& instructions = found->second->instructions;
    if (site.instruction >= instructions.size()) continue;
    const uint64_t ran = site.counts[Metric::inst_executed];
    if (site.program != program || ran != times) end();
    program = site.program;
    times = ran;
    now.parts.push_back({&instructions[site.instruction], &site});
    if (site.counts[Metric::branches]) end();
  }
  end();
  return out;
}

}  // namespace kiln::counters
