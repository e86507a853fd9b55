// SPDX-License-Identifier: Apache-2.0
// How is a process run whose kernels are counted? On the engine, with a file for the counts that
// goes away again.
#pragma once

#include <optional>

#include "cli/command.h"
#include "counters/gpus.h"
#include "results/counter_report.h"
#include "sys/process.h"

namespace kiln::cli {

struct CountedProcess {
  sys::ProcessResult done;
  std::optional<std::string> counts;  // as results::read_counter_run reads them
};
// `schedule`: the order of blocks and warps, as KILN_ENGINE_SCHEDULE has it.
Result<CountedProcess> run_counted(sys::ProcessSpec spec, const counters::Gpu& gpu,
                                   uint64_t schedule);

// One call of an op of a library that kiln built.
struct OpToCount {
  std::filesystem::path library;
  std::string op;
  std::vector<std::string> arguments;
  uint64_t seed = 0;
  double limit_s = 0;  // 0: none
};
Result<results::CounterReport> count_op(const OpToCount& call, const counters::Gpu& gpu,
                                        Context& context);

}  // namespace kiln::cli
