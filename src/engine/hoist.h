// SPDX-License-Identifier: Apache-2.0
// Which Ops need not run for each warp? What is computed from parameters alone is the same for all warps of a launch;
// what is computed from %ctaid too, for all warps of a block. Such Ops are moved to the front of the kernel and run
// when a frame first serves a launch or a block.
//
// A value of base and step that is computed from %tid.x and such scalars is moved too: from one warp of a row of the
// block to the next its base rises by as many steps as there are lanes between them, so that the next warp gets it by
// one addition.
#pragma once

#include <limits>
#include <unordered_map>
#include <vector>

#include "engine/affine.h"

namespace kiln::engine {

// An Op in the order of the program.
struct PlacedOp {
  Op op;
  bool guarded = false;  // may not be moved
  Tier tier = Tier::Warp;
};

// `known`: slots that are filled before the first Op, with how long they hold. Sets the tiers of the Ops and
// Program::advances.
void find_tiers(Program& program, std::unordered_map<uint32_t, Tier> known, std::vector<PlacedOp>& ops);

Tier tier_of(Special special, bool lanes, bool affine);

// Advance::check: another value has these 32 bits as 64, signed or not. Where they wrap around it would go on.
constexpr uint8_t kCheckSigned = 1, kCheckUnsigned = 2;

inline bool wraps_around(const Affine& value, int64_t lanes, uint8_t check) {
  const int64_t step = static_cast<int32_t>(value.step);
  auto stays = [&](int64_t before, int64_t least, int64_t most) {
    const int64_t first = before + step * lanes, last = first + step * (kWarpSize - 1);
    return first >= least && first <= most && last >= least && last <= most;
  };
  const uint32_t base = static_cast<uint32_t>(value.base);
  using Signed = std::numeric_limits<int32_t>;
  if ((check & kCheckSigned) && !stays(static_cast<int32_t>(base), Signed::min(), Signed::max())) return true;
  return (check & kCheckUnsigned) && !stays(base, 0, std::numeric_limits<uint32_t>::max());
}

// A frame that has served warp `from` of the same block goes on to warp `to` in the same row of it. False: some value
// wraps around; the Ops of the block have to run.
inline bool advance(const Program& program, Frame& frame, uint32_t from, uint32_t to) {
  const int64_t lanes = (int64_t{to} - int64_t{from}) * kWarpSize;
  std::byte* registers = frame.data();
  for (const Advance& each : program.advances) {
    Affine& value = *reinterpret_cast<Affine*>(registers + each.offset);
    if (value.state == AffineState::Lanes) return false;
    if (each.check && wraps_around(value, lanes, each.check)) return false;
    value.base += value.step * static_cast<uint64_t>(lanes);
    value.state = AffineState::Steps;
  }
  return true;
}

// A warp has ended. Makes it the next one of its block and returns the Op to go on with, where no more is needed for
// that than advance(); null: the block starts the next one.
const Op* go_on(Warp& warp);

}  // namespace kiln::engine
