// SPDX-License-Identifier: Apache-2.0
// How does a plan become machine code?
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/compile/plan.h"
#include "engine/compile/target.h"

namespace kiln::engine {

// What the code finds in its table, and what has to hold before it runs (run.cpp fills it).
struct Guard {  // an input that was taken to have steps, or to be the same in all lanes
  uint32_t slot;
  Slot in;
  uint32_t bytes;
  Rises rises;
  Pattern2 steps;       // of a header
  uint64_t number = 0;  // of a scalar
};

// An address that does not change in the phase: the table has where it lies in this process.
struct Prepared {
  Place::Of of;
  uint32_t slot;  // of the header, or of the variable
  Slot in;
  bool narrow;  // an address of 32 bits
  ptx::Space space;
  Pattern2 steps;
  int64_t least, most;  // of the offsets that loads add; the last byte is below `most`
  uint32_t align;       // of the first lane's: the steps are aligned
  uint32_t op;          // the first load, whose region is remembered
  bool writes;
  bool optional;          // used behind a branch alone: 0 in the table if it is no good
  int64_t warp_step = 0;  // as of a variable
  // How far all of it begins behind the first lane's address, and how long it is.
  int64_t first = 0;
  uint64_t bytes = 0;
};

constexpr uint32_t kNoRoot = ~uint32_t{0};

// An address that changes: the table has the begin and the size of what it may reach, and how far
// that lies from there in this process.
constexpr uint64_t kNotThere = 1;  // of Pass::seen: it was looked for, and no address is
struct Reach {
  ptx::Space space;
  uint32_t op;
  uint64_t span;  // bytes from the first to behind the last
  bool writes;
  bool optional;       // used behind a branch alone
  uint32_t align = 1;  // that the memory itself has to have
  // The slot of the pointer that addresses are made of, and whether it has one for each lane;
  // kNoRoot: not known.
  uint32_t root = kNoRoot;
  bool root_has_lanes = false;
  std::vector<uint32_t> others{};  // Ops that use it too: perhaps `op` itself never runs
};

// Of the table.
constexpr size_t kMostWords = 96;

struct Emitted {
  std::vector<std::byte> bytes;
  uint32_t lanes = 0;                      // of a pass
  uint32_t row_lanes = kWarpSize;          // Plan::row_lanes
  uint32_t header_rows = 0;                // Plan::header_rows
  bool masked = false;                     // Plan::masked
  uint32_t local_stride = 0;               // Plan::local_stride
  bool apart = false;                      // Plan::apart
  std::vector<std::unique_ptr<Op>> calls;  // Ops of the program whose results go elsewhere
  std::vector<uint32_t> places;            // Ops: where lanes wait, by index of Pass::waiting
  bool checks_itself = false;  // it needs no table, and nobody has to look at the guards
  bool goes_on = false;        // as the warps behind it: Pass::followers
  bool weighs = false;         // it says itself what it saved: Pass::saved
  std::vector<Exit> exits;  // the number that the code returns, less 1; 0: start again, interpreted
  std::vector<Guard> guards;
  std::vector<Prepared> prepared;
  std::vector<Reach> reaches;  // three words each, behind those of `prepared`
  struct Saved {
    uint32_t slot, bytes;
  };
  std::vector<Saved> saved;  // read and written: to be put back when a later pass starts again
};

// By Op: which entry of the worker's cache has the region that it touched last.
using CacheIndex = std::function<uint32_t(uint32_t)>;
// Nothing: this CPU cannot do some step.
std::unique_ptr<Emitted> emit(const Flow& flow, const Plan& plan, const CacheIndex& cache_index);

// Does it pay to leave the interpreter for a phase (cost.cpp)? Whatever the code will be like,
// which saves making it; and by an estimate of the instructions that both ways take for a warp.
bool may_pay(const Plan& plan);
// The same of code for lanes that go apart, by a plan for lanes that do not: such a phase may be
// too short for it, whatever its plan would be.
bool may_pay_apart(const Plan& plan);
bool pays(const Plan& plan, const Emitted& made);
// The same estimate of what happens, in instructions: what an entry costs, what each Op of a loop
// saves that is run again in the interpreter's place, and by exit what those before it save once.
struct Worth {
  int32_t entering = 0, looped = 0;
  std::vector<int32_t> saved;
};
Worth worth_of(const Plan& plan, const Emitted& made);
// Of one step.
int32_t saved_by(const Plan& plan, const Step& step);

}  // namespace kiln::engine
