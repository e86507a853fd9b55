// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/tune/tune_predict.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/build_options.h"
#include "cli/commands/counted_op.h"

namespace kiln::cli {
namespace {

using results::PredictedVariant;

constexpr uint64_t kMostPredicted = 1000;

// The sum over the launches of one call; the resource is that of the longest launch.
void add_up(const results::CounterReport& report, PredictedVariant& out) {
  double longest = -1;
  for (const results::LaunchReport& launch : report.launches) {
    const results::Bound& bound = launch.bound;
    out.us += bound.predicted_us;
    if (bound.limits.empty()) continue;
    out.bound_us += bound.limits.front().us;
    if (bound.predicted_us > longest) {
      longest = bound.predicted_us;
      out.limited_by = bound.predicted_by;
    }
  }
}

std::string summary_of(const std::string& text) { return text.substr(0, text.find('\n')); }

Status predict(const TunePlan& plan, const PredictRequest& asked, const counters::Gpu& gpu,
               Context& context, PredictedVariant& variant) {
  build::Request request = asked.request;
  request.defines.insert(request.defines.end(), variant.defines.begin(), variant.defines.end());
  // PTX is what the engine runs, the cubin has registers and occupancy.
  if (request.arch.empty()) request.arch = gpu.arch_text() + "+PTX";
  TRY(const build::Outcome built, build_for(context, request));
  TRY(const results::CounterReport report,
      count_op({built.file, plan.op, plan.arguments, asked.seed, asked.limit_s}, gpu, context));
  add_up(report, variant);
  return {};
}

}  // namespace

Result<results::TunePrediction> predict_variants(const TunePlan& plan, const PredictRequest& asked,
                                                 Context& context) {
  TRY(const counters::Gpu* const gpu, counters::find_gpu(asked.gpu));
  results::TunePrediction out{plan.op, std::string(gpu->name), plan.arguments, {}};
  for (uint64_t number = 0; number < std::min(plan.space.size(), kMostPredicted); ++number) {
    const tune::Point point = plan.space.point(number);
    TRY(const std::string forbidden, plan.space.forbidden_by(point));
    if (!forbidden.empty()) continue;
    PredictedVariant variant;
    variant.defines = plan.space.defines(point);
    context.doing("counting " + plan.space.text(point));
    if (Status done = predict(plan, asked, *gpu, context, variant); !done) {
      // A wrong op or argument is wrong in every variant.
      if (done.error().fault != Fault::Work) return std::move(done.error());
      variant.why = summary_of(done.error().why.empty() ? done.error().what : done.error().why);
    }
    out.variants.push_back(std::move(variant));
  }
  std::ranges::stable_sort(out.variants, {}, [](const PredictedVariant& one) {
    return std::pair(!one.why.empty(), one.us);
  });
  return out;
}

}  // namespace kiln::cli
