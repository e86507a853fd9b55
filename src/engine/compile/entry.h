// SPDX-License-Identifier: Apache-2.0
// How does a warp enter machine code that does not check itself? Its assumptions are checked first,
// and the memory that it accesses is looked up.
#pragma once

#include "engine/compile/stretches.h"

namespace kiln::engine {

// Forgets which regions were found last: they are looked up again.
inline void forget(Compiled& compiled) {
  for (size_t i = 0; i < compiled.made->reaches.size(); ++i)
    compiled.seen[i].store(0, std::memory_order_relaxed);
}

// What a thread needs to enter machine code. It is too large for the stack: compilers that protect
// the stack touch each page of a frame.
struct Room {
  Pass pass, behind;  // `behind`: for the warps that one warp takes along
  uint64_t table[kMostWords], behind_table[kMostWords];
  std::byte saved[kMostSavedBytes];
};
// Returns false if there is no memory for it.
bool make_room(Worker& worker);

class Entry {
 public:
  Entry(Stretch& stretch, Compiled& compiled, Warp& warp)
      : stretch_(stretch),
        compiled_(compiled),
        made_(*compiled.made),
        warp_(warp),
        room_(*warp.worker->room) {
    row_lanes_ = made_.row_lanes;
  }
  // Returns false if an assumption of the code does not hold.
  bool prepare();
  // Returns the exit; 0: bailout to the start of the phase.
  uint32_t run();
  // Runs code for one lane, for all lanes in order. If `done` is not set, no lane has moved.
  const Op* run_lanes(bool* done);
  uint64_t left = 0, ran = 0;
  int64_t saved = 0;  // if the code weighs itself; for code of one lane: iterations
  // For diverging lanes: copies of the fields of Pass.
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
  void move_local(uint32_t lane);
  bool loads_where_it_stores() const;

  Stretch& stretch_;
  Compiled& compiled_;
  const Emitted& made_;
  Warp& warp_;
  Room& room_;
  uint32_t row_lanes_;
};

}  // namespace kiln::engine
