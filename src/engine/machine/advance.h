// SPDX-License-Identifier: Apache-2.0
// How does a frame continue with the next warp of a block? Values of base and step that increase
// with %tid.x (decode/hoist.h) get the next warp's base by one addition. Running their Ops again
// would cost more than the rest of a short kernel.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/machine/affine.h"

namespace kiln::engine {

// Advance::check: another value extends these 32 bits to 64, signed or unsigned. Where the 32 bits
// wrap around, the other value would not.
constexpr uint8_t kCheckSigned = 1, kCheckUnsigned = 2;

// True for most values: thousands of rows later they are still far from the end of 32 bits. Not for
// one that decreases, because it may soon reach 0 wherever it begins.
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

// Moves a frame that served warp `from` on to warp `to` in the same row of the block. Returns false
// if a value wraps around; then the Ops of the block must run.
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

// Like wraps_around(), for rows of a block with narrow rows. The corners are enough, as in
// affine_bounds(); 32-bit steps get nowhere near the end of 64 bits.
inline bool rows_wrap_around(const Affine& value, int64_t rows, uint8_t check) {
  const int64_t row_step = static_cast<int32_t>(value.row_step);
  if (is_small(value) && rows >= 0 && rows < int64_t{1} << 12) return false;
  const uint32_t columns = value.row_lanes ? value.row_lanes : kWarpSize;
  const int64_t along = int64_t{static_cast<int32_t>(value.step)} * (columns - 1);
  // A power of two, like everything that divides 32 lanes.
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

// The same in a block with narrow rows: the next warp has the next rows of the same %tid.z.
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

// Called when a warp has ended. Turns it into the next one of its block, or the first one of the
// next block, and returns the Op at which to continue, if this takes no more than advance() or the
// Ops of a block. Returns null if the block must start the next warp or has ended.
const Op* go_on(Warp& warp);

// The same for code that has run all warps of a block and left the block as it was when the first
// of them began: turns it into the next block along x if additions are enough.
class NextBlocks {
 public:
  explicit NextBlocks(Warp& warp);
  bool step();

 private:
  Warp& warp_;
  bool can_;
};

// For a warp that has just begun: how many of the next warps can follow with no more than
// advance()?
uint32_t followers(const Warp& warp);
// Turns the warp into the one `behind` places after it. The warps in between have ended; if `ends`,
// so has this one, and then nobody needs the values of the last warp of a block.
void become(Warp& warp, uint32_t behind, bool ends);

}  // namespace kiln::engine
