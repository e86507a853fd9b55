// SPDX-License-Identifier: Apache-2.0
// How do threads take blocks? The caller works too; the others come from a pool that is made when first needed, and
// made anew in the child of a fork.
#include "engine/grid.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "engine/budget.h"
#include "engine/environment.h"
#include "engine/fault.h"

namespace kiln::engine {

void Grid::report(int code, std::string text) {
  std::lock_guard lock(fault_mutex);
  if (fault_code == 0) {
    fault_code = code;
    fault_text = std::move(text);
  }
  stop.store(true);
}

namespace {

uint64_t bytes_of(const Program& program) { return sizeof(Frame) + program.frame_bytes; }

void destroy(Frame* frame) {
  release_memory(frame->bytes);
  frame->~Frame();
  ::operator delete (frame, std::align_val_t{64});
}

}  // namespace

Worker::~Worker() {
  for (Pool& pool : pools_) {
    for (Frame* frame : pool.free) destroy(frame);
  }
}

Frame* Worker::acquire(const Program& program, Grid& grid) {
  Pool* pool = nullptr;
  if (last_pool_ < pools_.size() && pools_[last_pool_].program == &program &&
      pools_[last_pool_].serial == program.serial) {
    pool = &pools_[last_pool_];
  }
  for (size_t i = 0; i < pools_.size() && !pool; ++i) {
    if (pools_[i].program != &program || pools_[i].serial != program.serial) continue;
    pool = &pools_[i];
    last_pool_ = i;
  }
  if (!pool) {
    // Programs go away with their image; a pool of one that is gone is found by its serial and dropped when there are
    // many.
    if (pools_.size() >= 64) {
      for (Pool& old : pools_) {
        for (Frame* frame : old.free) destroy(frame);
        old.free.clear();
      }
      pools_.clear();
    }
    pools_.push_back({&program, program.serial, {}});
    pool = &pools_.back();
  }
  Frame* frame = nullptr;
  if (pool->free.empty()) {
    const uint64_t bytes = bytes_of(program);
    if (!reserve_memory(bytes)) return nullptr;
    void* memory = ::operator new (bytes, std::align_val_t{64}, std::nothrow);
    if (!memory) {
      release_memory(bytes);
      return nullptr;
    }
    std::memset(memory, 0, bytes);
    frame = new (memory) Frame;
    frame->program = &program;
    frame->bytes = bytes;
    if (!program.image.empty()) std::memcpy(frame->data(), program.image.data(), program.image.size());
  } else {
    frame = pool->free.back();
    pool->free.pop_back();
  }
  if (frame->epoch != grid.epoch) {
    frame->epoch = grid.epoch;
    frame->served_block = ~uint64_t{0};
    if (&program == grid.program) {
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
  }
  return frame;
}

void Worker::release(Frame* frame) {
  if (last_pool_ < pools_.size() && pools_[last_pool_].program == frame->program) {
    pools_[last_pool_].free.push_back(frame);
    return;
  }
  for (Pool& pool : pools_) {
    if (pool.program == frame->program && pool.serial == frame->program->serial) {
      pool.free.push_back(frame);
      return;
    }
  }
  destroy(frame);
}

bool Worker::open_next(Grid& grid, std::vector<std::unique_ptr<Block>>* active) {
  if (next_ == end_) {
    const uint64_t all = grid.block_count / grid.cluster_size;
    next_ = std::min(grid.next_block.fetch_add(grid.blocks_at_once, std::memory_order_relaxed), all);
    end_ = std::min(next_ + grid.blocks_at_once, all);
    if (next_ == end_) return false;
  }
  const uint64_t index = next_++;
  auto open = [&](KilnDim3 at) {
    std::unique_ptr<Block> block;
    if (spare_blocks_.empty()) {
      block = std::make_unique<Block>();
    } else {
      block = std::move(spare_blocks_.back());
      spare_blocks_.pop_back();
    }
    block->start(grid, *this, at);
    active->push_back(std::move(block));
    return active->back().get();
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
    Block* block = open({first.x + rank % size.x, first.y + rank / size.x % size.y, first.z + rank / size.x / size.y});
    block->cluster = cluster;
    cluster->blocks.push_back(block);
  }
  return true;
}

void Worker::close(std::unique_ptr<Block> block) {
  auto keep = [&](std::unique_ptr<Block> spare) {
    spare->cluster.reset();
    if (spare_blocks_.size() < 4) spare_blocks_.push_back(std::move(spare));
  };
  std::shared_ptr<Cluster> cluster = block->cluster;
  if (!cluster) {
    keep(std::move(block));
    return;
  }
  // Others may still read its shared memory.
  cluster->ended.push_back(std::move(block));
  if (cluster->ended.size() < cluster->blocks.size()) return;
  for (auto& ended : cluster->ended) keep(std::move(ended));
  cluster->ended.clear();
}

// A block, or a turn of each of its warps: some milliseconds in all.
constexpr uint32_t kRoundsBetweenPolls = 64;
// So long must all blocks of all workers wait in vain before it is called a deadlock: a loop around an mbarrier may
// also watch a word that another block writes, and a block that has not come to grid.sync() one that the host writes.
constexpr std::chrono::milliseconds kStuck{500}, kStuckGrid{3000};

namespace {

// How long has a worker's every block waited in vain, and have those of all others?
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
  // After each round in which nothing moved. True: a deadlock.
  bool lasts() {
    if (++rounds_ % kRoundsBetweenPolls != 0) return false;
    const auto now = std::chrono::steady_clock::now();
    if (rounds_ == kRoundsBetweenPolls) since_ = now;
    if (now - since_ < (grid_.cooperative ? kStuckGrid : kStuck)) return false;
    if (!counted_) grid_.stuck_workers.fetch_add(1);
    counted_ = true;
    // Twice, with rounds between: the last move of a worker that has just ended may set these free.
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

void Worker::run_blocks(Grid& grid) {
  for (CachedRegion& region : cache_) region = {};
  next_ = end_ = 0;
  std::vector<std::unique_ptr<Block>> active;
  // A block whose warps all spin waits for another block: open that one too. 64 is what a spin on a neighbour needs and
  // more; a cooperative launch has all its blocks resident.
  const size_t most = grid.cooperative ? ~size_t{0} : 64;
  Standstill standstill(grid);
  for (uint32_t rounds = 1; !grid.stop.load(std::memory_order_relaxed); ++rounds) {
    if (rounds % kRoundsBetweenPolls == 0 && grid.interrupts.poll()) {
      grid.interrupted.store(true);
      grid.report(kLaunchTimeout, fmt::format("Interrupted by SIGINT\n  at {}", demangled(grid.program->name)));
      break;
    }
    if (active.empty() && !open_next(grid, &active)) break;
    for (size_t i = 0; i < active.size() && !grid.stop.load(std::memory_order_relaxed);) {
      Outcome outcome = active[i]->run();
      if (outcome == Outcome::Yielded) {
        ++i;
        continue;
      }
      close(std::move(active[i]));
      active.erase(active.begin() + static_cast<long>(i));
    }
    const bool opened = !active.empty() && active.size() < most && open_next(grid, &active);
    if (opened || active.empty() || !std::ranges::all_of(active, [](const auto& block) { return block->stuck; })) {
      standstill.moved();
    } else if (standstill.lasts()) {
      grid.report(kLaunchFailure, active[0]->describe_deadlock());
    }
    if (!active.empty()) std::this_thread::yield();
  }
  for (auto& block : active) {
    block->abandon();
    if (block->cluster) block->cluster->ended.clear();  // else each would keep the other
  }
}

namespace {

// Threads that wait for grids. Only one grid at a time is shared out; a second launch from another thread runs alone.
class Pool {
 public:
  explicit Pool(uint32_t helpers) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // Ctrl-C belongs to the program's own threads
    for (uint32_t i = 0; i < helpers; ++i) std::thread([this] { help(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    helpers_ = helpers;
  }

  uint32_t helpers() const { return helpers_; }

  bool share(Grid& grid, Worker& own) {
    if (!in_use_.try_lock()) return false;
    {
      std::lock_guard lock(mutex_);
      grid_ = &grid;
      ++serial_;
    }
    wake_.notify_all();
    own.run_blocks(grid);
    {
      std::unique_lock lock(mutex_);
      grid_ = nullptr;
      idle_.wait(lock, [&] { return busy_ == 0; });
    }
    in_use_.unlock();
    return true;
  }

 private:
  void help() {
    Worker worker;
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return grid_ && serial_ != seen; });
      Grid* grid = grid_;
      seen = serial_;
      ++busy_;
      lock.unlock();
      worker.run_blocks(*grid);
      lock.lock();
      if (--busy_ == 0) idle_.notify_all();
    }
  }

  std::mutex in_use_;
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Grid* grid_ = nullptr;
  uint64_t serial_ = 0;
  uint32_t busy_ = 0;
  uint32_t helpers_ = 0;
};

// Never freed: its threads run until the process ends, and the child of a fork, which has none of them, makes another.
std::atomic<Pool*> pool_of_process{nullptr};
std::mutex pool_mutex;

void forget_pool_in_child() {
  pool_of_process.store(nullptr);
  new (&pool_mutex) std::mutex;
}

Pool* pool() {
  Pool* existing = pool_of_process.load(std::memory_order_acquire);
  if (existing) return existing;
  std::lock_guard lock(pool_mutex);
  if (!pool_of_process.load()) {
    static bool registered = pthread_atfork(nullptr, nullptr, forget_pool_in_child) == 0;
    (void)registered;
    pool_of_process.store(new Pool(worker_limit() - 1), std::memory_order_release);
  }
  return pool_of_process.load();
}

}  // namespace

uint32_t worker_limit() {
  if (auto wanted = environment().threads; wanted > 0) return std::min(wanted, 1024u);
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return static_cast<uint32_t>(std::max(count, 1));
}

namespace {

// Enough for a thread to be alone with its memory for a while, few enough for all threads to end together. Blocks that
// wait for each other are taken one by one, in the order in which they are waited for.
uint32_t blocks_at_once(const Grid& grid, uint32_t workers) {
  if (grid.cooperative || grid.cluster_size > 1 || grid.program->may_wait) return 1;
  constexpr uint64_t kShares = 64, kMost = 16;
  return static_cast<uint32_t>(std::clamp<uint64_t>(grid.block_count / (kShares * workers), 1, kMost));
}

}  // namespace

void run_grid(Grid& grid) {
  thread_local Worker own;
  // Waking the pool costs some microseconds: not worth it for little.
  bool small = grid.block_count == 1 || grid.block_count * grid.threads_per_block <= 1024;
  const uint32_t workers = small ? 1 : worker_limit();
  grid.blocks_at_once = blocks_at_once(grid, workers);
  if (workers > 1 && pool()->share(grid, own)) return;
  own.run_blocks(grid);
}

}  // namespace kiln::engine
