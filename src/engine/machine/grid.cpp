// SPDX-License-Identifier: Apache-2.0
// How does a thread run blocks? It takes them from the grid's counter, keeps frames for the next
// ones, and opens more blocks if all that it has wait for others. pool.cpp decides which threads do
// so.
#include "engine/machine/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>

#include "engine/machine/events.h"
#include "engine/machine/fault.h"
#include "engine/machine/schedule.h"
#include "engine/machine/spins.h"

namespace kiln::engine {

void Grid::report(int code, std::string text) noexcept {
  std::lock_guard lock(fault_mutex);
  if (fault_code == 0) {
    fault_code = code;
    fault_text = std::move(text);
  }
  stop.store(true);
}

void Worker::destroy(Frame* frame) noexcept {
  Frame*& from = frame->previous_made ? frame->previous_made->next_made : made_;
  from = frame->next_made;
  if (frame->next_made) frame->next_made->previous_made = frame->previous_made;
  budget_->release(frame->bytes);
  frame->~Frame();
  ::operator delete (frame, std::align_val_t{64});
}

Worker::~Worker() { drop_all(); }

std::byte* Worker::junk(uint32_t bytes) {
  std::vector<JunkLine>& lines = junk_[bytes];
  if (lines.empty()) lines.resize(bytes / sizeof(JunkLine) + 1);
  return lines[0].bytes;
}

void Worker::drop_all() noexcept {
  for (auto& block : active_) {
    if (block && block->cluster) block->cluster->ended.clear();  // else each keeps the other alive
  }
  active_.clear();
  spare_blocks_.clear();
  pools_.clear();
  last_pool_ = 0;
  while (Frame* first = made_) {
    first->previous_made = nullptr;  // nothing precedes the first; the analyser does not know it
    destroy(first);
  }
}

Worker::Pool& Worker::pool_of(const Program& program) {
  auto fits = [&](const Pool& pool) {
    return pool.program == &program && pool.serial == program.serial;
  };
  if (last_pool_ < pools_.size() && fits(pools_[last_pool_])) return pools_[last_pool_];
  for (last_pool_ = 0; last_pool_ < pools_.size(); ++last_pool_) {
    if (fits(pools_[last_pool_])) return pools_[last_pool_];
  }
  // Programs disappear with their image. A pool of such a program is recognised by its serial, and
  // all pools are dropped when there are many.
  if (pools_.size() >= 64) {
    for (Pool& old : pools_) {
      while (old.free) {
        Frame* frame = old.free;
        old.free = frame->next_free;
        destroy(frame);
      }
    }
    pools_.clear();
  }
  pools_.push_back({&program, program.serial});
  last_pool_ = pools_.size() - 1;
  return pools_.back();
}

// Out of line, because acquire() usually finds a frame.
[[gnu::noinline]] Frame* Worker::make_frame(const Program& program, const Grid& grid) {
  const uint64_t bytes = sizeof(Frame) + program.frame_bytes;
  if (!budget_->reserve(bytes, grid.settings.memory_limit_bytes)) return nullptr;
  void* memory = ::operator new (bytes, std::align_val_t{64}, std::nothrow);
  if (!memory) {
    budget_->release(bytes);
    return nullptr;
  }
  std::memset(memory, 0, bytes);
  Frame* frame = new (memory) Frame;
  frame->program = &program;
  frame->bytes = bytes;
  frame->next_made = made_;
  if (made_) made_->previous_made = frame;
  made_ = frame;
  if (!program.image.empty())
    std::memcpy(frame->data(), program.image.data(), program.image.size());
  return frame;
}

namespace {

// Once per frame and launch.
[[gnu::noinline]] void fill_parameters(const Program& program, const Grid& grid, Frame* frame) {
  for (const ParameterSlot& slot : program.parameters) {
    uint64_t value = 0;
    std::memcpy(&value, grid.parameters() + slot.parameter_offset, slot.bytes);
    if (slot.sign_extend && slot.bytes < 8) {
      int shift = 64 - slot.bytes * 8;
      value = static_cast<uint64_t>(static_cast<int64_t>(value << shift) >> shift);
    }
    std::memcpy(frame->data() + slot.offset, &value, 8);
  }
}

}  // namespace

Frame* Worker::acquire(const Program& program, Grid& grid) {
  Pool& pool = pool_of(program);
  Frame* frame = pool.free;
  if (frame) [[likely]] {
    pool.free = frame->next_free;
  } else if (frame = make_frame(program, grid); !frame) {
    return nullptr;
  }
  if (frame->epoch != grid.epoch) [[unlikely]] {
    frame->epoch = grid.epoch;
    frame->served_block = ~uint64_t{0};
    if (&program == grid.program) fill_parameters(program, grid, frame);
  }
  return frame;
}

std::span<const Worker::BlockRise> Worker::block_rises(const Program& program, const Block& block,
                                                       const Frame& frame) {
  const uint64_t epoch = block.grid->epoch, row = uint64_t{block.z} << 32 | uint64_t{block.y};
  if (rises_epoch_ == epoch && rises_serial_ == program.serial &&
      (!program.steps_differ_by_row || rises_row_ == row)) [[likely]]
    return block_rises_;
  const auto* const registers = reinterpret_cast<const std::byte*>(&frame + 1);
  block_rises_.clear();
  for (const BlockStep& step : program.block_steps) {
    uint64_t sum = step.count == 0 ? 1 : 0;
    for (uint32_t p = 0; p < step.count; ++p) {
      const BlockStep::Part& part = step.parts[p];
      uint64_t rise = block_rises_[part.from].by;
      if (part.widens)
        rise = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(rise)));
      uint64_t factor = 0;
      if (part.factor) std::memcpy(&factor, registers + part.factor, part.factor_bytes);
      if (part.is_signed && part.factor_bytes == 4)
        factor = static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(factor)));
      if (part.shifts)
        rise = factor < 64 ? rise << factor : 0;
      else if (part.factor)
        rise *= factor;
      sum += part.negative ? 0 - rise : rise;
    }
    block_rises_.push_back({sum, step.offset, step.check});
  }
  rises_epoch_ = epoch;
  rises_serial_ = program.serial;
  rises_row_ = row;
  return block_rises_;
}

