// SPDX-License-Identifier: Apache-2.0
#include "watch/race/clock.h"

#include <algorithm>

namespace kiln::watch::race {

Time Clock::at(Subject subject) const {
  const auto found =
      std::lower_bound(entries_.begin(), entries_.end(), subject,
                       [](const Entry& entry, Subject wanted) { return entry.first < wanted; });
  return found != entries_.end() && found->first == subject ? found->second : 0;
}

ClockPtr Joiner::join(const ClockPtr& a, const ClockPtr& b) {
  if (!b || a == b) return a;
  if (!a) return b;
  for (const Last& each : last_) {
    if (each.a == a && each.b == b) return each.result;
  }
  std::vector<Clock::Entry> all;
  all.reserve(a->entries().size() + b->entries().size());
  auto left = a->entries().begin(), right = b->entries().begin();
  const auto left_end = a->entries().end(), right_end = b->entries().end();
  bool only_a = true, only_b = true;
  while (left != left_end || right != right_end) {
    if (right == right_end || (left != left_end && left->first < right->first)) {
      all.push_back(*left++);
      only_b = false;
    } else if (left == left_end || right->first < left->first) {
      all.push_back(*right++);
      only_a = false;
    } else {
      only_a = only_a && left->second >= right->second;
      only_b = only_b && right->second >= left->second;
      all.emplace_back(left->first, std::max(left->second, right->second));
      ++left;
      ++right;
    }
  }
  ClockPtr result = only_a ? a : only_b ? b : std::make_shared<const Clock>(std::move(all));
  last_[next_++ % kLast] = {a, b, result};
  return result;
}

void ClockBuilder::add(const ClockPtr& clock) {
  if (clock && std::find(clocks_.begin(), clocks_.end(), clock) == clocks_.end())
    clocks_.push_back(clock);
}

ClockPtr ClockBuilder::finish(Joiner& joiner) {
  ClockPtr all;
  if (!entries_.empty()) {
    std::sort(entries_.begin(), entries_.end());
    std::vector<Clock::Entry> unique;
    for (const Clock::Entry& entry : entries_) {
      if (!unique.empty() && unique.back().first == entry.first)
        unique.back().second = entry.second;  // sorted by time too: the later one
      else
        unique.push_back(entry);
    }
    all = std::make_shared<const Clock>(std::move(unique));
  }
  for (const ClockPtr& clock : clocks_) all = joiner.join(all, clock);
  entries_.clear();
  clocks_.clear();
  return all;
}

}  // namespace kiln::watch::race
