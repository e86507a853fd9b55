// SPDX-License-Identifier: Apache-2.0
// How does a person read the order of `kiln tune --predict`?
#include <fmt/format.h>

#include "base/text.h"
#include "report/tune.h"

namespace kiln::report {

std::string prediction_text(const results::TunePrediction& prediction) {
  std::string out =
      fmt::format("{}({}) on {}, predicted from counters; nothing was timed\n", prediction.op,
                  text::join(prediction.arguments, ", "), prediction.gpu);
  out += fmt::format("  {:>12} {:>12}  {:<22} {}\n", "predicted", "bound", "limited by", "defines");
  for (const results::PredictedVariant& one : prediction.variants) {
    const std::string defines = text::join(one.defines, " ");
    if (!one.why.empty())
      out +=
          fmt::format("  {:>12} {:>12}  {:<22} {}\n    {}\n", "-", "-", "failed", defines, one.why);
    else
      out += fmt::format("  {:>12} {:>12}  {:<22} {}\n", fine_time(one.us), fine_time(one.bound_us),
                         one.limited_by, defines);
  }
  return out;
}

}  // namespace kiln::report
