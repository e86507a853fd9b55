// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/bench/bench_bound.h"

namespace kiln::cli {

Status add_bound(const OpToCount& call, const std::string& gpu, Context& context,
                 results::BenchResult& result) {
  const std::string& measured = result.device.name;
  TRY(const counters::Gpu* const of, !gpu.empty()         ? counters::find_gpu(gpu)
                                     : result.on_engine() ? counters::find_gpu("H200")
                                                          : counters::gpu_of_device(measured));
  context.doing("counting one call on the engine");
  TRY(const results::CounterReport report, count_op(call, *of, context));
  results::BenchBound bound;
  bound.gpu = of->name;
  double longest = 0;
  for (const results::LaunchReport& launch : report.launches) {
    if (launch.bound.limits.empty()) continue;
    const results::Limit& limit = launch.bound.limits.front();
    bound.us += limit.us;
    if (limit.us <= longest) continue;
    longest = limit.us;
    bound.by = limit.resource;
    bound.work = limit.work;
  }
  result.bound = std::move(bound);
  return {};
}

}  // namespace kiln::cli
