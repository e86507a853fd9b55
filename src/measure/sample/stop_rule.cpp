// SPDX-License-Identifier: Apache-2.0
#include "measure/sample/stop_rule.h"

#include <algorithm>
#include <cmath>

namespace kiln::measure {
namespace {

constexpr double kSteadyWithin = 0.02;
constexpr size_t kLeastWindow = 3;
constexpr double kEnoughOfTwoModes = 2;  // times the least time

}  // namespace

Progress progress(Samples ordered, double busy_s, double elapsed_s, const Patience& patience) {
  const bool enough =
      static_cast<int64_t>(ordered.size()) >= patience.min_samples && busy_s >= patience.min_time_s;
  if (enough && relative_half_width(ordered) <= patience.precision) return Progress::Converged;
  if (busy_s >= kEnoughOfTwoModes * patience.min_time_s && has_two_modes(ordered))
    return Progress::Converged;
  return elapsed_s >= patience.max_time_s ? Progress::NotConverged : Progress::More;
}

bool is_warm(Samples in_order, double elapsed_s, const Patience& patience) {
  if (elapsed_s >= patience.max_warm_up_s) return true;
  if (elapsed_s < patience.min_warm_up_s) return false;
  const size_t window = std::min<size_t>(50, in_order.size() / 2);
  if (window < kLeastWindow) return false;
  const double last = median(in_order.last(window));
  const double before = median(in_order.subspan(in_order.size() - 2 * window, window));
  return before > 0 && std::abs(last / before - 1) <= kSteadyWithin;
}

}  // namespace kiln::measure
