// SPDX-License-Identifier: Apache-2.0
// How are the indices of a kiln::View checked? (ptx/view_check.h describes the PTX.)
//
// Most indices are the same for a warp, or increase by one step from lane to lane; then one or two
// comparisons are enough for all lanes. The address of the data is only used in the message.
#include <algorithm>
#include <bit>

#include "engine/decode/fuse.h"
#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings.h"
#include "engine/machine/affine.h"
#include "engine/machine/fault.h"

namespace kiln::engine {
namespace {

// How a value is stored: Op::x for the index, y for the size, z for the data.
enum Kept : uint8_t { kLanes, kScalar, kSteps, kRowSteps };

template <class T>
T value_at(Warp& warp, uint32_t offset, uint8_t kept, uint32_t lane) {
  if (kept < kSteps) return warp.lanes<T>(offset)[kept == kScalar ? 0 : lane];
  const Affine& value = affine_at(warp, offset);
  if (value.state == AffineState::Lanes) return warp.lanes<T>(offset + kAffineLanes)[lane];
  return static_cast<T>(value.at(lane));
}

bool is_inside(int64_t index, int64_t size) { return index >= 0 && index < size; }

// Checks each active lane by itself.
[[gnu::noinline]] const Op* check_lanes(Warp& warp, const Op* op) {
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
    const auto index = value_at<int64_t>(warp, op->a, op->x, lane),
               size = value_at<int64_t>(warp, op->b, op->y, lane);
    if (is_inside(index, size)) continue;
    if (!index_out_of_bounds(warp, op, lane, index, size, op->imm,
                             value_at<uint64_t>(warp, op->c, op->z, lane)))
      return nullptr;
  }
  return op + 1;
}

// The next op->d Ops check the same index against other sizes (fuse_checks). As unsigned numbers,
// indices below 0 are beyond every limit.
uint64_t least_size(Warp& warp, const Op* op) {
  int64_t least = *warp.lanes<int64_t>(op->b);
  for (uint32_t i = 1; i <= op->d; ++i) least = std::min(least, *warp.lanes<int64_t>(op[i].b));
  return static_cast<uint64_t>(std::max<int64_t>(least, 0));
}
const Op* behind_all(const Op* op) { return op + 1 + op->d; }

const Op* run_check_scalar(Warp& warp, const Op* op) {
  if (*warp.lanes<uint64_t>(op->a) < least_size(warp, op)) return behind_all(op);
  return check_lanes(warp, op);
}

// All are inside if the first and the last lane are, or if the first and the last active lane are:
// with a step this small no lane in between wraps around.
const Op* run_check_steps(Warp& warp, const Op* op) {
  constexpr uint64_t kSmall = uint64_t{1} << 32;
  const Affine& index = affine_at(warp, op->a);
  const uint64_t limit = least_size(warp, op), base = index.base, step = index.step;
  if (index.state != AffineState::Lanes && step + kSmall < 2 * kSmall) {
    if (base < limit && base + step * (kWarpSize - 1) < limit) return behind_all(op);
    const auto first = static_cast<uint32_t>(std::countr_zero(warp.mask));
    const auto last = kWarpSize - 1 - static_cast<uint32_t>(std::countl_zero(warp.mask));
    if (base + step * first < limit && base + step * last < limit) return behind_all(op);
  }
  return check_lanes(warp, op);
}

const Op* run_check_rows(Warp& warp, const Op* op) {
  int64_t least, most;
  if (affine_bounds<int64_t>(affine_at(warp, op->a), &least, &most) && least >= 0 &&
      static_cast<uint64_t>(most) < least_size(warp, op))
    return behind_all(op);
  return check_lanes(warp, op);
}

const Op* run_check_lanes(Warp& warp, const Op* op) {
  const uint64_t* index = warp.lanes<uint64_t>(op->a);
  const uint64_t limit = least_size(warp, op);
  uint64_t outside = 0;
  for (uint32_t i = 0; i < kWarpSize; ++i) outside |= uint64_t{index[i] >= limit};
  return outside ? check_lanes(warp, op) : behind_all(op);
}

// Keeps a scalar or a value of base and step as it is; otherwise uses lanes.
bool keep(Lowering& l, const ptx::Operand& operand, uint32_t* offset, uint8_t* kept) {
  AffineTerm term;
  Source source;
  if (l.affine_term(operand, ptx::Type::s64, &term, &source)) {
    *offset = term.offset;
    *kept = !term.affine ? kScalar : l.variant().narrow_rows() ? kRowSteps : kSteps;
    return true;
  }
  if (!l.source(operand, ptx::Type::s64, &source)) return false;
  *offset = source.offset;
  *kept = source.uniform ? kScalar : kLanes;
  return true;
}

Handler handler_of(uint8_t index, uint8_t size) {
  if (size != kScalar) return &check_lanes;
  return index == kScalar     ? &run_check_scalar
         : index == kSteps    ? &run_check_steps
         : index == kRowSteps ? &run_check_rows
                              : &run_check_lanes;
}

}  // namespace

bool is_index_check(Handler handler) {
  return handler == &run_check_scalar || handler == &run_check_steps ||
         handler == &run_check_rows || handler == &run_check_lanes || handler == &check_lanes;
}

bool check_same_index(const Op& one, const Op& other) {
  return one.run == other.run && one.run != &check_lanes && one.a == other.a;
}

bool check_bounds(Lowering& l) {
  Op made;
  if (!keep(l, l.operand(0), &made.a, &made.x) || !keep(l, l.operand(1), &made.b, &made.y) ||
      !keep(l, l.operand(2), &made.c, &made.z)) {
    return false;
  }
  Op& op = l.emit(handler_of(made.x, made.y));
  op.a = made.a;
  op.b = made.b;
  op.c = made.c;
  op.x = made.x;
  op.y = made.y;
  op.z = made.z;
  op.imm = static_cast<int64_t>(l.operand(3).bits);
  return true;
}

}  // namespace kiln::engine
