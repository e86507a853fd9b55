// SPDX-License-Identifier: Apache-2.0
// How does machine code keep the values of a phase?
//
//  The first warp that reaches a phase shows the pattern of its values: if an address rises by the
// same step from lane to lane, the plan assumes that it always does. Each entry checks the
// assumptions (Guard), and the interpreter continues where one does not hold.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/scratch.h"
#include "engine/compile/flow.h"
#include "engine/machine/access.h"

namespace kiln::engine {

enum class Kept : uint8_t {
  Unknown,
  Word,    // uniform, in a general register; a predicate: all ones or zero
  Splat,   // uniform, broadcast to each lane of a vector
  Steps,   // base + step * column + row_step * row of the lane; the base in a general register
  Vector,  // one vector per strip of lanes; a predicate: a mask
};

enum class Slot : uint8_t { Lanes, Scalar, Predicate, Header };  // Header: see affine.h, read-only

struct Pattern2 {
  int64_t step = 0, row_step = 0;
  bool operator==(const Pattern2&) const = default;
};

struct Variable {
  uint32_t slot = 0;
  Slot in = Slot::Lanes;
  uint32_t bytes = 4;
  bool home = false;       // the value of the slot between the blocks of the phase
  bool input = false;      // has to be read from the frame
  bool written = false;    // in the phase
  bool arithmetic = true;  // every Op that writes it makes f32 NaNs that must become canonical
  bool wanted = false;     // an address or a branch depends on it
  bool decides = false;    // a branch does
  bool real = false;       // arithmetic of f32 or f64 reads it
  bool lazy = false;       // its NaNs become canonical only where their bits can be observed
  bool quiet = false;      // its NaNs are quiet
  bool flushed = true;     // f32: no lane is subnormal
  bool blended = false;    // written only for the lanes that run
  bool clean = false;      // f64: all its NaNs have the bits that arithmetic gives them
  bool counted = false;    // f64 arithmetic reads it
  bool is_far = false;     // 8 bytes that are too large for a distance: an address
  Kept kept = Kept::Unknown;
  Pattern2 steps;
  int64_t warp_step = 0;  // of a header whose rows are warps: from one warp to the next
  uint64_t constant = 0;
  bool is_constant = false;
  bool held = false;  // a scalar that is assumed to stay `constant`
  // For a value that ends with its block: from after the Op that writes it up to the Op that
  // overwrites it.
  uint32_t from = 0, until = ~uint32_t{0};
};

// Where an access finds its address.
struct Place {
  enum class Of : uint8_t { Header, Variable } of = Of::Variable;
  uint32_t header = 0;  // its slot
  uint32_t variable = 0;
  Pattern2 steps;         // in bytes, of a header
  int64_t warp_step = 0;  // as in Variable
};

// Is f32 arithmetic a hundred times as slow if a value is subnormal? f64 arithmetic on the same
// values is not, and neither are conversions.
#if defined(__x86_64__)
constexpr bool kSubnormalsAreSlow = true;
constexpr bool kAsksAhead = true;  // Target::ask_for()
#else
constexpr bool kSubnormalsAreSlow = false;
constexpr bool kAsksAhead = false;
#endif

// One Op of the phase.
struct Step {
  uint32_t index = 0;
  Op op;
  Meaning meaning;
  std::optional<uint32_t> d, a, b, c;  // variables
  List<uint32_t> reads, writes;        // for Does::Warpwide; `d` is the first one written
  // For a shuffle: the lane that each lane reads, and the lanes whose source is in range. The
  // others keep their own value.
  struct Exchange {
    uint8_t from[kWarpSize];
    uint32_t in_range;
    // If every lane reads the lane whose number differs in the same bits: these bits.
    std::optional<uint32_t> butterfly() const {
      const auto is_so = [&](uint32_t lane) { return from[lane] == (lane ^ from[0]); };
      for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
        if (!is_so(lane)) return std::nullopt;
      }
      return in_range == kFullMask ? std::optional<uint32_t>(from[0]) : std::nullopt;
    }
  };
  std::optional<Exchange> exchange;
  Vote vote = Vote::None;
  Place place;
  uint32_t align = 0;  // of an address: the alignment of all elements together
  // For a store that a branch can skip: it is for the lanes of this predicate, or for the others.
  std::optional<uint32_t> under;
  bool under_not = false;
  uint32_t under_end = 0;  // the target of the branch
  // Where the interpreter continues if a check fails: at the Op, or at the branch around it.
  uint32_t resume = 0;
  bool leaves = false;  // code of one lane: the interpreter has to run it
};

// Does the code call its handler?
inline bool is_called_warpwide(const Step& step) {
  return step.meaning.does == Does::Warpwide && !is_parts(step.meaning) && !step.exchange &&
         step.vote == Vote::None;
}

inline bool is_branch(const Step& step) {
  const Does does = step.meaning.does;
  return does == Does::Branch || does == Does::BranchIf || does == Does::BranchUnless;
}
inline bool changes_memory(const Step& step) {
  return step.meaning.does == Does::Store || step.meaning.does == Does::Atomic;
}
// An atomic for which a function is called.
inline bool is_change_called(const Step& step) { return step.meaning.change != nullptr; }

