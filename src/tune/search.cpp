// SPDX-License-Identifier: Apache-2.0
// How does the search choose? A third of the trials goes to a random sample; from then on the neighbours of the fastest
// point are tried, then those of the second fastest, and so on, with chance where all neighbours are known. Of a
// point's neighbours the one comes first whose values did best so far, each value by itself.
#include "tune/search.h"

#include <algorithm>
#include <cmath>

namespace kiln::tune {

namespace {
// A random point of a large space is allowed with some luck; so many draws without luck end the search.
constexpr int kDraws = 10000;
}  // namespace

Result<Search> Search::make(const Space& space, Budget budget) {
  Search search(space);
  search.random_state_ = budget.seed;
  if (space.size() <= kEnumerable) {
    for (uint64_t number = 0; number < space.size(); number++) {
      TRY(const std::string forbidden, space.forbidden_by(space.point(number)));
      if (forbidden.empty()) search.allowed_.push_back(number);
    }
    if (search.allowed_.empty())
      return Error{Fault::Usage, "there is nothing to tune", "the constraints forbid every configuration of the space",
                   "loosen a constraint or add values"};
    search.exhaustive_ = budget.trials == 0 || budget.trials >= search.allowed_.size();
    search.trials_ = search.exhaustive_ ? search.allowed_.size() : budget.trials;
    // Without a shuffle the first trials would all lie in one corner.
    for (size_t i = search.allowed_.size(); i > 1 && !search.exhaustive_; i--)
      std::swap(search.allowed_[i - 1], search.allowed_[search.random_bits() % i]);
  } else {
    TRY(const std::string first, space.forbidden_by(space.point(0)));  // does it evaluate at all?
    search.trials_ = budget.trials ? budget.trials : 1000;
  }
  return search;
}

std::vector<Point> Search::next(size_t count) {
  std::vector<Point> points;
  while (points.size() < count && given_ < trials_) {
    const bool local = !exhaustive_ && given_ >= std::max<uint64_t>(trials_ / 3, 1) && !timed_.empty();
    if (!(local && give_neighbour_of_best(points)) && !give_random(points)) break;
  }
  return points;
}

bool Search::give(uint64_t number, std::vector<Point>& to) {
  if (!seen_.insert(number).second) return false;
  const Point point = space_->point(number);
  const Result<std::string> forbidden = space_->forbidden_by(point);
  if (!forbidden || !forbidden->empty()) return false;
  to.push_back(point);
  given_++;
  return true;
}

bool Search::give_neighbour_of_best(std::vector<Point>& to) {
  for (const auto& [time_us, number] : timed_) {
    std::vector<Point> neighbours = space_->neighbours(space_->point(number));
    std::erase_if(neighbours, [&](const Point& one) { return seen_.contains(space_->number(one)); });
    if (neighbours.empty()) continue;
    std::vector<std::pair<double, Point>> by_hope;
    for (Point& one : neighbours) by_hope.emplace_back(expected_log_us(one), std::move(one));
    std::ranges::stable_sort(by_hope, {}, &std::pair<double, Point>::first);
    for (const auto& [hope, neighbour] : by_hope)
      if (give(space_->number(neighbour), to)) return true;
  }
  return false;
}

// As if each value made every configuration faster or slower by its own factor.
double Search::expected_log_us(const Point& point) const {
  double sum = 0;
  for (size_t axis = 0; axis < point.size(); ++axis) {
    double all = 0, same = 0;
    int all_count = 0, same_count = 0;
    for (const auto& [time_us, number] : timed_) {
      const bool is_same = space_->point(number)[axis] == point[axis];
      all += std::log(time_us);
      all_count++;
      if (is_same) same += std::log(time_us), same_count++;
    }
    sum += same_count ? same / same_count : all / std::max(all_count, 1);
  }
  return sum;
}

bool Search::give_random(std::vector<Point>& to) {
  if (!allowed_.empty()) {
    while (allowed_at_ < allowed_.size())
      if (give(allowed_[allowed_at_++], to)) return true;
    return false;
  }
  for (int draw = 0; draw < kDraws; draw++)
    if (give(random_bits() % space_->size(), to)) return true;
  return false;
}

void Search::report(const Point& point, double time_us) {
  const uint64_t number = space_->number(point);
  if (seen_.insert(number).second) given_++;
  timed_.emplace(time_us, number);
}

void Search::report_unusable(const Point& point) {
  if (seen_.insert(space_->number(point)).second) given_++;
}

// SplitMix64: small, and the same everywhere.
uint64_t Search::random_bits() {
  uint64_t z = random_state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace kiln::tune
