// SPDX-License-Identifier: Apache-2.0
#include "watch/compiled.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/compile/facts.h"
#include "engine/machine/fault.h"
#include "report/compiled.h"

namespace kiln::watch {
namespace {

results::CompiledKernel result_of(const engine::KernelFacts& kernel) {
  const engine::CompiledFacts& facts = kernel.facts;
  results::CompiledKernel out;
  out.kernel = engine::demangled(kernel.name);
  out.stretches = facts.stretches;
  out.compiled = facts.compiled;
  out.entered = static_cast<int64_t>(facts.entered);
  out.missed = static_cast<int64_t>(facts.missed);
  out.code_bytes = static_cast<int64_t>(facts.code_bytes);
  out.compiling_ms = static_cast<double>(facts.compiling_ns) / 1e6;
  out.refused = facts.refused > 0;
  for (const auto& [opcode, count] : kernel.interpreted) out.interpreted.push_back({opcode, count});
  std::ranges::stable_sort(out.interpreted, std::ranges::greater(),
                           &results::InterpretedKind::count);
  return out;
}

}  // namespace

void report_compiled() {
  static const pid_t process = getpid();
  engine::keep_facts();
  std::atexit([] {
    if (process != getpid()) return;
    std::fflush(stdout);
    for (const engine::KernelFacts& kernel : engine::kept_facts())
      std::fputs(report::compiled_text(result_of(kernel)).c_str(), stderr);
  });
}

}  // namespace kiln::watch
