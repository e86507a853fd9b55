// SPDX-License-Identifier: Apache-2.0
// What does a thread know of others, beyond barriers? A sparse vector clock.
//
// A clock with an entry for each thread of a grid would be too large. Most threads know others only
// through their block's barriers, which is one number (order.h). A clock has entries only for what
// came through fences, named barriers, mbarriers and clusters; one for a whole warp or block where
// all of it is known. Clocks do not change, so that all who learn the same share one.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kiln::watch::race {

// Counts the events that order something, over the whole process. An access has the time at which
// its warp last took part in one; who knows the warp up to a later time knows the access.
using Time = uint32_t;

// Whom or what an entry is about.
using Subject = uint64_t;
constexpr Subject thread_subject(uint32_t block, uint32_t warp, uint32_t lane) {
  return uint64_t{block} << 10 | warp << 5 | lane;
}
constexpr Subject warp_subject(uint32_t block, uint32_t warp) {
  return uint64_t{1} << 62 | uint64_t{block} << 5 | warp;
}
constexpr Subject block_subject(uint32_t block) { return uint64_t{2} << 62 | block; }
// Strong writes to one location, by whomever: who read the last has them all behind it.
constexpr Subject location_subject(uint64_t location) {
  return uint64_t{3} << 62 | (location & ~(uint64_t{3} << 62));
}

class Clock {
 public:
  using Entry = std::pair<Subject, Time>;
  explicit Clock(std::vector<Entry> sorted) : entries_(std::move(sorted)) {}
  // Known are accesses of earlier times; 0: nothing.
  Time at(Subject subject) const;
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  std::vector<Entry> entries_;  // by subject
};
using ClockPtr = std::shared_ptr<const Clock>;  // null: knows nothing

// All that either knows. Threads of a block learn the same from the same: the last results are
// kept, so that a barrier of a thousand threads joins once.
class Joiner {
 public:
  ClockPtr join(const ClockPtr& a, const ClockPtr& b);
  void clear() {
    for (Last& each : last_) each = {};
  }

 private:
  struct Last {
    ClockPtr a, b, result;
  };
  static constexpr size_t kLast = 32;
  Last last_[kLast];
  size_t next_ = 0;
};

// Collects what those know who arrive, until it is passed on.
class ClockBuilder {
 public:
  void add(Subject subject, Time time) {
    if (time) entries_.emplace_back(subject, time);
  }
  void add(const ClockPtr& clock);
  bool empty() const { return entries_.empty() && clocks_.empty(); }
  ClockPtr finish(Joiner& joiner);  // and begins anew

 private:
  std::vector<Clock::Entry> entries_;
  std::vector<ClockPtr> clocks_;
};

}  // namespace kiln::watch::race
