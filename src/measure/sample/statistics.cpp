// SPDX-License-Identifier: Apache-2.0
#include "measure/sample/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln::measure {
namespace {

// SplitMix64: small, and the same on every machine.
struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = (state += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  size_t below(size_t bound) {
    return static_cast<size_t>((static_cast<__uint128_t>(next()) * bound) >> 64);
  }
};

double median_in_place(std::vector<double>& values) {
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(half), values.end());
  if (values.size() % 2) return values[half];
  return (values[half] +
          *std::max_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(half))) /
         2;
}

Interval percentile(std::vector<double>& estimates, double confidence) {
  std::sort(estimates.begin(), estimates.end());
  const double tail = (1 - confidence) / 2;
  return {quantile(estimates, tail), quantile(estimates, 1 - tail)};
}

void resample(Samples from, std::vector<double>& to, Random& random, size_t block = 1) {
  size_t at = 0;
  for (size_t i = 0; i < to.size(); ++i, ++at) {
    if (i % block == 0) at = random.below(from.size());
    if (at == from.size()) at = 0;
    to[i] = from[at];
  }
}

}  // namespace

std::vector<double> sorted(Samples samples) {
  std::vector<double> out(samples.begin(), samples.end());
  std::sort(out.begin(), out.end());
  return out;
}

double quantile(Samples ordered, double q) {
  const double at = q * static_cast<double>(ordered.size() - 1);
  const auto below = static_cast<size_t>(at);
  if (below + 1 >= ordered.size()) return ordered.back();
  return ordered[below] + (at - static_cast<double>(below)) * (ordered[below + 1] - ordered[below]);
}

double median(Samples samples) {
  if (samples.empty()) return 0;
  std::vector<double> values(samples.begin(), samples.end());
  return median_in_place(values);
}

double binomial_half_cdf(int64_t k, int64_t count) {
  if (k < 0) return 0;
  if (k >= count) return 1;
  const double log_all = static_cast<double>(count) * std::log(2.0);
  double sum = 0;
  for (int64_t i = 0; i <= k; ++i)
    sum += std::exp(std::lgamma(static_cast<double>(count) + 1) -
                    std::lgamma(static_cast<double>(i) + 1) -
                    std::lgamma(static_cast<double>(count - i) + 1) - log_all);
  return std::min(1.0, sum);
}

namespace {

// The least k with P(X <= k) >= tail, from terms that are added once: O(count).
int64_t binomial_half_quantile(double tail, int64_t count) {
  const double n = static_cast<double>(count);
  const double log_all = n * std::log(2.0);
  // Far from the middle the terms are below any double: begin where they count.
  auto begin = static_cast<int64_t>(n / 2 - 10 * std::sqrt(n) - 10);
  begin = std::max<int64_t>(0, begin);
  double sum = 0;
  for (int64_t i = begin; i <= count; ++i) {
    const double x = static_cast<double>(i);
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) - log_all);
    if (sum >= tail) return i;
  }
  return count;
}

}  // namespace

Interval median_interval(Samples ordered, double confidence) {
  if (ordered.empty()) return {};
  const auto count = static_cast<int64_t>(ordered.size());
  const int64_t k = binomial_half_quantile((1 - confidence) / 2, count);
  if (k < 1) return {ordered.front(), ordered.back()};
  return {ordered[static_cast<size_t>(k - 1)], ordered[static_cast<size_t>(count - k)]};
}

double relative_half_width(Samples ordered, double confidence) {
  const double middle = quantile(ordered, 0.5);
  if (middle <= 0) return 0;
  const Interval interval = median_interval(ordered, confidence);
  return (interval.high - interval.low) / 2 / middle;
}

Outliers tukey(Samples ordered) {
  Outliers found;
  if (ordered.empty()) return found;
  const double first = quantile(ordered, 0.25), third = quantile(ordered, 0.75),
               range = third - first;
  found.low_fence = first - 1.5 * range;
  found.high_fence = third + 1.5 * range;
  for (double value : ordered) {
    found.low += value < found.low_fence;
    found.high += value > found.high_fence;
    found.far += value < first - 3 * range || value > third + 3 * range;
  }
  return found;
}

