// SPDX-License-Identifier: Apache-2.0
// How does the table of a file's kernels read on a terminal? By kernel, then by architecture.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/units.h"
#include "report/inspect.h"
#include "report/inspect/words.h"

namespace kiln::report {
namespace {

using results::KernelFacts;

// What a line of the whole table takes. A narrower terminal has no room for the occupancy, which
// then takes the next line.
constexpr int kWideTable = 114;

// 90 of "sm_90a": as text, sm_100 would come before sm_90.
uint32_t arch_number(std::string_view arch) {
  const std::string_view digits = arch.substr(arch.find('_') + 1);
  uint32_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

std::string occupancy_text(const KernelFacts& kernel) {
  if (!kernel.fit) return "?";
  if (kernel.fit->blocks == 0) return "does not fit";
  return fmt::format("{:>3.0f} %  {} x {}, {}", kernel.fit->fraction * 100, kernel.fit->blocks,
                     kernel.fit->block_threads, kernel.fit->limiter);
}

struct KernelCells {
  std::string arch, registers, shared, stack, spills, constant, parameters, barriers, bounds,
      instructions;
};

std::string kernel_line(const KernelCells& cells, bool narrow) {
  const auto line =
      [&](fmt::format_string<const std::string&, const std::string&, const std::string&,
                             const std::string&, const std::string&, const std::string&,
                             const std::string&, const std::string&, const std::string&,
                             const std::string&>
              form) {
        return fmt::format(form, cells.arch, cells.registers, cells.shared, cells.stack,
                           cells.spills, cells.constant, cells.parameters, cells.barriers,
                           cells.bounds, cells.instructions);
      };
  return narrow ? line("  {:<7}{:>5}{:>13}{:>6}{:>12}{:>6}{:>7}{:>4}{:>11}{:>7}")
                : line("  {:<8}{:>5}{:>15}{:>7}{:>14}{:>7}{:>8}{:>5}{:>12}{:>8}");
}

KernelCells cells_of(const KernelFacts& kernel) {
  const auto number = [](uint64_t value) { return std::to_string(value); };
  return {kernel.arch,
          number(kernel.registers),
          kernel.reserved_shared_bytes
              ? fmt::format("{} + {}", kernel.shared_bytes, kernel.reserved_shared_bytes)
              : number(kernel.shared_bytes),
          number(kernel.stack_bytes),
          fmt::format("{}/{}", kernel.spill_store_bytes, kernel.spill_load_bytes),
          number(kernel.constant_bytes),
          number(kernel.parameter_bytes),
          number(kernel.barriers),
          bounds_text(kernel),
          number(kernel.instructions)};
}

// In the order of the first row of each kernel.
std::vector<const KernelFacts*> by_kernel(const std::vector<KernelFacts>& kernels,
                                          size_t& functions) {
  std::map<std::string_view, size_t> first_seen;
  std::vector<const KernelFacts*> rows;
  for (const KernelFacts& kernel : kernels) {
    first_seen.emplace(kernel.symbol, first_seen.size());
    rows.push_back(&kernel);
  }
  const auto place = [&](const KernelFacts* kernel) {
    return std::pair(first_seen[kernel->symbol], arch_number(kernel->arch));
  };
  std::ranges::stable_sort(rows, {}, place);
  functions = first_seen.size();
  return rows;
}

}  // namespace

std::string kernels_text(const std::vector<KernelFacts>& kernels,
                         const std::vector<std::string>& faults, const InspectStyle& style) {
  size_t functions = 0;
  const std::vector<const KernelFacts*> rows = by_kernel(kernels, functions);
  std::string out = fmt::format(
      "kernels: {}{}\n", grouped(functions),
      rows.size() == functions ? ""
                               : fmt::format(" ({} with all architectures)", grouped(rows.size())));
  const bool narrow = style.columns > 0 && style.columns < kWideTable;
  if (!rows.empty())
    out += style.dim(kernel_line({"arch", "regs", "shared", "stack", "spill st/ld", "const",
                                  "params", "bar", "bounds", "instr"},
                                 narrow) +
                     (narrow ? "" : "  occupancy")) +
           "\n";
  const std::string* last = nullptr;
  for (const KernelFacts* row : rows) {
    if (!last || *last != row->symbol)
      out += style.bold(style.verbose ? row->name : fitted_name(row->name, style.columns)) + "\n";
    last = &row->symbol;
    out += kernel_line(cells_of(*row), narrow) + (narrow ? "\n         occupancy " : "  ") +
           occupancy_text(*row) + "\n";
    if (style.verbose)
      out += style.dim(
          listed_items(narrow ? "         " : "          ", mix_items(*row), style.columns));
  }
  for (const std::string& fault : faults) out += fmt::format("  damaged: {}\n", fault);
  return out;
}

}  // namespace kiln::report
