// SPDX-License-Identifier: Apache-2.0
// How are values stored that increase by the same step from lane to lane? As base and step, so that
// an index or an address for 32 lanes costs two additions. %tid.x is such a value if rows of the
// block fill whole warps. Sums of such values, and sums and products with scalars, are such values
// too.
//
// In a block of 16 x 16 or 8 x 8 threads a warp has several rows. Values then have a second step,
// from row to row, and %tid.y is such a value too. What is said about steps below holds for both.
//
// Like scalars, they are written only by registers that are written once, from values that do not
// change while the warp lives. So they do not change either, whatever path each lane takes.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/machine/warp.h"
#include "engine/program/program.h"

namespace kiln::engine {

enum class AffineState : uint32_t {
  Steps,  // base and steps are valid, the lanes are not written
  Both,   // base and steps are valid, and so are the lanes
  Lanes   // only the lanes are valid: a 32-bit value wrapped around before it was extended to 64
          // bits
};

// In the frame, the lanes follow this header.
struct alignas(64) Affine {
  uint64_t base = 0;
  uint64_t step = 0;
  AffineState state = AffineState::Steps;
  uint32_t bytes = 4;  // of a lane
  // Lane l is base + step * (l % row_lanes) + row_step * (l / row_lanes). row_lanes 0: one row.
  uint64_t row_step = 0;
  uint32_t row_lanes = 0;

  uint64_t at(uint32_t lane) const {
    return row_lanes ? base + step * (lane % row_lanes) + row_step * (lane / row_lanes)
                     : base + step * lane;
  }
};
constexpr uint32_t kAffineLanes = sizeof(Affine);  // offset of the lanes from the header

inline Affine& affine_at(Warp& warp, uint32_t offset) { return *warp.lanes<Affine>(offset); }
// Writes the lanes unless they are valid.
void materialize(Warp& warp, uint32_t offset);
const Op* run_materialize(Warp& warp, const Op* op);

enum class AffineKind : uint8_t {
  Add,
  Sub,
  Mul,
  Mad,
  ShiftLeft,  // in the width of the instruction
  WidenSigned,
  WidenUnsigned,
  Narrow,  // cvt
  MulWideSigned,
  MulWideUnsigned,
  MadWideSigned,
  MadWideUnsigned
};

// An operand: a header in the frame, or a scalar.
struct AffineTerm {
  uint32_t offset = 0;
  bool affine = false;
};

// If an operand has only lanes, the affine Op runs the ordinary Op on lanes instead.
struct AffineOp {
  AffineKind kind = AffineKind::Add;
  AffineTerm terms[3];
  Op on_lanes;
};

// `bytes`: of the operands; `rows`: values have a step from row to row.
Handler affine_handler(AffineKind kind, uint32_t bytes, bool rows);

// The first and the last lane as numbers of T. Returns false if a lane wraps around.
template <class T>
bool affine_ends(const Affine& value, T* first, T* last) {
  if (value.state == AffineState::Lanes) return false;
  *first = static_cast<T>(value.base);
  using Signed = std::make_signed_t<T>;
  Signed span;
  return !__builtin_mul_overflow(static_cast<Signed>(value.step),
                                 static_cast<Signed>(kWarpSize - 1), &span) &&
         !__builtin_add_overflow(*first, span, last);
}

// The smallest and the largest lane of several rows. Returns false if a lane wraps around. The
// corners are enough, because the value is monotonic along each row and from row to row. Rows
// divide a warp.
template <class T>
bool affine_bounds(const Affine& value, T* least, T* most) {
  if (value.state == AffineState::Lanes) return false;
  using Signed = std::make_signed_t<T>;
  const uint32_t columns = value.row_lanes ? value.row_lanes : kWarpSize;
  using Wide = std::conditional_t<sizeof(T) == 4, int64_t, __int128>;
  const Wide first = static_cast<T>(value.base);
  const Wide along = Wide{static_cast<Signed>(value.step)} * (columns - 1);
  const Wide down =
      Wide{static_cast<Signed>(value.row_step)} * ((kWarpSize >> std::countr_zero(columns)) - 1);
  const Wide low = first + (along < 0 ? along : 0) + (down < 0 ? down : 0);
  const Wide high = first + (along > 0 ? along : 0) + (down > 0 ? down : 0);
  if (low < std::numeric_limits<T>::min() || high > std::numeric_limits<T>::max()) return false;
  *least = static_cast<T>(low);
  *most = static_cast<T>(high);
  return true;
}

}  // namespace kiln::engine
