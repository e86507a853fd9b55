// SPDX-License-Identifier: Apache-2.0
// How does a block run? Its warps take turns on one thread.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "engine/machine/advance.h"
#include "engine/machine/affine.h"
#include "engine/machine/events.h"
#include "engine/machine/fault.h"
#include "engine/machine/schedule.h"
#include "engine/machine/warp.h"
#include "engine/memory/fill.h"

namespace kiln::engine {

ThreadId thread_of(const Warp& warp, uint32_t lane) {
  const KilnDim3& dim = warp.block->grid->block_dim;
  uint32_t linear = warp.index * kWarpSize + lane;
  if (linear == 0) return {0, 0, 0};  // saves four divisions per block
  return {linear % dim.x, linear / dim.x % dim.y, linear / dim.x / dim.y};
}

namespace {

uint32_t lane_special(const Warp& warp, Special special, uint32_t lane) {
  const ThreadId thread = thread_of(warp, lane);
  switch (special) {
#define SPECIAL(name, ptx, tier, value)
#define LANES(name, ptx, tier, lane_value, value) \
  case Special::name:                             \
    return lane_value;
#define ALSO(ptx, name)
#define CHANGING(name)
#include "engine/program/specials.def"
    default:  // all others are the same for every lane
      return 0;
  }
}

uint64_t warp_special(const Warp& warp, const Frame& frame, Special special) {
  const Block& block = *warp.block;
  const Grid& grid = *block.grid;
  const KilnDim3& cluster = grid.cluster_dim;
  const ThreadId thread = thread_of(warp, 0);
  switch (special) {
#define SPECIAL(name, ptx, tier, value) \
  case Special::name:                   \
    return value;
#define LANES(name, ptx, tier, lane_value, value) \
  case Special::name:                             \
    return value;
#define ALSO(ptx, name)
#define CHANGING(name) \
  case Special::name:  \
    break;
#include "engine/program/specials.def"
  }
  return 0;
}

Affine special_in_rows(const Warp& warp, Special special) {
  const KilnDim3& dim = warp.block->grid->block_dim;
  Affine value;
  value.row_lanes = dim.x;
  if (special == Special::TidY) {
    value.base = thread_of(warp, 0).y;
    value.row_step = 1;
  } else {
    value.step = 1;
    value.row_step = special == Special::LaneId && dim.x < kWarpSize ? dim.x : 0;
  }
  return value;
}

}  // namespace

void fill_specials(Warp& warp, Frame& frame, Tier from) {
  for (const SpecialSlot& slot : frame.program->specials) {
    if (slot.tier < from) break;  // those of a warp come first
    std::byte* to = frame.data() + slot.offset;
    if (!slot.lanes) {
      uint64_t value = warp_special(warp, frame, slot.special);
      std::memcpy(to, &value, 8);
      continue;
    }
    if (slot.affine && frame.program->narrow_rows) {
      *reinterpret_cast<Affine*>(to) = special_in_rows(warp, slot.special);
      continue;
    }
    if (slot.affine) {
      auto* value = reinterpret_cast<Affine*>(to);
      uint32_t first = warp.index * kWarpSize;
      *value = {slot.special == Special::TidX ? first % warp.block->grid->block_dim.x : 0, 1,
                AffineState::Steps, 4};
      continue;
    }
    uint32_t* lanes = reinterpret_cast<uint32_t*>(to);
    const KilnDim3& dim = warp.block->grid->block_dim;
    if (slot.special == Special::TidX && dim.y == 1 && dim.z == 1) {
      for (uint32_t i = 0; i < kWarpSize; ++i) lanes[i] = warp.index * kWarpSize + i;
    } else {
      for (uint32_t i = 0; i < kWarpSize; ++i) lanes[i] = lane_special(warp, slot.special, i);
    }
  }
}

void Block::start(Grid& of, Worker& by, KilnDim3 at) {
  grid = &of;
  worker = &by;
  x = at.x;
  y = at.y;
  z = at.z;
  live_threads = of.threads_per_block;
  shared_bytes = of.shared_bytes + of.reserved_bytes;
  // The vector is reused for many blocks. 1024 is the strictest alignment of shared memory.
  if (shared_storage.size() < shared_bytes + 1024) shared_storage.resize(shared_bytes + 1024);
  shared = shared_storage.data() +
           (1024 - reinterpret_cast<uintptr_t>(shared_storage.data()) % 1024) % 1024;
  fill_memory(shared, of.shared_bytes, of.settings.fill_word);
  if (of.reserved_bytes) std::memset(shared + of.shared_bytes, 0, of.reserved_bytes);
  number = at.x + uint64_t{of.grid_dim.x} * (at.y + uint64_t{of.grid_dim.y} * at.z);
  if (of.has_barriers) {
    for (Barrier& barrier : barriers) barrier = {};
    others_at_barrier = 0;
  }
  warp_count = (of.threads_per_block + kWarpSize - 1) / kWarpSize;
  while (warps.size() < warp_count) warps.push_back(std::make_unique<Warp>());
  finished.assign(warp_count, 0);
  finished_count = 0;
  started = 0;
  sync_sink = of.wanted & kSyncEvents ? of.sink : nullptr;
  ran = 0;
  tiering = of.settings.compile_after == kNeverCompile ? nullptr : of.program->tiering.get();
  if (tiering && of.settings.compile_after == 0) tiering->warm(0, 0);
}

namespace {

// Does it have special registers, besides those that advance, whose values differ in another warp
// of the row?
bool needs_specials(const Program& program) {
  return !program.specials.empty() && program.specials[0].tier == Tier::Warp;
}

// Computes the values of a block from those of the previous one along x (Program::block_steps); its
// Ops would compute the same. Returns false if some value is not known as base and step, or comes
// near the end of 32 bits and another value extends it to 64; then the Ops must run, for all
// values.
bool step_block(const Block& block, Frame& frame, uint64_t x) {
  const Program& program = *block.grid->program;
  if (program.block_steps.empty()) return false;
  const auto rises = block.worker->block_rises(program, block, frame);
  std::byte* const registers = frame.data();
  std::memcpy(registers + rises[0].offset, &x, 8);  // the first step is %ctaid.x
  uint32_t lanes = 0;                               // some header has only lanes
  bool all_small = true;
  for (const Worker::BlockRise& rise : rises.subspan(1)) {
    Affine& value = *reinterpret_cast<Affine*>(registers + rise.offset);
    lanes |= static_cast<uint32_t>(value.state) & static_cast<uint32_t>(AffineState::Lanes);
    if (rise.check) all_small &= is_small(value);  // small before and after, so it did not wrap
    value.base += rise.by;
    value.state = AffineState::Steps;
    if (rise.check) all_small &= is_small(value);
  }
  return !lanes && all_small;
}

// Returns the Op with which a warp begins. The Ops whose values the frame still has, of the launch
// or of the block, need not run again.
const Op* begin(Warp& warp, Frame& frame) {
  const Block& block = *warp.block;
  const Program& program = *block.grid->program;
  const Op* ops = block.tiering ? block.tiering->ops() : program.ops.data();
  warp.ops = ops;
  const uint64_t served = frame.served_block;
  const uint32_t before = frame.served_warp;
  const uint64_t begun = std::exchange(frame.begun_block, ~uint64_t{0});
  frame.stepped_block = ~uint64_t{0};
  frame.served_block = block.number;
  frame.served_warp = warp.index;
  if (begun == served && served + 1 == block.number && block.x != 0 && warp.index == 0 &&
      step_block(block, frame, block.x)) {
    frame.stepped_block = block.number;
    return ops + program.warp_start;
  }
  if (served == block.number) {
    const KilnDim3& dim = block.grid->block_dim;
    // With narrow rows: all threads of one %tid.z.
    const uint32_t row = program.narrow_rows ? dim.x * dim.y : dim.x;
    const bool same_row = dim.z == 1 && (dim.y == 1 || program.narrow_rows)
                              ? true
                              : before * kWarpSize / row == warp.index * kWarpSize / row;
    if (same_row && (program.narrow_rows ? advance_rows(program, frame, before, warp.index, dim.x)
                                         : advance(program, frame, before, warp.index))) {
      if (needs_specials(program)) fill_specials(warp, frame, Tier::Warp);
      return ops + program.warp_start;
    }
  }
  if (served != ~uint64_t{0}) {
    fill_specials(warp, frame, Tier::Block);
    return ops + program.block_start;
  }
  fill_specials(warp, frame);
  return ops;
}

// Returns null if there is no memory for its registers.
const Op* start_warp(Block& block, uint32_t index) {
  Warp& warp = *block.warps[index];
  Grid& grid = *block.grid;
  warp.index = index;
  const uint32_t count = grid.threads_per_block - index * kWarpSize;
  warp.alive = count >= kWarpSize ? kFullMask : (1u << count) - 1;
  warp.carry = 0;
  warp.cluster_parity = 0;
  warp.steps = 0;
  warp.penalties = 0;
  warp.at_barrier = false;
  warp.brought.lanes = warp.met_with.lanes = 0;
  if (!warp.copies.empty() || !warp.groups.empty()) {
    warp.copies.clear();
    warp.groups.clear();
  }
  if (warp.kernel_frame) {  // of the previous warp in this block, which has ended
    warp.local_limit = std::min(warp.local_limit, grid.program->local_bytes);
  } else {
    warp.block = &block;
    warp.worker = block.worker;
    warp.splits.clear();
    if (!warp.begin_local(*grid.program)) return nullptr;
    warp.kernel_frame = block.worker->acquire(*grid.program, grid);
    if (!warp.kernel_frame) return nullptr;
    warp.kernel_frame->parent = nullptr;
    warp.kernel_frame->depth = 0;
    warp.kernel_frame->local_offset = 0;
  }
  warp.kernel_frame->users = 1;
  warp.kernel_frame->stack_bytes = 0;
  if (grid.program->local_bytes) warp.fill_local(warp.alive, 0, grid.program->local_bytes);
  return begin(warp, *warp.kernel_frame);
}

[[gnu::cold]] void report_exhaustion(Grid& grid) {
  grid.report(
      kLaunchOutOfResources,
      fmt::format("Out of memory: the kernel needs {} bytes of registers and {} of local memory "
                  "per warp; all "
                  "warps that run "
                  "together may have {} MB, or less where the process has a limit\n  at {}",
                  grid.program->frame_bytes, uint64_t{grid.program->local_bytes} * kWarpSize,
                  grid.settings.memory_limit_bytes >> 20, demangled(grid.program->name)));
}

// Frames of callees are still in use if a launch stops in the middle.
void release_frames(Warp& warp) {
  for (const Split& split : warp.splits) {
    --split.frame->users;
    for (Frame* f = split.frame; f->users == 0 && f->parent;) {
      Frame* parent = f->parent;
      warp.worker->release(f);
      --parent->users;
      f = parent;
    }
  }
  warp.splits.clear();
  warp.at_barrier = false;
  if (warp.kernel_frame) warp.worker->release(warp.kernel_frame);
  warp.kernel_frame = nullptr;
}

// True for a kernel that neither waits nor has memory of its own.
bool has_simple_blocks(const Warp& warp) {
  const Block& block = *warp.block;
  const Grid& grid = *block.grid;
  const Program& program = *grid.program;
  return !(grid.sink || grid.settings.schedule || grid.shared_bytes || grid.reserved_bytes ||
           grid.has_barriers || block.cluster || program.has_calls || program.local_bytes ||
           !warp.copies.empty() || !warp.groups.empty());
}

// The last warp of such a block has ended. Closing the block and opening the next would cost as
// much as a short kernel computes.
const Op* begin_next_block(Warp& warp) {
  Block& block = *warp.block;
  const Grid& grid = *block.grid;
  const Program& program = *grid.program;
  if (!has_simple_blocks(warp) || block.finished_count + 1 != block.warp_count ||
      !block.worker->has_next(grid, block))
    return nullptr;
  block.worker->take_next();
  if (block.tiering)
    block.tiering->warm(block.ran + warp.steps + block.warp_count * program.ops.size(),
                        grid.settings.compile_after);
  ++block.number;
  if (++block.x == grid.grid_dim.x) {
    block.x = 0;
    if (++block.y == grid.grid_dim.y) block.y = 0, ++block.z;
  }
  block.live_threads = grid.threads_per_block;
  std::fill(block.finished.begin(), block.finished.end(), uint8_t{0});
  block.finished_count = 0;
  block.started = 1;
  block.ran = 0;
  std::swap(block.warps[0], block.warps[warp.index]);
  Frame& frame = *warp.kernel_frame;
  frame.users = 1;
  frame.stack_bytes = 0;
  warp.index = 0;
  warp.alive = warp.mask =
      grid.threads_per_block >= kWarpSize ? kFullMask : (1u << grid.threads_per_block) - 1;
  warp.carry = 0;
  warp.steps = warp.penalties = 0;
  warp.current_penalty = 0;
  return begin(warp, frame);
}

}  // namespace

const Op* go_on(Warp& warp) {
  Block& block = *warp.block;
  const Grid& grid = *block.grid;
  const Program& program = *grid.program;
  const uint32_t next = warp.index + 1;
  if (next == block.warp_count) return begin_next_block(warp);
  if (next != block.started || (next + 1) * kWarpSize > grid.threads_per_block) return nullptr;
  if (grid.block_dim.y != 1 || grid.block_dim.z != 1 || program.has_calls ||
      needs_specials(program))
    return nullptr;
  if (!warp.copies.empty() || !warp.groups.empty()) return nullptr;
  Frame& frame = *warp.kernel_frame;
  if (!advance(program, frame, warp.index, next)) {
    frame.served_block = ~uint64_t{0};  // some values are already those of the next warp
    return nullptr;
  }
  block.finished[warp.index] = 1;
  ++block.finished_count;
  std::swap(block.warps[warp.index], block.warps[next]);
  block.started = next + 1;
  warp.index = frame.served_warp = next;
  warp.alive = warp.mask = kFullMask;
  warp.carry = 0;
  warp.steps = warp.penalties = 0;
  warp.current_penalty = 0;
  frame.users = 1;
  frame.stack_bytes = 0;
  if (program.local_bytes) warp.fill_local(kFullMask, 0, program.local_bytes);
  return warp.ops + program.warp_start;
}

NextBlocks::NextBlocks(Warp& warp)
    : warp_(warp),
      can_(has_simple_blocks(warp) && !warp.block->grid->program->block_steps.empty() &&
           warp.splits.empty() && warp.index == 0 && warp.block->started == 1 &&
           warp.block->finished_count == 0) {}

bool NextBlocks::step() {
  Block& block = *warp_.block;
  const Grid& grid = *block.grid;
  if (!can_ || block.x + 1 == grid.grid_dim.x || !block.worker->has_next(grid, block)) return false;
  Frame& frame = *warp_.kernel_frame;
  if (!step_block(block, frame, block.x + 1)) {
    frame.served_block = ~uint64_t{0};  // all Ops must run: some values are the next block's
    return can_ = false;
  }
  block.worker->take_next();
  ++block.x;
  frame.served_block = frame.stepped_block = ++block.number;
  return true;
}

// Runs one turn of a warp, which may continue as warps after it; `i` is then the last of them.
// Returns false if the block must end.
[[gnu::always_inline]] inline bool Block::run_warp(uint32_t* i, const Op* first, bool* progress) {
  Warp& warp = *warps[*i];
  const Outcome outcome = warp.run(first);
  *progress |= warp.index != *i;
  const uint32_t last = *i = warp.index;
  stuck &= !warp.moved && outcome != Outcome::Finished;
  spins |= outcome == Outcome::Yielded;
  if (outcome == Outcome::Finished) {
    finished[last] = 1;
    ++finished_count;
    ran += warp.steps;
    *progress = true;
    if (last + 1 == started && last + 1 < warp_count) {
      // The next warp takes over everything from this one, including its frame.
      std::swap(warps[last], warps[last + 1]);
    } else {
      release_frames(warp);
    }
    return true;
  }
  return outcome != Outcome::Faulted && !grid->stop.load(std::memory_order_relaxed);
}

[[gnu::always_inline]] inline const Op* Block::begin_warp(uint32_t i) {
  started = i + 1;
  const Op* first = start_warp(*this, i);
  if (!first) [[unlikely]]
    report_exhaustion(*grid);
  return first;
}

// Every warp once, in the usual order.
[[gnu::always_inline]] inline bool Block::run_in_order(bool* progress) {
  reached = 0;
  for (uint32_t i = 0; i < warp_count; ++i) {
    if (finished[i]) continue;
    const Op* first = nullptr;
    if (i >= started && !(first = begin_warp(i))) return false;
    if (!run_warp(&i, first, progress)) return false;
    i = std::max(i, reached);
  }
  return true;
}

// Every warp once, in the order of the schedule. All have begun, so none continues as the next.
[[gnu::noinline]] bool Block::run_scheduled(bool* progress) {
  if (started == 0) {
    beginnings.assign(warp_count, nullptr);
    round = 0;
    for (uint32_t i = 0; i < warp_count; ++i) {
      if (!(beginnings[i] = begin_warp(i))) return false;
    }
  }
  order.resize(warp_count);
  std::iota(order.begin(), order.end(), 0u);
  shuffle(order, grid->settings.schedule, number, round++);
  for (uint32_t i : order) {
    if (finished[i]) continue;
    const Op* first = std::exchange(beginnings[i], nullptr);
    if (!run_warp(&i, first, progress)) return false;
  }
  return true;
}

// Runs every warp once. Returns false if the block must end.
[[gnu::always_inline]] inline bool Block::run_round(bool* progress) {
  *progress = spins = false;
  return grid->settings.schedule ? run_scheduled(progress) : run_in_order(progress);
}

bool Block::is_runnable() const {
  for (uint32_t i = 0; i < warp_count; ++i) {
    if (finished[i]) continue;
    if (i < started && warps[i]->at_barrier && warps[i]->met != meetings) return true;
    for (const Split& split : warps[i]->splits) {
      if (split.wait == Wait::None) return true;
    }
  }
  return false;
}

// Rounds after which other blocks get a turn, even if no warp spins.
constexpr uint32_t kRoundsAtOnce = 64;

// If warps have only met at barriers, they continue at once, because no other block could have done
// anything for them. A warp that used up its turn may wait for another block.
Outcome Block::run() {
  stuck = true;
  counts_warps = !grid->sink && !cluster;
  for (uint32_t rounds = 0; rounds < kRoundsAtOnce; ++rounds) {
    bool progress = false;
    if (!run_round(&progress)) {
      abandon();
      return Outcome::Faulted;
    }
    if (finished_count == warp_count) {
      if (tiering) {
        tiering->warm(ran + warp_count * grid->program->ops.size(), grid->settings.compile_after);
      }
      return Outcome::Finished;
    }
    if (!is_runnable() && !progress) {
      report_deadlock();
      abandon();
      return Outcome::Faulted;
    }
    if (spins || cluster) break;
  }
  return Outcome::Yielded;
}

void Block::abandon() {
  for (uint32_t i = 0; i < started; ++i) {
    if (!finished[i]) release_frames(*warps[i]);
    finished[i] = 1;
  }
  started = 0;
}

}  // namespace kiln::engine
