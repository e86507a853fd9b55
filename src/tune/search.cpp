// SPDX-License-Identifier: Apache-2.0
// How does the search choose? A third of the trials goes to a sample in which values meet each
// other about equally often: balanced values alone are not enough, for a constraint can tie two
// axes so that some pairs never come. From then on the point is tried for which the surrogate has
// most hope, and few at a time: what is under way teaches nothing yet.
#include "tune/search.h"

#include <algorithm>
#include <cmath>

#include "tune/surrogate.h"

namespace kiln::tune {

namespace {
// A random point of a large space is allowed with some luck; this many draws without luck end the
// search.
constexpr int kDraws = 10000;
// Of this many points the most hopeful is looked for; in a larger space among this many drawn, and
// the neighbours of the fastest.
constexpr size_t kWeighed = 256;
constexpr size_t kFastest = 5;
// A surrogate of this many points takes milliseconds to ask; the fastest half of them, and some of
// the others.
constexpr size_t kKnown = 200;
// After the sample one of this many trials is under way at a time, whatever the number of builders:
// with as many under way as there are trials, a search would be a throw of dice.
constexpr uint64_t kAtATime = 8;
// The sample comes less often to values that were refused: a refusal counts as this many meetings.
constexpr uint64_t kRefusedCounts = 3;

size_t count_of_values(const Space& space, size_t axis) { return space.axes()[axis].values.size(); }
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
      return Error{Fault::Usage, "there is nothing to tune",
                   "the constraints forbid every configuration of the space",
                   "loosen a constraint or add values"};
    search.exhaustive_ = budget.trials == 0 || budget.trials >= search.allowed_.size();
    search.trials_ = search.exhaustive_ ? search.allowed_.size() : budget.trials;
    search.most_given_ = std::min<uint64_t>(search.allowed_.size(), 2 * search.trials_);
    // Without a shuffle the first trials would all be in one corner.
    for (size_t i = search.allowed_.size(); i > 1 && !search.exhaustive_; i--)
      std::swap(search.allowed_[i - 1], search.allowed_[search.random_bits() % i]);
  } else {
    TRY(const std::string first, space.forbidden_by(space.point(0)));  // does it evaluate at all?
    search.trials_ = budget.trials ? budget.trials : 1000;
    search.most_given_ = 2 * search.trials_;
  }
  for (size_t a = 0; a < space.axes().size(); a++)
    for (size_t b = 0; b <= a; b++) {
      const uint64_t cells = count_of_values(space, a) * (a == b ? 1 : count_of_values(space, b));
      search.pairs_.emplace_back(count_of_values(space, a) * count_of_values(space, b),
                                 Met{0, 0, cells});
    }
  return search;
}

std::vector<Point> Search::next(size_t count) {
  std::vector<Point> points;
  while (points.size() < count && given_ < trials()) {
    const bool sampling = given_ < std::max<uint64_t>(trials_ / 3, 1) || timed_.empty();
    if (!exhaustive_ && !sampling && pending_.size() >= std::max<uint64_t>(trials_ / kAtATime, 1))
      break;
    std::optional<Point> point = exhaustive_ ? first_allowed()
                                 : sampling  ? least_seen()
                                             : most_hopeful();
    if (!point) break;
    give(*point);
    points.push_back(std::move(*point));
  }
  return points;
}

bool Search::may_try(uint64_t number) const {
  if (seen_.contains(number)) return false;
  const Result<std::string> forbidden = space_->forbidden_by(space_->point(number));
  return forbidden && forbidden->empty();
}

// All pairs of its values, each value with itself too.
template <class Visit>
void Search::for_each_pair(const Point& point, Visit visit) {
  auto table = pairs_.begin();
  for (size_t a = 0; a < point.size(); a++)
    for (size_t b = 0; b <= a; b++)
      visit((*table++)[point[a] * count_of_values(*space_, b) + point[b]]);
}

void Search::give(const Point& point) {
  take_note(point);
  pending_.insert(space_->number(point));
}

void Search::take_note(const Point& point) {
  const uint64_t number = space_->number(point);
  pending_.erase(number);
  if (!seen_.insert(number).second) return;
  given_++;
  for_each_pair(point, [](Met& met) { met.given++; });
}

