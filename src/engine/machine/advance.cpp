// SPDX-License-Identifier: Apache-2.0
#include "engine/machine/advance.h"

#include "engine/machine/schedule.h"
#include "engine/machine/warp.h"

namespace kiln::engine {

namespace {

// The first warp whose values differ in more than the base: one in another row or, with narrow
// rows, with another %tid.z.
uint32_t end_of_row(const Warp& warp) {
  const Grid& grid = *warp.block->grid;
  const KilnDim3& dim = grid.block_dim;
  const bool narrow = grid.program->narrow_rows;
  if (dim.z == 1 && (dim.y == 1 || narrow)) return warp.block->warp_count;
  const uint32_t threads = narrow ? dim.x * dim.y : dim.x, warps = threads / kWarpSize;
  return threads % kWarpSize ? 0 : (warp.index / warps + 1) * warps;
}

}  // namespace

// If no value wraps around at the last warp, none does before, because each value only increases or
// only decreases.
uint32_t followers(const Warp& warp) {
  const Block& block = *warp.block;
  const Grid& grid = *block.grid;
  const Program& program = *grid.program;
  const uint32_t next = warp.index + 1;
  const uint32_t full = std::min(end_of_row(warp), grid.threads_per_block / kWarpSize);
  if (next != block.started || next >= full || grid.has_barriers || block.cluster) return 0;
  if (!warp.splits.empty() || !warp.copies.empty() || !warp.groups.empty()) return 0;
  const int64_t count = full - next;
  // All warps of the previous block could follow, and the new values are small.
  if (warp.kernel_frame->stepped_block == block.number && warp.index == 0)
    return static_cast<uint32_t>(count);
  const int64_t rows = program.narrow_rows ? count * (kWarpSize / grid.block_dim.x) : 0;
  uint32_t lanes = 0;
  bool all_small = true;  // 1,024 more threads change nothing
  for (const Advance& each : program.advances) {
    const Affine& value = *reinterpret_cast<const Affine*>(warp.registers + each.offset);
    lanes |= static_cast<uint32_t>(value.state) & static_cast<uint32_t>(AffineState::Lanes);
    if (each.check) all_small &= is_small(value);
  }
  if (lanes) return 0;
  if (all_small) return static_cast<uint32_t>(count);
  for (const Advance& each : program.advances) {
    const Affine& value = *reinterpret_cast<const Affine*>(warp.registers + each.offset);
    if (!each.check) continue;
    if (program.narrow_rows ? rows_wrap_around(value, rows, each.check)
                            : wraps_around(value, count * kWarpSize, each.check))
      return 0;
  }
  return static_cast<uint32_t>(count);
}

void become(Warp& warp, uint32_t behind, bool ends) {
  Block& block = *warp.block;
  const Program& program = *block.grid->program;
  Frame& frame = *warp.kernel_frame;
  const uint32_t last = warp.index + behind;
  std::fill_n(block.finished.begin() + warp.index, behind, uint8_t{1});
  block.finished_count += behind;
  block.live_threads -= std::min(behind * kWarpSize, block.live_threads);
  std::swap(block.warps[warp.index], block.warps[last]);
  block.started = last + 1;
  warp.index = frame.served_warp = last;
  if (ends && last + 1 == block.warp_count) {
    if (last == behind) frame.begun_block = block.number;
    return;
  }
  const uint32_t rows =
      program.narrow_rows ? behind * (kWarpSize / block.grid->block_dim.x) : behind;
  for (const Advance& each : program.advances) {  // followers() has checked them
    Affine& value = *reinterpret_cast<Affine*>(frame.data() + each.offset);
    value.base += program.narrow_rows ? value.row_step * rows : value.step * (rows * kWarpSize);
    value.state = AffineState::Steps;
  }
}

}  // namespace kiln::engine
