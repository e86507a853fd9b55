// SPDX-License-Identifier: Apache-2.0
// What do the samples say, and how sure is that? Pure functions; tests compare them with scipy.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kiln::measure {

using Samples = std::span<const double>;

struct Interval {
  double low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

std::vector<double> sorted(Samples samples);

// Linear between neighbours, as numpy's default. `ordered` is sorted and not empty; 0 <= q <= 1.
double quantile(Samples ordered, double q);
double median(Samples samples);  // 0 for none

// P(X <= k) for X binomial with `count` trials of probability 1/2.
double binomial_half_cdf(int64_t k, int64_t count);

// Confidence interval of the median from two order statistics: no assumption about the
// distribution. The whole range where the samples are too few for the confidence (under 6 for 95
// %).
Interval median_interval(Samples ordered, double confidence = 0.95);

// Half of the interval, relative to the median.
double relative_half_width(Samples ordered, double confidence = 0.95);

struct Outliers {
  double low_fence = 0, high_fence = 0;  // Tukey: 1.5 interquartile ranges beyond the quartiles
  int64_t low = 0, high = 0;             // samples beyond them
  int64_t far = 0;                       // beyond 3 interquartile ranges
};
Outliers tukey(Samples ordered);

// Without the lowest and the highest tenth. Where times have two modes the median jumps between
// them, and this does not.
double trimmed_mean(Samples ordered);

// Two clusters of about equal size, and the median in the valley between: more samples do not
// settle it. Seen on an H200: adds of 2^24 take 51.3 or 52.8 us, and change over every millisecond.
bool has_two_modes(Samples ordered);

struct Summary {
  int64_t count = 0;
  double median = 0, least = 0, greatest = 0, mean = 0, trimmed = 0, p05 = 0, p25 = 0, p75 = 0,
         p95 = 0;
  Interval interval;  // 95 % of the median
  Outliers outliers;
};
Summary summarise(Samples samples);

// The ratio of a to b over pairs taken at the same time: exp of the median of log(a[i] / b[i]),
// with a percentile bootstrap of the pairs, `block` neighbours at a time. Equal length, not empty,
// all above 0.
struct Ratio {
  double value = 1;
  Interval interval;
};
Ratio paired_ratio(Samples a, Samples b, uint64_t seed = 0, int resamples = 1000,
                   double confidence = 0.95, size_t block = 1);

// That many neighbours together: samples that follow each other are alike, and drawn one by one
// they would promise more than they know. The cube root of their number is the usual choice.
size_t neighbours(size_t count);

// The ratio of two medians of samples that were not taken together.
Ratio unpaired_ratio(Samples a, Samples b, uint64_t seed = 0, int resamples = 1000,
                     double confidence = 0.95);

// Spearman's rank correlation of the samples with their order: a drift over the run.
double drift(Samples samples);

}  // namespace kiln::measure
