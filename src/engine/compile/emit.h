// SPDX-License-Identifier: Apache-2.0
// What does the emitter make from a plan? Machine code, and what its entry has to check.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/compile/plan.h"
#include "engine/compile/target.h"

namespace kiln::engine {

// What the code finds in its table, and what has to hold before it runs (entry.cpp fills the
// table).
struct Guard {  // an input that is assumed to have steps, or to be uniform
  uint32_t slot;
  Slot in;
  uint32_t bytes;
  Rises rises;
  Pattern2 steps;       // of a header
  uint64_t number = 0;  // of a scalar
};

// An address that does not change in the phase: the table contains its address in this process.
struct Prepared {
  Place::Of of;
  uint32_t slot;  // of the header, or of the variable
  Slot in;
  bool narrow;  // an address of 32 bits
  ptx::Space space;
  Pattern2 steps;
  int64_t least, most;  // range of the loads' offsets; the last byte is below `most`
  uint32_t align;       // of the first lane's address: the steps are aligned
  uint32_t op;          // the first load, whose region is cached
  bool writes;
  bool optional;          // used only behind a branch: 0 in the table if invalid
  int64_t warp_step = 0;  // as in Variable
  // Offset of the whole range from the first lane's address, and its length.
  int64_t first = 0;
  uint64_t bytes = 0;
};

constexpr uint32_t kNoRoot = ~uint32_t{0};

// An address that changes: the table contains the start and the size of the memory that it may
// access, and the distance from there to its place in this process.
constexpr uint64_t kNotThere = 1;  // of Pass::seen: looked up without success
struct Reach {
  ptx::Space space;
  uint32_t op;
  uint64_t span;  // bytes from the first to the end of the last
  bool writes;
  bool optional;       // used only behind a branch
  uint32_t align = 1;  // that the memory itself must have
  // The slot of the pointer that the addresses are computed from, and whether it has one per lane;
  // kNoRoot: unknown.
  uint32_t root = kNoRoot;
  bool root_has_lanes = false;
  std::vector<uint32_t> others{};  // other Ops that use it: `op` itself may never run
};

// Size of the table.
constexpr size_t kMostWords = 96;

struct Emitted {
  std::vector<std::byte> bytes;
  uint32_t lanes = 0;                      // of a pass
  uint32_t row_lanes = kWarpSize;          // Plan::row_lanes
  uint32_t header_rows = 0;                // Plan::header_rows
  bool masked = false;                     // Plan::masked
  uint32_t local_stride = 0;               // Plan::local_stride
  bool apart = false;                      // Plan::apart
  bool alone = false;                      // Plan::alone
  std::vector<uint32_t> headers;           // code for one lane: headers whose lanes it reads
  std::vector<std::unique_ptr<Op>> calls;  // Ops of the program with another destination
  std::vector<uint32_t> places;            // Ops at which lanes wait, by index of Pass::waiting
  bool checks_itself = false;              // it needs no table, and nothing checks the guards
  bool goes_on = false;                    // with the next warps: Pass::followers
  bool weighs = false;                     // it reports its savings: Pass::saved
  uint32_t asked = 0;                      // groups of loads whose memory is asked for ahead
  std::vector<Exit> exits;  // by the code's return value - 1; 0: bailout to the start
  std::vector<Guard> guards;
  std::vector<Prepared> prepared;
  std::vector<Reach> reaches;  // three words each, after those of `prepared`
  struct Saved {
    uint32_t slot, bytes;
  };
  std::vector<Saved> saved;  // read and written: restored if a later pass bails out
};

// By Op: the entry of the worker's cache that holds the region it accessed last.
using CacheIndex = std::function<uint32_t(uint32_t)>;
// Returns null if this CPU does not support some step.
std::unique_ptr<Emitted> emit(const Flow& flow, const Plan& plan, const CacheIndex& cache_index,
                              uint32_t most_lanes);

// Does it pay to leave the interpreter for a phase (cost.cpp)? may_pay() knows only the plan, which
// saves making the code; pays() estimates the instructions of both ways for a warp.
bool may_pay(const Plan& plan);
// The same for code for diverging lanes, from a plan for lanes that do not diverge: the phase may
// be too short for it, whatever its plan would be.
bool may_pay_apart(const Plan& plan);
bool pays(const Plan& plan, const Emitted& made);
// The same estimate for what happens at run time, in instructions: the cost of an entry, the
// savings per Op of a loop that runs again, and, by exit, the savings of the Ops before it.
struct Worth {
  int32_t entering = 0, looped = 0;
  std::vector<int32_t> saved;
};
Worth worth_of(const Plan& plan, const Emitted& made);
// The savings of one step.
int32_t saved_by(const Plan& plan, const Step& step);

}  // namespace kiln::engine
