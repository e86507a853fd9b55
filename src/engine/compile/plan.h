// SPDX-License-Identifier: Apache-2.0
// How does machine code keep the values of a phase?
//
// The first warp that comes to a phase shows what its values look like: an address that has risen
// by the same step from lane to lane is taken to do so always. What was taken is checked each time
// (Guard), and the interpreter goes on where it does not hold.
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
  Word,    // one value for all lanes, in a general register; a predicate: all ones or zero
  Splat,   // one value for all lanes, in each lane of a vector
  Steps,   // base + step * column + row_step * row of the lane; the base in a general register
  Vector,  // a vector for each strip of lanes; a predicate: a mask
};

enum class Slot : uint8_t { Lanes, Scalar, Predicate, Header };  // Header: of affine.h, only read

struct Pattern2 {
  int64_t step = 0, row_step = 0;
  bool operator==(const Pattern2&) const = default;
};

struct Variable {
  uint32_t slot = 0;
  Slot in = Slot::Lanes;
  uint32_t bytes = 4;
  bool home = false;       // what the slot holds between the phase's blocks
  bool input = false;      // has to be read from the frame
  bool written = false;    // in the phase
  bool arithmetic = true;  // every Op that writes it makes a NaN of f32 that is to be canonical
  bool wanted = false;     // an address or a branch depends on it
  bool decides = false;    // a branch does
  bool real = false;       // arithmetic of f32 or f64 reads it
  bool lazy = false;       // its NaNs are made canonical where their bits can be seen
  bool quiet = false;      // its NaNs are quiet
  bool flushed = true;     // f32: no lane is subnormal
  bool blended = false;    // written for the lanes that run alone
  bool clean = false;      // f64: all its NaNs have the bits that arithmetic gives them
  bool counted = false;    // f64 arithmetic reads it
  Kept kept = Kept::Unknown;
  Pattern2 steps;
  int64_t warp_step = 0;  // of a header, where each warp is a row: from one to the next
  uint64_t constant = 0;
  bool is_constant = false;
  bool held = false;  // a scalar that is taken to be `constant` always
  // Of a value that ends with its block: from behind the Op that writes it up to the one that
  // writes something else there.
  uint32_t from = 0, until = ~uint32_t{0};
};

// Where a load reads.
struct Place {
  enum class Of : uint8_t { Header, Variable } of = Of::Variable;
  uint32_t header = 0;  // its slot
  uint32_t variable = 0;
  Pattern2 steps;         // in bytes, of a header
  int64_t warp_step = 0;  // as of a variable
};

// Does f32 arithmetic take a hundred times as long where a value is subnormal? That of f64 does
// not, of the same values, and neither do conversions.
#if defined(__x86_64__)
constexpr bool kSubnormalsAreSlow = true;
#else
constexpr bool kSubnormalsAreSlow = false;
#endif

// One Op of the phase.
struct Step {
  uint32_t index = 0;
  Op op;
  Meaning meaning;
  std::optional<uint32_t> d, a, b, c;  // variables
  List<uint32_t> reads, writes;        // of Does::Warpwide; `d` is the first that it writes
  // Of a shuffle: the lane that each reads, and those that keep their own.
  struct Exchange {
    uint8_t from[kWarpSize];
    uint32_t in_range;
    // All lanes read those whose number differs in some bits: these.
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
  uint32_t align = 0;  // of an address: that of all elements together
  // Of a store that a branch leads around: for these lanes, or for the others.
  std::optional<uint32_t> under;
  bool under_not = false;
  uint32_t under_end = 0;  // the Op that the branch leads to
  // Where the interpreter goes on if a check fails: at the Op, or at the branch around it.
  uint32_t resume = 0;
};

// Does its handler do it?
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

// Local memory: each lane has its own place for the same address.
inline bool is_local(const Step& step) {
  return static_cast<ptx::Space>(step.op.z) == ptx::Space::Local;
}
// Memory of the block or of the warp: its addresses begin at 0, and one thread touches it.
inline bool is_own(ptx::Space space) {
  return space == ptx::Space::Shared || space == ptx::Space::Local;
}

// Where the interpreter goes on.
struct Exit {
  uint32_t target = 0;
  bool backward = false;   // the turn is used up
  bool early = false;      // before an Op that machine code cannot run as things are
  bool disagrees = false;  // lanes do, at a branch
  uint32_t behind = 0;     // Ops before this one have run, or a branch has led around them
};

struct Plan {
  Phase phase;
  uint32_t row_lanes = kWarpSize;  // of a row of values that rise by one step
  uint32_t header_rows = 0;        // the same of headers; 0: they have none
  List<Step> steps;
  List<Variable> variables;
  ListedMap<uint32_t, uint32_t> home;  // by slot
  // A branch depends on what a load gets: all lanes have to go through it together, for memory may
  // have changed until others come.
  bool memory_decides = false;
  bool calls = false;      // some handler: all lanes at once
  bool exchanges = false;  // lanes, without a handler: all at once too
  // Lanes may disagree at a branch: all go up to it together, and if they do, the interpreter goes
  // on there.
  bool lanes_decide = false;
  // It is all that a warp runs, up to its end: what the next warp begins with differs from what
  // this one does by the base of its values of base and step (emit_warps.cpp).
  bool whole = false;
  bool meets = false;  // Flow::meets()
  // How far the lanes' local memory is apart, where any is touched: checked each time.
  uint32_t local_stride = 0;
  // A loop that lanes leave one after the other, or that some lanes of a warp come to: those that
  // do not run keep their values (emit_masks.cpp).
  bool masked = false;
  // The same of any phase: lanes go apart at branches and meet again (emit_masks.cpp). `some`: the
  // others may have no memory where base and step lead to.
  bool apart = false, some = false;
  bool by_double = false;  // as of Taken
};

// What the code may take for granted.
struct Taken {
  bool patterns = true;  // that values go on to look as they do in this warp
  // That scalars that steps are multiplied by stay the same, that base and step is never clamped,
  // and that all lanes agree where it is compared.
  bool steps_hold = false;
  bool all_lanes = true;   // that all lanes run
  bool apart = false;      // nothing: lanes may go apart
  bool by_double = false;  // f32 is computed by way of f64, for its values are subnormal
};
// Plans of one phase with the same number make the same code.
uint64_t number_of(const Plan& plan);
// Nothing: the phase cannot be compiled.
std::optional<Plan> make_plan(const Flow& flow, const Phase& phase, Warp& warp, Taken taken);

Pattern2 header_steps(const Affine& header, uint32_t row_lanes, bool narrow);
int64_t header_warp_step(const Affine& header, bool narrow);

// f64 arithmetic, which asks of its operands that NaNs have no bits of their own (plan_kept.cpp).
bool is_wide_arithmetic(const Meaning& meaning);

// Does it load from an address for each lane?
bool is_gather(const Plan& plan, const Step& step);
int64_t gathers(const Plan& plan);

// Values of 8 and 16 bits are kept as 32, the upper bits zero; the frame has 16 of them.
inline uint32_t lane_bytes(uint32_t bytes) { return bytes < 4 ? 4 : bytes; }
// Vectors of a strip.
inline uint32_t halves_of(uint32_t bytes) { return bytes == 8 ? 2 : 1; }
// What a load or a store moves for a lane.
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
  // Do the 32 values at `lanes` rise so?
  bool hold(const std::byte* lanes, uint32_t bytes) const;

  uint64_t wide[kWarpSize];
  uint32_t narrow[kWarpSize];
};

}  // namespace kiln::engine
