// SPDX-License-Identifier: Apache-2.0
// How does a frame go on from one warp of a block to the next? Values of base and step that rise
// with %tid.x (decode/hoist.h) get the next warp's base by one addition: running their Ops again
// would cost more than the rest of a short kernel.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/machine/affine.h"

namespace kiln::engine {

// Advance::check: another value has these 32 bits as 64, signed or not. Where they wrap around it
// would go on.
constexpr uint8_t kCheckSigned = 1, kCheckUnsigned = 2;

// Mostly: thousands of rows of it, which rise, are nowhere near an end. One that falls reaches 0
// soon, wherever it begins.
inline bool is_small(const Affine& value) {
  return (static_cast<uint32_t>(value.base) >> 29 | static_cast<uint32_t>(value.step) >> 10 |
          static_cast<uint32_t>(value.row_step) >> 15) == 0;
}

inline bool wraps_around(const Affine& value, int64_t lanes, uint8_t check) {
  const int64_t step = static_cast<int32_t>(value.step);
  auto stays = [&](int64_t before, int64_t least, int64_t most) {
    const int64_t first = before + step * lanes, last = first + step * (kWarpSize - 1);
    return first >= least && first <= most && last >= least && last <= most;
  };
  const uint32_t base = static_cast<uint32_t>(value.base);
  using Signed = std::numeric_limits<int32_t>;
  if ((check & kCheckSigned) && !stays(static_cast<int32_t>(base), Signed::min(), Signed::max()))
    return true;
  return (check & kCheckUnsigned) && !stays(base, 0, std::numeric_limits<uint32_t>::max());
}

// A frame that has served warp `from` of the same block goes on to warp `to` in the same row of it.
// False: some value wraps around; the Ops of the block have to run.
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

// As wraps_around, of as many rows of a block of narrow rows. The corners are enough, as in
// affine_bounds(); steps of 32 bits reach nowhere near the end of 64.
inline bool rows_wrap_around(const Affine& value, int64_t rows, uint8_t check) {
  const int64_t row_step = static_cast<int32_t>(value.row_step);
  if (is_small(value) && rows >= 0 && rows < int64_t{1} << 12) return false;
  const uint32_t columns = value.row_lanes ? value.row_lanes : kWarpSize;
  const int64_t along = int64_t{static_cast<int32_t>(value.step)} * (columns - 1);
  // A power of two, as all that 32 lanes are divided into.
  const int64_t down = row_step * ((kWarpSize >> std::countr_zero(columns)) - 1);
  const int64_t moved = row_step * rows;
  const int64_t low = moved + std::min<int64_t>(along, 0) + std::min<int64_t>(down, 0);
  const int64_t high = moved + std::max<int64_t>(along, 0) + std::max<int64_t>(down, 0);
  const auto base = static_cast<uint32_t>(value.base);
  const auto stays = [&](int64_t first, int64_t least, int64_t most) {
    return first + low >= least && first + high <= most;
  };
  using Signed = std::numeric_limits<int32_t>;
  if ((check & kCheckSigned) && !stays(static_cast<int32_t>(base), Signed::min(), Signed::max()))
    return true;
  return (check & kCheckUnsigned) && !stays(base, 0, std::numeric_limits<uint32_t>::max());
}

// The same in a block of narrow rows: the next warp has the next rows of the same %tid.z.
inline bool advance_rows(const Program& program, Frame& frame, uint32_t from, uint32_t to,
                         uint32_t row_lanes) {
  const int64_t rows = (int64_t{to} - int64_t{from}) * (kWarpSize / row_lanes);
  for (const Advance& each : program.advances) {
    Affine& value = *reinterpret_cast<Affine*>(frame.data() + each.offset);
    if (value.state == AffineState::Lanes) return false;
    if (each.check && rows_wrap_around(value, rows, each.check)) return false;
    value.base += value.row_step * static_cast<uint64_t>(rows);
    value.state = AffineState::Steps;
  }
  return true;
}

// A warp has ended. Makes it the next one of its block, or the first one of the next block, and
// returns the Op to go on with, where no more is needed for that than advance(), or running the Ops
// of a block; null: the block starts the next one, or has ended.
const Op* go_on(Warp& warp);

// The same for code that has run all warps of a block, which is as it was when the first of them
// began: makes it the next block along x, if that takes no more than additions.
class NextBlocks {
 public:
  explicit NextBlocks(Warp& warp);
  bool step();

 private:
  Warp& warp_;
  bool can_;
};

// Of a warp that has just begun: how many of those behind it can follow with no more than
// advance()?
uint32_t followers(const Warp& warp);
// Makes it the one that is so far behind it; those between have ended, and so has this one where it
// says so: then nobody needs the values of the last warp of a block.
void become(Warp& warp, uint32_t behind, bool ends);

}  // namespace kiln::engine