void Worker::release(Frame* frame) noexcept {
  auto keep = [&](Pool& pool) {
    frame->next_free = pool.free;
    pool.free = frame;
  };
  if (last_pool_ < pools_.size() && pools_[last_pool_].program == frame->program) {
    keep(pools_[last_pool_]);
    return;
  }
  for (Pool& pool : pools_) {
    if (pool.program == frame->program && pool.serial == frame->program->serial) {
      keep(pool);
      return;
    }
  }
  destroy(frame);
}

namespace {

[[gnu::cold]] void watch_block(const Block& block, bool ended) {
  if (block.grid->wanted & kBlockEvents)
    block.grid->sink->on(BlockEvent{block.number, {block.x, block.y, block.z}, ended});
}

// If all blocks are resident, or none waits for another, any order is possible.
[[gnu::cold]] uint64_t in_schedule(const Grid& grid, uint64_t index) {
  const uint64_t all = grid.block_count / grid.cluster_size;
  const bool waits = grid.program->may_wait && !grid.cooperative;
  const uint64_t window = waits ? kResidentBlocks / grid.cluster_size : all;
  return scheduled_in(window, index, all, grid.settings.schedule);
}

}  // namespace

// Threads take small runs of blocks. One at a time, they would contend for the counter; a fixed
// share for each would leave cores idle if blocks differ in length. Blocks of a cluster open
// together because they may wait for each other.
bool Worker::open_next(Grid& grid) {
  if (next_ == end_) {
    const uint64_t all = grid.block_count / grid.cluster_size;
    next_ =
        std::min(grid.next_block.fetch_add(grid.blocks_at_once, std::memory_order_relaxed), all);
    end_ = std::min(next_ + grid.blocks_at_once, all);
    if (next_ == end_) return false;
  }
  uint64_t index = next_++;
  if (grid.settings.schedule) [[unlikely]]
    index = in_schedule(grid, index);
  auto open = [&](KilnDim3 at) {
    std::unique_ptr<Block> block;
    if (spare_blocks_.empty()) {
      block = std::make_unique<Block>();
    } else {
      block = std::move(spare_blocks_.back());
      spare_blocks_.pop_back();
    }
    block->start(grid, *this, at);
    if (grid.sink) [[unlikely]]
      watch_block(*block, false);
    active_.push_back(std::move(block));
    return active_.back().get();
  };
  const KilnDim3& size = grid.cluster_dim;
  const uint32_t columns = grid.grid_dim.x / size.x, rows = grid.grid_dim.y / size.y;
  const KilnDim3 first{static_cast<uint32_t>(index % columns) * size.x,
                       static_cast<uint32_t>(index / columns % rows) * size.y,
                       static_cast<uint32_t>(index / columns / rows) * size.z};
  if (grid.cluster_size == 1) {
    open(first);
    return true;
  }
  auto cluster = std::make_shared<Cluster>();
  cluster->live_threads = grid.cluster_size * grid.threads_per_block;
  for (uint32_t rank = 0; rank < grid.cluster_size; ++rank) {
    Block* block = open({first.x + rank % size.x, first.y + rank / size.x % size.y,
                         first.z + rank / size.x / size.y});
    block->cluster = cluster;
    cluster->blocks.push_back(block);
  }
  return true;
}

