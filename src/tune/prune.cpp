// SPDX-License-Identifier: Apache-2.0
// Which variants need not be measured?
#include "tune/prune.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "inspect/analysis.h"
#include "inspect/occupancy.h"

namespace kiln::tune {

namespace {

// Blocks of an unknown size are taken to be this large.
constexpr uint32_t kAssumedThreads = 256;

Result<int64_t> value_of(const Expression& expression, const std::vector<std::string>& defines) {
  return expression.value([&](std::string_view name) -> std::optional<int64_t> {
    // The last one counts, as for a compiler.
    for (size_t i = defines.size(); i-- > 0;) {
      const std::string& define = defines[i];
      if (define == name) return 1;
      if (define.size() > name.size() && define.starts_with(name) && define[name.size()] == '=')
        return text::to_int(std::string_view(define).substr(name.size() + 1));
    }
    return std::nullopt;
  });
}

// Code of the same major version runs on every later minor one; an 'a' variant on its own alone.
bool serves(const inspect::KernelRow& row, uint32_t compute) {
  return row.variant == 'a' ? row.arch == compute
                            : row.arch / 10 == compute / 10 && row.arch <= compute;
}

bool is_better(const inspect::KernelRow& row, const inspect::KernelRow& than) {
  return std::pair(row.arch, row.variant != 0) > std::pair(than.arch, than.variant != 0);
}

std::vector<const inspect::KernelRow*> kernels_for(const inspect::KernelList& list,
                                                   uint32_t compute, const std::string& part) {
  const inspect::KernelRow* best = nullptr;
  for (const inspect::KernelRow& row : list.rows)
    if ((compute == 0 || serves(row, compute)) && (!best || is_better(row, *best))) best = &row;
  std::vector<const inspect::KernelRow*> found;
  inspect::Demangler demangle;
  for (const inspect::KernelRow& row : list.rows)
    if (best && row.arch == best->arch && row.variant == best->variant &&
        (part.empty() || demangle(row.name).find(part) != std::string::npos))
      found.push_back(&row);
  return found;
}

}  // namespace

Json to_json(const CodeFacts& facts) {
  if (facts.kernels == 0) return Json::object();
  Json json{{"registers", facts.registers},
            {"spill_bytes", facts.spill_bytes},
            {"shared_bytes", facts.shared_bytes}};
  if (facts.threads) json["threads"] = facts.threads;
  if (facts.blocks >= 0) {
    json["blocks"] = facts.blocks;
    json["occupancy"] = facts.occupancy;
    json["limiter"] = facts.limiter;
  }
  return json;
}

// A variant that spills or leaves the GPU half empty is seldom the fastest, and its binary says so
// without a run.
Result<CodeFacts> code_facts(const sys::fs::path& library, uint32_t compute, const Rules& rules,
                             const std::vector<std::string>& defines) {
  CodeFacts facts;
  int64_t dynamic = 0, threads = 0;
  if (rules.shared) {
    TRY(dynamic, value_of(*rules.shared, defines));
  }
  if (rules.threads) {
    TRY(threads, value_of(*rules.threads, defines));
  }
  TRY(std::vector<inspect::Artifact> files,
      inspect::open_file(library, library.filename().string()));
  TRY(const inspect::Analysis analysis, inspect::analyse(std::move(files.front()), {}));
  for (const inspect::KernelRow* row : kernels_for(analysis.kernels, compute, rules.kernel)) {
    facts.kernels++;
    const int64_t shared = static_cast<int64_t>(row->user_shared_bytes()) + dynamic;
    const uint32_t block =
        threads > 0 ? static_cast<uint32_t>(threads) : row->block_threads(kAssumedThreads);
    facts.registers = std::max<int64_t>(facts.registers, row->resources.registers);
    facts.spill_bytes = std::max<int64_t>(
        facts.spill_bytes,
        static_cast<int64_t>(row->resources.spill_store_bytes + row->resources.spill_load_bytes));
    facts.shared_bytes = std::max(facts.shared_bytes, shared);
    facts.threads = std::max<int64_t>(facts.threads, block);
    const inspect::GpuLimits* gpu = inspect::limits_of(compute ? compute : row->arch);
    if (!gpu) continue;
    const inspect::Occupancy fit = inspect::occupancy(
        *gpu,
        {block, row->resources.registers, static_cast<uint64_t>(std::max<int64_t>(0, shared))});
    if (facts.blocks >= 0 && facts.blocks <= fit.blocks) continue;
    facts.blocks = fit.blocks;
    facts.occupancy = fit.fraction;
    facts.limiter = inspect::name_of(fit.limiter);
    if (shared > gpu->block_shared_bytes)
      facts.limiter = fmt::format("shared memory, {} bytes per block", gpu->block_shared_bytes);
  }
  return facts;
}

std::string why_pruned(const CodeFacts& facts, const Rules& rules) {
  if (facts.kernels == 0) return "";
  if (facts.blocks == 0 && facts.limiter.starts_with("shared memory, "))
    return fmt::format("a block needs {} bytes of shared memory, the GPU has {}",
                       facts.shared_bytes, facts.limiter.substr(15));
  if (facts.blocks == 0)
    return fmt::format("no block of {} threads with {} registers each fits on a multiprocessor",
                       facts.threads, facts.registers);
  if (facts.blocks > 0 && facts.blocks < rules.least_blocks)
    return fmt::format("only {} blocks fit on a multiprocessor, limited by {}", facts.blocks,
                       facts.limiter);
  if (rules.most_spill_bytes >= 0 && facts.spill_bytes > rules.most_spill_bytes)
    return fmt::format("{} bytes of registers spill to local memory", facts.spill_bytes);
  if (rules.most_registers > 0 && facts.registers > rules.most_registers)
    return fmt::format("{} registers per thread", facts.registers);
  return "";
}

}  // namespace kiln::tune
