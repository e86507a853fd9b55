// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/compiled.h"

namespace kiln::report {

std::string kinds_text(const std::vector<results::InterpretedKind>& kinds) {
  constexpr size_t kNamed = 6;
  std::string out;
  for (size_t i = 0; i < std::min(kinds.size(), kNamed); ++i) {
    out += fmt::format("{}{} x {}", i ? ", " : "", grouped(static_cast<uint64_t>(kinds[i].count)),
                       kinds[i].opcode);
  }
  if (kinds.size() > kNamed) out += fmt::format(" and {} other kinds", kinds.size() - kNamed);
  return out;
}

std::string compiled_text(const results::CompiledKernel& kernel) {
  std::string out = fmt::format(
      "compiled: {}: {} of {} stretches, {} bytes in {:.2f} ms; entered {} times, {} of them "
      "interpreted\n",
      kernel.kernel, kernel.compiled, kernel.stretches,
      grouped(static_cast<uint64_t>(kernel.code_bytes)), kernel.compiling_ms,
      grouped(static_cast<uint64_t>(kernel.entered)),
      grouped(static_cast<uint64_t>(kernel.missed)));
  if (kernel.refused)
    out += "  the system refused executable memory: these stretches were interpreted\n";
  if (!kernel.interpreted.empty())
    out += fmt::format("  interpreted: {}\n", kinds_text(kernel.interpreted));
  return out;
}

}  // namespace kiln::report