// In local memory the same address refers to a different place in each lane.
inline bool is_local(const Step& step) {
  return static_cast<ptx::Space>(step.op.z) == ptx::Space::Local;
}
// Memory of the block or of the warp: its addresses begin at 0, and only one thread accesses it.
inline bool is_own(ptx::Space space) {
  return space == ptx::Space::Shared || space == ptx::Space::Local;
}

// Where the interpreter continues.
struct Exit {
  uint32_t target = 0;
  bool backward = false;   // a backward branch that ends the turn
  bool early = false;      // before an Op that machine code cannot run with these values
  bool disagrees = false;  // lanes disagree at a branch
  uint32_t behind = 0;     // Ops before this one have run, or were skipped
};

// An address of a loop that rises so far in each iteration that the CPU does not foresee it. Its
// memory is asked for before it is loaded, so far ahead: `times` the scalar, plus `more`.
struct Ahead {
  uint32_t variable = 0;  // the address
  std::optional<uint32_t> scalar;
  int64_t times = 0, more = 0;
};

struct Plan {
  Phase phase;
  uint32_t row_lanes = kWarpSize;  // of a row of values that rise by one step
  uint32_t header_rows = 0;        // the same for headers; 0: they have no rows
  List<Step> steps;
  List<Variable> variables;
  ListedMap<uint32_t, uint32_t> home;  // by slot
  // A branch depends on a loaded value: all lanes go through the phase together, because memory
  // could change before the others come.
  bool memory_decides = false;
  bool calls = false;      // a handler: all lanes at once
  bool exchanges = false;  // between lanes, without a handler: also all at once
  // Lanes may disagree at a branch: all of them reach it together, and if they disagree, the
  // interpreter continues there.
  bool lanes_decide = false;
  // The phase is all that a warp runs, up to its end: the inputs of the next warp differ only in
  // the base of values of base and step (emit_warps.cpp).
  bool whole = false;
  bool meets = false;  // Flow::meets()
  // The distance of the lanes' local memory, if any is accessed: checked at each entry.
  uint32_t local_stride = 0;
  // A loop that lanes leave at different times, or that only some lanes of a warp reach: lanes that
  // do not run keep their values (emit_masks.cpp).
  bool masked = false;
  // The same for any phase: lanes diverge at branches and converge again (emit_masks.cpp). `some`:
  // for the other lanes, base and step may lead to memory that does not exist.
  bool apart = false, some = false;
  bool alone = false;      // code for one lane: each value is one number
  bool by_double = false;  // as in Taken
  List<Ahead> ahead;
};

// The assumptions of the code.
struct Taken {
  bool patterns = true;  // values keep the pattern that they have in this warp
  // Scalars that multiply base and step do not change, base and step is never clamped, and all
  // lanes agree where it is compared.
  bool steps_hold = false;
  bool all_lanes = true;   // all lanes run
  bool apart = false;      // no such assumption: lanes may diverge
  bool alone = false;      // there is only one lane
  bool by_double = false;  // f32 is computed in f64, because its values are subnormal
};
// Plans of one phase with the same number give the same code.
uint64_t number_of(const Plan& plan);
// Returns no value if the phase cannot be compiled.
std::optional<Plan> make_plan(const Flow& flow, const Phase& phase, Warp& warp, Taken taken);

Pattern2 header_steps(const Affine& header, uint32_t row_lanes, bool narrow);
int64_t header_warp_step(const Affine& header, bool narrow);

// f64 arithmetic, whose operands must not have NaNs with bits of their own (plan_kept.cpp).
bool is_wide_arithmetic(const Meaning& meaning);

// Is it a load with one address per lane?
bool is_gather(const Plan& plan, const Step& step);
int64_t gathers(const Plan& plan);

// Values of 8 and 16 bits are kept in 32 bits, with zeros above; the frame has 16 bits of them.
inline uint32_t lane_bytes(uint32_t bytes) { return bytes < 4 ? 4 : bytes; }
// Vectors per strip.
inline uint32_t halves_of(uint32_t bytes) { return bytes == 8 ? 2 : 1; }
// Bytes that a load or a store moves per lane.
inline uint32_t memory_bytes(const Step& step) {
  const Meaning& m = step.meaning;
  return bytes_of(is_small(m.from) ? m.from : m.type);
}
inline bool is_small_load(const Step& step) { return is_small(step.meaning.from); }
inline bool is_small_step(const Step& step) {
  return is_small(step.meaning.type) || is_small(step.meaning.from);
}
bool has_small(const Plan& plan);

// How far each lane is above the first: step * column + row_step * row (plan_kept.cpp).
struct Rises {
  Rises(const Pattern2& steps, uint32_t row_lanes);
  // Do the 32 values at `lanes` rise like this?
  bool hold(const std::byte* lanes, uint32_t bytes) const;

  uint64_t wide[kWarpSize];
  uint32_t narrow[kWarpSize];
};

}  // namespace kiln::engine