std::optional<Point> Search::first_allowed() {
  while (allowed_at_ < allowed_.size())
    if (const uint64_t number = allowed_[allowed_at_++]; !seen_.contains(number))
      return space_->point(number);
  return std::nullopt;
}

// Points that may be tried, by chance; in a space of no more than `count`, all of them.
std::vector<Point> Search::draw(size_t count) {
  std::vector<Point> drawn;
  for (size_t i = 0; i < allowed_.size() && drawn.size() < count; i++) {
    const uint64_t number = allowed_[allowed_at_++ % allowed_.size()];
    if (!seen_.contains(number)) drawn.push_back(space_->point(number));
  }
  for (int luck = 0; allowed_.empty() && luck < kDraws && drawn.size() < count; luck++)
    if (const uint64_t number = random_bits() % space_->size(); may_try(number))
      drawn.push_back(space_->point(number));
  return drawn;
}

std::optional<Point> Search::least_seen() {
  std::optional<Point> best;
  uint64_t least = UINT64_MAX;
  for (Point& point : draw(kWeighed)) {
    uint64_t met = 0;
    for_each_pair(point, [&](Met& pair) {
      met += (pair.given + (kRefusedCounts - 1) * pair.refused) * pair.of;
    });
    if (met < least) least = met, best = std::move(point);
  }
  return best;
}

// The share of what got to the GPU, for the two values that were refused most.
double Search::chance_to_run(const Point& point) {
  double least = 1;
  for_each_pair(point, [&](Met& pair) {
    least = std::min(least, static_cast<double>(1 + pair.given - pair.refused) /
                                static_cast<double>(1 + pair.given));
  });
  return least;
}

std::vector<Point> Search::candidates() {
  std::vector<Point> points = draw(kWeighed);
  if (!allowed_.empty() && allowed_.size() <= kWeighed) return points;
  std::set<uint64_t> near;
  size_t looked_at = 0;
  for (auto at = timed_.begin(); at != timed_.end() && looked_at < kFastest; ++at, ++looked_at)
    for (Point& one : space_->neighbours(space_->point(at->second)))
      if (const uint64_t number = space_->number(one);
          may_try(number) && near.insert(number).second)
        points.push_back(std::move(one));
  return points;
}

std::optional<Point> Search::most_hopeful() {
  std::vector<Point> known, pending;
  std::vector<double> log_us;
  const size_t rest = timed_.size() > kKnown ? timed_.size() - kKnown / 2 : 0;
  size_t rank = 0;
  for (const auto& [time_us, number] : timed_) {
    const size_t later = rank < kKnown / 2 ? 0 : rank - kKnown / 2;
    // Of the slower ones, evenly many.
    const bool taken = rest == 0 || rank < kKnown / 2 ||
                       (later * (kKnown / 2)) / rest != ((later + 1) * (kKnown / 2)) / rest;
    rank++;
    if (!taken) continue;
    known.push_back(space_->point(number));
    log_us.push_back(std::log(time_us));
  }
  for (const uint64_t number : pending_) pending.push_back(space_->point(number));
  const double best_log_us = log_us.front();
  const Surrogate surrogate(*space_, std::move(known), std::move(log_us), pending);
  std::optional<Point> best;
  double most = -1;
  for (Point& point : candidates()) {
    // The root: a refusal costs a build and no trial, and the fastest are often close to those
    // that spill.
    const double hope = surrogate.hope(point, best_log_us) * std::sqrt(chance_to_run(point));
    if (hope > most) most = hope, best = std::move(point);
  }
  return best;
}

void Search::report(const Point& point, double time_us) {
  take_note(point);
  timed_.emplace(time_us, space_->number(point));
}

void Search::report_untimed(const Point& point) { take_note(point); }

void Search::report_refused(const Point& point) {
  take_note(point);
  refused_++;
  for_each_pair(point, [](Met& met) { met.refused++; });
}

// SplitMix64: small, and the same everywhere.
uint64_t Search::random_bits() {
  uint64_t z = random_state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace kiln::tune