double trimmed_mean(Samples ordered) {
  if (ordered.empty()) return 0;
  const size_t cut = ordered.size() / 10;
  const Samples middle = ordered.subspan(cut, ordered.size() - 2 * cut);
  return std::accumulate(middle.begin(), middle.end(), 0.0) / static_cast<double>(middle.size());
}

bool has_two_modes(Samples ordered) {
  constexpr size_t kFewest = 100;
  // Of a normal distribution a tenth; and a valley narrower than half a percent changes nothing.
  constexpr double kShare = 0.3, kLeast = 0.005;
  if (ordered.size() < kFewest) return false;
  const double valley = quantile(ordered, 0.55) - quantile(ordered, 0.45);
  return valley > kShare * (quantile(ordered, 0.9) - quantile(ordered, 0.1)) &&
         valley > kLeast * quantile(ordered, 0.5);
}

Summary summarise(Samples samples) {
  Summary summary;
  if (samples.empty()) return summary;
  const std::vector<double> ordered = sorted(samples);
  summary.count = static_cast<int64_t>(ordered.size());
  summary.median = quantile(ordered, 0.5);
  summary.least = ordered.front();
  summary.greatest = ordered.back();
  summary.mean =
      std::accumulate(ordered.begin(), ordered.end(), 0.0) / static_cast<double>(ordered.size());
  summary.trimmed = trimmed_mean(ordered);
  summary.p05 = quantile(ordered, 0.05);
  summary.p25 = quantile(ordered, 0.25);
  summary.p75 = quantile(ordered, 0.75);
  summary.p95 = quantile(ordered, 0.95);
  summary.interval = median_interval(ordered);
  summary.outliers = tukey(ordered);
  return summary;
}

size_t neighbours(size_t count) {
  return std::max<size_t>(1, static_cast<size_t>(std::cbrt(static_cast<double>(count))));
}

Ratio paired_ratio(Samples a, Samples b, uint64_t seed, int resamples, double confidence,
                   size_t block) {
  std::vector<double> logs(a.size());
  for (size_t i = 0; i < a.size(); ++i) logs[i] = std::log(a[i] / b[i]);
  Random random{seed};
  std::vector<double> drawn(logs.size()), estimates(static_cast<size_t>(resamples));
  for (double& estimate : estimates) {
    resample(logs, drawn, random, block);
    estimate = median_in_place(drawn);
  }
  const Interval interval = percentile(estimates, confidence);
  return {std::exp(median(logs)), {std::exp(interval.low), std::exp(interval.high)}};
}

Ratio unpaired_ratio(Samples a, Samples b, uint64_t seed, int resamples, double confidence) {
  Random random{seed};
  std::vector<double> from_a(a.size()), from_b(b.size()), estimates(static_cast<size_t>(resamples));
  for (double& estimate : estimates) {
    resample(a, from_a, random);
    resample(b, from_b, random);
    estimate = std::log(median_in_place(from_a) / median_in_place(from_b));
  }
  const Interval interval = percentile(estimates, confidence);
  return {median(a) / median(b), {std::exp(interval.low), std::exp(interval.high)}};
}

double drift(Samples samples) {
  const size_t count = samples.size();
  if (count < 3) return 0;
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t x, size_t y) { return samples[x] < samples[y]; });
  std::vector<double> rank(count);
  for (size_t i = 0; i < count;) {  // equal samples share the mean of their ranks
    size_t end = i;
    while (end < count && samples[order[end]] == samples[order[i]]) ++end;
    for (size_t k = i; k < end; ++k) rank[order[k]] = static_cast<double>(i + end - 1) / 2;
    i = end;
  }
  const double middle = static_cast<double>(count - 1) / 2;
  double products = 0, squares_rank = 0, squares_time = 0;
  for (size_t i = 0; i < count; ++i) {
    const double x = rank[i] - middle, t = static_cast<double>(i) - middle;
    products += x * t;
    squares_rank += x * x;
    squares_time += t * t;
  }
  return squares_rank > 0 ? products / std::sqrt(squares_rank * squares_time) : 0;
}

}  // namespace kiln::measure
