// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/units.h"
#include "report/compiled.h"
#include "report/fidelity.h"

namespace kiln::report {
namespace {

std::string branches_text(const std::vector<std::string>& branches) {
  if (branches.empty()) return "no approximate value decides a branch";
  constexpr size_t kNamed = 3;
  std::string text = "approximate values decide branches at ";
  for (size_t i = 0; i < std::min(branches.size(), kNamed); ++i)
    text += (i ? ", " : "") + branches[i];
  if (branches.size() > kNamed) text += fmt::format(" and {} more", branches.size() - kNamed);
  return text;
}

}  // namespace

std::string fidelity_text(const results::Fidelity& fidelity) {
  const auto& rows = fidelity.approximate;
  const int64_t approximate =
      std::accumulate(rows.begin(), rows.end(), int64_t{0},
                      [](int64_t sum, const auto& row) { return sum + row.warps; });
  std::string out = fmt::format("fidelity: {} warp instructions: {}",
                                grouped(static_cast<uint64_t>(fidelity.instructions)),
                                approximate ? "" : "all exact\n");
  if (!approximate) return out;
  out += fmt::format("{} exact, {} approximate; {}\n",
                     grouped(static_cast<uint64_t>(fidelity.instructions - approximate)),
                     grouped(static_cast<uint64_t>(approximate)), branches_text(fidelity.branches));
  for (const auto& row : rows)
    out += fmt::format("  {} x {}: a GPU may differ by {}\n",
                       grouped(static_cast<uint64_t>(row.warps)), row.opcode, row.bound);
  return out;
}

std::string machine_code_text(const results::Fidelity& fidelity) {
  const auto& kinds = fidelity.interpreted;
  const int64_t interpreted =
      std::accumulate(kinds.begin(), kinds.end(), int64_t{0},
                      [](int64_t sum, const auto& kind) { return sum + kind.count; });
  std::string out = fmt::format(
      "compiled: {} of {} warp instructions have machine code in kernels that run long\n",
      grouped(static_cast<uint64_t>(fidelity.instructions - interpreted)),
      grouped(static_cast<uint64_t>(fidelity.instructions)));
  if (!kinds.empty()) out += fmt::format("  interpreted: {}\n", kinds_text(kinds));
  return out;
}

}  // namespace kiln::report
