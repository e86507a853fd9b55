// SPDX-License-Identifier: Apache-2.0
// How is machine code entered that does not check itself? What it takes for granted is looked at
// first, and the memory that it reaches is looked up.
#pragma once

#include "engine/compile/stretches.h"

namespace kiln::engine {

// Which regions served last: they are looked for again.
inline void forget(Compiled& compiled) {
  for (size_t i = 0; i < compiled.made->reaches.size(); ++i)
    compiled.seen[i].store(0, std::memory_order_relaxed);
}

class Entry {
 public:
  Entry(Stretch& stretch, Compiled& compiled, Warp& warp)
      : stretch_(stretch), compiled_(compiled), made_(*compiled.made), warp_(warp) {
    row_lanes_ = made_.row_lanes;
  }
  // False: what the code takes for granted does not hold.
  bool prepare();
  // 0: it has to start again, interpreted.
  uint32_t run();
  uint64_t left = 0, ran = 0;
  int64_t saved = 0;  // where the code says so
  // Of lanes that go apart: as Pass has it.
  uint32_t here = 0;
  uint32_t waiting[kMostPlaces];

 private:
  bool guards_hold() const;
  // The region that the interpreter found for an Op.
  Worker::CachedRegion& touched_by(uint32_t op) {
    return warp_.worker->cached(touched_as(stretch_, op));
  }
  bool place(const Prepared& at, uint64_t* pointer);
  bool reach(size_t index, uint64_t* words);
  uint64_t root_of(const Reach& at) const;
  static bool none(const Reach& at, uint64_t* words);
  bool is_inside(uint32_t op, uint64_t first, uint64_t bytes, bool writes);
  void put_back() const;
  void begin(Pass& pass, uint32_t lane, uint64_t budget);
  uint32_t run_once();
  uint32_t run_apart();

  Stretch& stretch_;
  Compiled& compiled_;
  const Emitted& made_;
  Warp& warp_;
  uint32_t row_lanes_;
  uint64_t table_[kMostWords];
  std::byte saved_[kMostSavedBytes];
};

}  // namespace kiln::engine