void Worker::close(std::unique_ptr<Block> block) {
  if (block->grid->sink) [[unlikely]]
    watch_block(*block, true);
  auto keep = [&](std::unique_ptr<Block> spare) {
    spare->cluster.reset();
    if (spare_blocks_.size() < 4) spare_blocks_.push_back(std::move(spare));
  };
  std::shared_ptr<Cluster> cluster = block->cluster;
  if (!cluster) {
    keep(std::move(block));
    return;
  }
  // Other blocks may still read its shared memory.
  cluster->ended.push_back(std::move(block));
  if (cluster->ended.size() < cluster->blocks.size()) return;
  for (auto& ended : cluster->ended) keep(std::move(ended));
  cluster->ended.clear();
}

// A round is a block, or a turn of each of its warps: some milliseconds in all.
constexpr uint32_t kRoundsBetweenPolls = 64;
// How long all blocks of all workers must wait without progress before this counts as a deadlock. A
// loop around an mbarrier may also watch a word that another block writes, and a block that has not
// reached grid.sync() may watch one that the host writes.
constexpr std::chrono::milliseconds kStuck{500}, kStuckGrid{3000};

namespace {

// How long have all blocks of this worker, and those of all other workers, waited without progress?
class Standstill {
 public:
  explicit Standstill(Grid& grid) : grid_(grid) { grid_.workers.fetch_add(1); }
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;
  ~Standstill() {
    moved();
    grid_.workers.fetch_sub(1);
  }
  void moved() {
    if (counted_) grid_.stuck_workers.fetch_sub(1);
    counted_ = seen_ = false;
    rounds_ = 0;
  }
  // Called after each round without progress. Returns true if it is a deadlock.
  bool lasts(bool patient) {
    if (++rounds_ % kRoundsBetweenPolls != 0) return false;
    const auto now = std::chrono::steady_clock::now();
    if (rounds_ == kRoundsBetweenPolls) since_ = now;
    if (now - since_ < (patient ? kStuckGrid : kStuck)) return false;
    if (!counted_) grid_.stuck_workers.fetch_add(1);
    counted_ = true;
    // Checks twice, with rounds in between: the last action of a worker that has just ended may
    // release these blocks.
    const bool before = seen_;
    seen_ = grid_.stuck_workers.load() == grid_.workers.load();
    return before && seen_;
  }

 private:
  Grid& grid_;
  uint64_t rounds_ = 0;
  bool counted_ = false, seen_ = false;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace

void Worker::run_blocks(Grid& grid) noexcept {
  try {
    run_to_the_end(grid);
    return;
  } catch (const std::bad_alloc&) {
    grid.report(kMemoryAllocation, {});
  } catch (const std::exception& error) {
    // Prints what() without formatting a message, which would need memory again.
    std::fprintf(stderr, "kiln: a bug in the engine: %s\n", error.what());
    grid.report(kUnknown, {});
  }
  drop_all();
}

void Worker::run_to_the_end(Grid& grid) {
  if (budget_ != grid.device->budget) {
    drop_all();
    budget_ = grid.device->budget;
  }
  for (CachedRegion& region : cache_) region = {};
  next_ = end_ = 0;
  // A block whose warps all spin waits for another block, so that one is opened too. The limit is
  // more than a spin on a neighbour needs; in a cooperative launch all blocks are resident.
  const size_t most = grid.cooperative ? ~size_t{0} : kResidentBlocks;
  Standstill standstill(grid);
  for (uint32_t rounds = 1; !grid.stop.load(std::memory_order_relaxed); ++rounds) {
    if (rounds % kRoundsBetweenPolls == 0 && grid.outside && grid.outside->raised()) {
      grid.interrupted.store(true);
      grid.report(kLaunchTimeout,
                  fmt::format("Interrupted by SIGINT\n  at {}", demangled(grid.program->name)));
      break;
    }
    if (active_.empty() && !open_next(grid)) break;
    for (size_t i = 0; i < active_.size() && !grid.stop.load(std::memory_order_relaxed);) {
      Outcome outcome = active_[i]->run();
      if (outcome == Outcome::Yielded) {
        ++i;
        continue;
      }
      close(std::move(active_[i]));
      active_.erase(active_.begin() + static_cast<long>(i));
    }
    const bool waits = std::ranges::any_of(active_, [](const auto& block) { return block->spins; });
    const bool opened = waits && active_.size() < most && open_next(grid);
    if (opened || active_.empty() ||
        !std::ranges::all_of(active_, [](const auto& block) { return block->stuck; })) {
      standstill.moved();
    } else if (standstill.lasts(grid.cooperative || (grid.sink && spins_on_memory(*active_[0])))) {
      active_[0]->report_deadlock();
    }
    if (waits) std::this_thread::yield();
  }
  for (auto& block : active_) {
    block->abandon();
    if (block->cluster) block->cluster->ended.clear();  // else each keeps the other alive
  }
  active_.clear();
}

}  // namespace kiln::engine
