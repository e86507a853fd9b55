// SPDX-License-Identifier: Apache-2.0
// How fast will a configuration be that was not tried yet?
//
// The covariance is half that of a sum of one effect a value, half that of all values together
// (interactions), each falling by a quarter a step on an axis. These are fixed: fitted to the few
// times there are, by likelihood, they did worse on the recorded spaces (docs/design/tune.md).
#include "tune/surrogate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace kiln::tune {

namespace {
constexpr double kDecay = 0.3;     // a step on an axis leaves exp(-0.3) = 0.74
constexpr double kSumShare = 0.5;  // of the covariance
constexpr double kNoise = 1e-3;  // of the variance: about what two timings of one variant differ by
constexpr double kLeastVariance = 1e-8;  // of log times: below lies the clock's own resolution
}  // namespace

Surrogate::Surrogate(const Space& space, std::vector<Point> points, std::vector<double> log_us,
                     const std::vector<Point>& pending)
    : axes_(space.axes().size()), log_us_(std::move(log_us)) {
  size_t longest = 1;
  for (const Axis& axis : space.axes()) longest = std::max(longest, axis.values.size());
  for (size_t distance = 0; distance < longest; distance++)
    by_distance_.push_back(std::exp(-kDecay * static_cast<double>(distance)));
  for (const double one : log_us_) mean_ += one / static_cast<double>(log_us_.size());
  for (Point& point : points) add(std::move(point));
  solve();
  if (pending.empty()) return;
  // The deviations are to stay those of what was timed.
  std::vector<double> expected;
  for (const Point& point : pending) expected.push_back(guess(point).log_us);
  const double variance = variance_;
  log_us_.insert(log_us_.end(), expected.begin(), expected.end());
  for (const Point& point : pending) add(point);
  solve();
  variance_ = variance;
}

double Surrogate::covariance(const Point& a, const Point& b) const {
  double sum = 0, product = 1;
  for (size_t axis = 0; axis < axes_; axis++) {
    const double alike = by_distance_[a[axis] > b[axis] ? a[axis] - b[axis] : b[axis] - a[axis]];
    sum += alike;
    product *= alike;
  }
  return kSumShare * sum / static_cast<double>(axes_) + (1 - kSumShare) * product;
}

void Surrogate::add(Point point) {
  std::vector<double> row;
  for (size_t i = 0; i < points_.size(); i++) {
    double rest = covariance(point, points_[i]);
    for (size_t k = 0; k < i; k++) rest -= row[k] * lower_[i][k];
    row.push_back(rest / lower_[i][i]);
  }
  double rest = 1 + kNoise;
  for (const double one : row) rest -= one * one;
  row.push_back(std::sqrt(std::max(rest, kNoise)));
  lower_.push_back(std::move(row));
  points_.push_back(std::move(point));
}

void Surrogate::solve() {
  const size_t count = points_.size();
  weights_.assign(count, 0);
  double squares = 0;
  for (size_t i = 0; i < count; i++) {
    double rest = log_us_[i] - mean_;
    for (size_t k = 0; k < i; k++) rest -= lower_[i][k] * weights_[k];
    weights_[i] = rest / lower_[i][i];
    squares += weights_[i] * weights_[i];
  }
  variance_ = std::max(squares / static_cast<double>(count), kLeastVariance);
  for (size_t i = count; i-- > 0;) {
    for (size_t k = i + 1; k < count; k++) weights_[i] -= lower_[k][i] * weights_[k];
    weights_[i] /= lower_[i][i];
  }
}

Surrogate::Guess Surrogate::guess(const Point& point) const {
  double mean = mean_, rest = 1 + kNoise;
  std::vector<double> known(points_.size());
  for (size_t i = 0; i < points_.size(); i++) {
    known[i] = covariance(point, points_[i]);
    mean += known[i] * weights_[i];
    const std::vector<double>& row = lower_[i];
    for (size_t k = 0; k < i; k++) known[i] -= row[k] * known[k];
    known[i] /= row[i];
    rest -= known[i] * known[i];
  }
  return {mean, std::sqrt(std::max(rest, kNoise) * variance_)};
}

double Surrogate::hope(const Point& point, double best_log_us) const {
  const Guess expected = guess(point);
  const double gain = best_log_us - expected.log_us, z = gain / expected.deviation;
  const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return gain * below + expected.deviation * density;
}

}  // namespace kiln::tune
