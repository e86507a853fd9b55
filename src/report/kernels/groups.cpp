// SPDX-License-Identifier: Apache-2.0
#include "report/kernels/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/text.h"
#include "report/inspect/words.h"
#include "report/kernels/names.h"

namespace kiln::report {
namespace {

using results::KernelFacts;

struct FunctionGroup {
  std::string name;
  std::vector<size_t> members;  // indices; what a reader looks for first comes first
};

std::string fit_text(const std::optional<results::Fit>& fit) {
  if (!fit) return "?";
  if (fit->blocks == 0) return "does not fit";
  return fmt::format("{:.0f} % ({} x {}, {})", fit->fraction * 100, fit->blocks, fit->block_threads,
                     fit->limiter);
}

// The order is that of `columns` in look/inspect.js.
Json instance_row(const KernelFacts& kernel) {
  const KernelName name = split_name(kernel.name);
  return Json::array({name.arguments, name.parameters, kernel.listing, kernel.arch,
                      kernel.registers, fit_text(kernel.fit), bounds_text(kernel),
                      kernel.shared_bytes, kernel.reserved_shared_bytes, kernel.stack_bytes,
                      kernel.spill_store_bytes, kernel.spill_load_bytes, kernel.constant_bytes,
                      kernel.parameter_bytes, kernel.barriers, kernel.instructions,
                      text::join(mix_items(kernel), ", ")});
}

// Least and greatest of a figure, over the members.
template <class Value>
Json range_of(const std::vector<KernelFacts>& kernels, const FunctionGroup& group, Value value) {
  uint64_t low = ~uint64_t{0}, high = 0;
  for (const size_t member : group.members) {
    low = std::min<uint64_t>(low, value(kernels[member]));
    high = std::max<uint64_t>(high, value(kernels[member]));
  }
  return Json::array({low, high});
}

uint64_t percent_of(const KernelFacts& kernel) {
  return kernel.fit ? static_cast<uint64_t>(std::lround(kernel.fit->fraction * 100)) : 0;
}

Json sums_of(const std::vector<KernelFacts>& kernels, const FunctionGroup& group) {
  std::set<std::string> archs;
  for (const size_t member : group.members) archs.insert(kernels[member].arch);
  const auto range = [&](auto value) { return range_of(kernels, group, value); };
  return {{"archs", text::join(std::vector<std::string>(archs.begin(), archs.end()), ", ")},
          {"registers", range([](const KernelFacts& one) { return one.registers; })},
          {"occupancy", range(percent_of)},
          {"shared", range([](const KernelFacts& one) { return one.shared_bytes; })},
          {"stack", range([](const KernelFacts& one) { return one.stack_bytes; })},
          {"spills", range([](const KernelFacts& one) {
             return one.spill_store_bytes + one.spill_load_bytes;
           })},
          {"instructions", range([](const KernelFacts& one) { return one.instructions; })}};
}

std::vector<FunctionGroup> grouped_by_function(const std::vector<KernelFacts>& kernels) {
  std::map<std::string, size_t> known;
  std::vector<FunctionGroup> out;
  for (size_t i = 0; i < kernels.size(); ++i) {
    std::string name = split_name(kernels[i].name).function;
    const auto [found, added] = known.emplace(name, out.size());
    if (added) out.push_back({std::move(name), {}});
    out[found->second].members.push_back(i);
  }
  for (FunctionGroup& group : out)
    std::ranges::stable_sort(group.members, std::ranges::greater(), [&](size_t member) {
      const KernelFacts& one = kernels[member];
      return std::tuple(one.listing >= 0, one.spill_store_bytes + one.spill_load_bytes,
                        one.registers);
    });
  return out;
}

}  // namespace

KernelGroups group_kernels(const std::vector<KernelFacts>& kernels, size_t max_bytes) {
  std::vector<FunctionGroup> groups = grouped_by_function(kernels);
  KernelGroups out;
  out.functions = groups.size();
  // Where not even the functions fit, those with most kernels stay; else the file's order.
  size_t names_bytes = 0;
  for (const FunctionGroup& group : groups) names_bytes += group.name.size() + 300;
  if (names_bytes > max_bytes)
    std::ranges::stable_sort(groups, std::ranges::greater(),
                             [](const FunctionGroup& group) { return group.members.size(); });
  size_t used = 0;
  for (const FunctionGroup& group : groups) {
    Json one{{"name", group.name},
             {"count", group.members.size()},
             {"sums", sums_of(kernels, group)},
             {"rows", Json::array({instance_row(kernels[group.members[0]])})}};
    used += dump(one).size();
    if (used > max_bytes && !out.groups.empty()) break;
    out.groups.push_back(std::move(one));
  }
  // Round by round: the second instance of each group, the third, ...
  for (size_t round = 1, added = 1; added && used < max_bytes; ++round) {
    added = 0;
    for (size_t i = 0; i < out.groups.size() && used < max_bytes; ++i) {
      if (round >= groups[i].members.size()) continue;
      Json row = instance_row(kernels[groups[i].members[round]]);
      used += dump(row).size();
      out.groups[i]["rows"].push_back(std::move(row));
      ++added;
    }
  }
  return out;
}

}  // namespace kiln::report
