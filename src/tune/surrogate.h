// SPDX-License-Identifier: Apache-2.0
// How fast will a configuration be that was not tried yet, and how sure is that? A Gaussian process
// over the logarithms of the times: values near each other on an axis do alike, each by itself and
// all of them together.
#pragma once

#include <vector>

#include "tune/space.h"

namespace kiln::tune {

class Surrogate {
 public:
  struct Guess {
    double log_us = 0, deviation = 0;
  };

  // At least one time. `pending` are under way: they are taken to come out as expected, so that the
  // next guess goes elsewhere.
  Surrogate(const Space& space, std::vector<Point> points, std::vector<double> log_us,
            const std::vector<Point>& pending);

  Guess guess(const Point& point) const;
  // How much faster than `best_log_us` it will be on average, where it is slower counted as
  // nothing.
  double hope(const Point& point, double best_log_us) const;

 private:
  double covariance(const Point& a, const Point& b) const;
  void add(Point point);
  void solve();

  size_t axes_ = 0;
  std::vector<double> by_distance_;  // of two values on one axis
  std::vector<Point> points_;        // timed, then pending
  std::vector<std::vector<double>>
      lower_;  // the Cholesky factor of their covariances, a row a point
  std::vector<double> log_us_, weights_;
  double mean_ = 0, variance_ = 0;
};

}  // namespace kiln::tune
