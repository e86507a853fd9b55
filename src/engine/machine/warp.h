// SPDX-License-Identifier: Apache-2.0
// What is the state of a running kernel? A grid has blocks, a block has warps, and a warp has
// splits: groups of lanes that are at the same Op of the same frame. All splits of a warp make
// progress independently of each other, as CUDA guarantees since Volta.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "engine/machine/device.h"
#include "engine/memory/memory.h"
#include "engine/program/program.h"

namespace kiln::engine {

struct Block;
struct Grid;
class Worker;
struct Room;

// The registers of one function for the 32 lanes of a warp. `data()` follows the header.
struct alignas(64) Frame {
  Frame* parent = nullptr;
  const Program* program = nullptr;
  const Op* return_to = nullptr;
  const void* call = nullptr;  // the CallSite that created it
  uint32_t depth = 0;
  uint32_t users = 0;         // splits that are in it, and frames that it called
  uint32_t local_offset = 0;  // of this function's local variables, in each lane's local memory
  uint32_t stack_bytes = 0;   // taken by alloca, after the local variables
  uint64_t epoch = 0;         // of the launch whose parameters it holds
  // For a kernel: the block and the warp of that launch that it served last (hoist.h).
  uint64_t served_block = ~uint64_t{0};
  uint32_t served_warp = 0;
  // It has the values of the first warp of this block; all warps of the block have ended.
  uint64_t begun_block = ~uint64_t{0};
  uint64_t stepped_block = ~uint64_t{0};  // the block whose values came from the previous one
  uint64_t bytes = 0;                     // of the whole frame
  Frame* next_free = nullptr;             // in the worker's list for this program
  Frame* next_made = nullptr;  // in the list of all frames that the worker has made, which finds
                               // what is left of an aborted launch
  Frame* previous_made = nullptr;

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

enum class Wait : uint8_t { None, Barrier, Sync };
// What a split polled without success before it gave others a turn.
enum class Look : uint8_t { None, Mbarrier, Cluster, Grid };

struct Split {
  const Op* at = nullptr;
  uint32_t mask = 0;
  Frame* frame = nullptr;
  Wait wait = Wait::None;
  uint8_t barrier = 0;
  uint32_t sync_mask = 0;
  uint64_t penalty = 0;  // increases each time it uses up its turn in a loop; the lowest runs first
  bool pass = false;     // has waited for the members of its *.sync and may pass
  Look looks = Look::None;
};

enum class Event : uint8_t { None, Yield, Fault };
enum class Outcome : uint8_t { Finished, Blocked, Yielded, Faulted };

// A copy that cp.async has begun and that no wait has completed yet.
struct AsyncCopy {
  std::byte* to;
  uint8_t bytes;
  uint8_t value[16];
};

// The values that lanes bring to an exchange whose members are at several places: compilers unroll
// loops that lanes leave one after the other, and hardware lets such lanes meet.
struct Brought {
  uint32_t lanes = 0;
  Handler by[kWarpSize];  // the kind of exchange
  uint64_t values[kWarpSize];
};

struct Warp {
  // Hot: used by handlers.
  std::byte* registers = nullptr;  // of the current frame
  uint32_t mask = 0;               // lanes of the current split
  uint32_t alive = 0;
  int32_t turn = 0;  // backward branches left before the warp yields
  Event event = Event::None;
  Frame* frame = nullptr;
  Frame* kernel_frame = nullptr;
  Block* block = nullptr;
  Worker* worker = nullptr;
  uint32_t carry = 0;  // condition code of each lane
  uint32_t index = 0;
  uint64_t current_penalty = 0;
  bool pass_sync = false;      // the split has waited for its members and may pass
  bool moved = false;          // since run() was called, more happened than unsuccessful waits
  uint64_t looked_at = 0;      // `steps` at the last wait without success
  const Op* resume = nullptr;  // where the picked split continues, or the whole warp at a barrier
  // The lowest Op after it at which another split is due for its turn; null: none.
  const Op* others_at = nullptr;
  // All lanes wait at barrier 0, without a split, until Block::meetings is greater than `met`.
  bool at_barrier = false;
  uint32_t met = 0;
  const Op* ops = nullptr;    // the first of its Ops (tiering.h)
  std::vector<Split> splits;  // all but the current one
  uint64_t penalties = 0;
  uint64_t steps = 0;
  std::vector<std::byte> local;  // one lane after the other, and a few bytes after the last
  uint32_t local_stride = 0;
  const Program* local_of = nullptr;  // the program for which the stride was chosen
  uint32_t local_limit = 0;     // declared by the functions of this warp; the memory may be larger
  uint32_t cluster_parity = 0;  // by lane: the phase of the cluster's barrier at which it arrived
  std::vector<AsyncCopy> copies;               // begun, not committed
  std::vector<std::vector<AsyncCopy>> groups;  // committed, oldest first
  Brought brought, met_with;  // `brought` by lanes that wait; `met_with`: by those that met last

  template <class T>
  T* lanes(uint32_t offset) {
    return reinterpret_cast<T*>(registers + offset);
  }
  uint32_t& predicate(uint32_t offset) { return *lanes<uint32_t>(offset); }
  void set_predicate(uint32_t offset, uint32_t value) {
    uint32_t& p = predicate(offset);
    p = (p & ~mask) | (value & mask);
  }
  // Writes the active lanes.
  template <class T>
  void put(uint32_t offset, const T* values) {
    if (mask == kFullMask)
      std::memcpy(registers + offset, values, sizeof(T) * kWarpSize);
    else
      put_some(offset, values, sizeof(T));
  }

  void put_some(uint32_t offset, const void* values, uint32_t bytes);

  Warp() = default;
  Warp(const Warp&) = delete;
  Warp& operator=(const Warp&) = delete;
  ~Warp();

  // `first`: where a new warp begins, with all lanes in its kernel's frame.
  Outcome run(const Op* first = nullptr);
  // Turns the wait at barrier 0 into a split, for code that looks at splits.
  void show_barrier();
  // Handlers of control flow call these and return what they return.
  const Op* diverge(const Op* taken, uint32_t taken_mask, const Op* other);
  const Op* jump_back(const Op* from, const Op* to);
  const Op* park(const Op* at, Wait wait, uint8_t barrier, uint32_t sync_mask);
  const Op* yield(const Op* next);
  // Like yield(), for a wait that must poll again after others, which can only be of the cluster,
  // have had their turn.
  const Op* look_again(const Op* next, Look looks);
  const Op* exit_lanes();
  const Op* fault(const Op* op, int code, uint32_t lane, const std::string& what);
  // Returns true if all live lanes of `members` are here. Otherwise the split has been parked, and
  // the handler must return null.
  bool converged(const Op* op, uint32_t members);
  // The same for handlers that deliver the event themselves.
  bool all_here(const Op* op, uint32_t members);
  // The same for an exchange. Waiting lanes bring their values, `bytes` bytes each, or one bit if
  // that is 0. If members wait at other places, *away is set to them, and `values` receives what
  // they have brought.
  bool all_here(const Op* op, uint32_t members, void* values, uint32_t bytes, uint32_t* away);
  // Returns false if there is no memory for it.
  bool begin_local(const Program& program);
  bool grow_local(uint32_t bytes_per_lane);
  // Fills new local variables (fill.h): `bytes` at `from`, for each lane in `lanes`.
  void fill_local(uint32_t lanes, uint32_t from, uint32_t bytes);
  // Runs one Op with a mask that is not full.
  const Op* step_masked(const Op* op);
  // Does it wait at a barrier that everyone has reached, and continue with this Op? If so, prepares
  // it to run.
  bool passes_to(const Op* op);
  // It gets another turn and continues with this Op, all lanes together.
  void stand_at(const Op* next);

 private:
  void stand_by(const Op* at, uint32_t lanes);
  bool pick_lowest();
  bool pick();
  // Continues after barrier 0. Returns null if others have not arrived yet or the kernel must end.
  const Op* pass_barrier();
  // The Op that replaces `next`, if the program has got faster since the warp began.
  const Op* goes_over(const Op* next);
  void run_alone(const Op* op);
  void run_divergent(const Op* op);
};

// A backward branch of a loop that waits (Op::y) uses up its turn sooner: after 16 iterations
// instead of 2,048. With 2,048, 1,152 threads at one lock took 53 s.
constexpr int32_t kSpinCost = 128;

struct Barrier {
  uint32_t arrived = 0;
  uint32_t wanted = 0;  // threads; 0: all that are alive
  uint32_t votes_true = 0;
  uint32_t voters = 0;
  uint32_t result_true = 0;
  uint32_t result_voters = 0;
};

constexpr uint32_t kBarrierCount = 16;

// Blocks that run together on one thread and see each other's shared memory. A block that has ended
// is kept until the last one has.
struct Cluster {
  std::vector<Block*> blocks;  // by rank
  std::vector<std::unique_ptr<Block>> ended;
  uint32_t live_threads = 0;
  uint32_t arrived = 0;  // at barrier.cluster
  uint32_t phase = 0;

  void arrive(uint32_t threads);
  void threads_exited(uint32_t count);
};

struct Block {
  Grid* grid = nullptr;
  Worker* worker = nullptr;
  Sink* sync_sink = nullptr;         // the grid's, if it wants barrier events
  std::shared_ptr<Cluster> cluster;  // null: the block is alone
  uint32_t x = 0, y = 0, z = 0;
  uint64_t number = 0;  // in the grid
  uint32_t live_threads = 0;
  std::vector<std::byte> shared_storage;
  std::byte* shared = nullptr;
  uint64_t shared_bytes = 0;
  Barrier barriers[kBarrierCount];
  // Warps that reach bar.sync 0 as a whole are only counted (Warp::at_barrier).
  bool counts_warps = false;
  uint32_t meetings = 0;           // how often all have met there
  uint32_t others_at_barrier = 0;  // threads that wait there in a split
  std::vector<std::unique_ptr<Warp>> warps;
  uint32_t warp_count = 0;
  std::vector<uint8_t> finished;  // by warp
  uint32_t finished_count = 0;
  uint32_t started = 0;  // warps that have a frame
  uint32_t reached = 0;  // the last warp that another warp has run in this round
  // For a schedule: its order of warps, the first Ops of warps that have not run yet, and the
  // number of rounds.
  std::vector<uint32_t> order;
  std::vector<const Op*> beginnings;
  uint64_t round = 0;
  Tiering* tiering = nullptr;  // of the kernel; null: it stays interpreted
  uint64_t ran = 0;            // Ops in loops that ended warps have run
  bool stuck = false;          // in the last run() its warps only polled without success
  bool spins = false;          // in the last round a warp used up its turn

  void start(Grid& grid, Worker& worker, KilnDim3 at);
  // Runs every warp until one has used up its turn. Finished: the block is done. Yielded: it may
  // have to wait for other blocks.
  Outcome run();
  void arrive(uint8_t barrier, uint32_t threads, uint32_t wanted);
  void arrive_whole(Warp& warp, const Op* next);
  void release_if_complete(uint8_t barrier);
  void threads_exited(uint32_t count);
  // Releases the frames of warps that will not continue.
  void abandon();
  void report_deadlock() const;

 private:
  const Op* begin_warp(uint32_t i);                             // null: no memory for its registers
  bool run_warp(uint32_t* i, const Op* first, bool* progress);  // false: the block must end
  bool run_round(bool* progress);
  bool is_runnable() const;
  bool run_in_order(bool* progress);
  bool run_scheduled(bool* progress);
};

struct Grid {
  Device* device = nullptr;
  const Program* program = nullptr;
  KilnDim3 grid_dim{1, 1, 1}, block_dim{1, 1, 1}, cluster_dim{1, 1, 1};
  uint64_t block_count = 1;
  uint32_t cluster_size = 1;
  uint32_t threads_per_block = 1;
  uint64_t shared_bytes = 0;  // static and dynamic
  uint64_t dynamic_shared_bytes = 0;
  uint64_t reserved_bytes = 0;  // after them, if the kernel reads %reserved_smem_offset
  bool cooperative = false;
  uint32_t workspace[2] = {8,
                           0};  // of a cooperative grid: its size, and the barrier of grid.sync()
  bool has_barriers = true;     // false: neither the kernel nor its callees have any
  // In lines of 128 bytes, because a tensor map among the parameters must be aligned.
  struct alignas(128) ParameterLine {
    std::byte bytes[128];
  };
  std::vector<ParameterLine> parameter_lines;
  MemoryMap memory;
  uint64_t epoch = 0;
  Settings settings;
  Sink* sink = nullptr;  // null: not watched
  uint32_t wanted = 0;   // the events that the sink wants
  // It went on after a fault, as the sink wanted.
  std::atomic<bool> recovered{false};
  uint32_t blocks_at_once = 1;  // how many a thread takes from the counter
  // What threads write has cache lines of its own; otherwise each write would take the rest of the
  // grid from the caches of other threads.
  alignas(128) std::atomic<uint64_t> next_block{0};  // or cluster
  alignas(128) std::atomic<bool> stop{false};
  alignas(128) std::atomic<uint32_t> workers{0};  // that run its blocks
  std::atomic<uint32_t> stuck_workers{0};         // of those, workers whose blocks all only wait
  StopSignal* outside = nullptr;                  // null: none
  std::atomic<bool> interrupted{false};
  std::mutex fault_mutex;
  int fault_code = 0;
  std::string fault_text;  // empty if there was no memory for it

  std::byte* parameters() { return parameter_lines.data()->bytes; }
  const std::byte* parameters() const { return parameter_lines.data()->bytes; }
  void report(int code, std::string text) noexcept;
};

// What one thread keeps for the blocks that it runs: frames to reuse, and the region that each Op
// accessed last.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();
  Frame* acquire(const Program& program, Grid& grid);  // null: no memory for another one
  void release(Frame* frame) noexcept;
  // Runs until no block is left or the grid stops. An exception becomes the fault of the grid.
  void run_blocks(Grid& grid) noexcept;
  // For a block that has ended and is the only open one: has this worker also taken the next block
  // of the grid?
  bool has_next(const Grid& grid, const Block& block) const {
    return next_ != end_ && next_ == block.number + 1 && active_.size() == 1 &&
           !grid.stop.load(std::memory_order_relaxed);
  }
  void take_next() { ++next_; }  // counts it as begun
  Budget& budget() { return *budget_; }
  // The increments of the values of Program::block_steps in this launch, or in the block's row of
  // the grid. `frame`: has the values of a block of that row.
  struct BlockRise {
    uint64_t by;
    uint32_t offset;  // of a header
    bool check;
  };
  std::span<const BlockRise> block_rises(const Program& program, const Block& block,
                                         const Frame& frame);
  // Memory that no thread of the kernel uses, aligned to 128 bytes. One piece per size, because the
  // pointers of several lanes stay in use.
  std::byte* junk(uint32_t bytes);

  struct CachedRegion {
    uint64_t begin = 1, end = 0;
    bool writable = false;
  };
  CachedRegion& cached(const Op* op) {
    return cache_[(reinterpret_cast<uintptr_t>(op) / sizeof(Op)) % std::size(cache_)];
  }
  // What machine code is entered with (compile/entry.h); null: not yet entered.
  std::unique_ptr<Room, void (*)(Room*)> room{nullptr, nullptr};

 private:
  struct Pool {
    const Program* program;
    uint64_t serial;
    Frame* free = nullptr;
  };
  Pool& pool_of(const Program& program);
  Frame* make_frame(const Program& program, const Grid& grid);
  void destroy(Frame* frame) noexcept;
  void run_to_the_end(Grid& grid);
  bool open_next(Grid& grid);
  std::vector<BlockRise> block_rises_;
  uint64_t rises_epoch_ = 0, rises_serial_ = 0;  // launch and program of block_rises_
  uint64_t rises_row_ = 0;                       // %ctaid.y and %ctaid.z, if rows differ
  // Closes a block that has ended and has been taken from `active_`.
  void close(std::unique_ptr<Block> block);
  // Drops all blocks and frames, in whatever state an exception left them.
  void drop_all() noexcept;

  std::shared_ptr<Budget> budget_;  // on which the frames below are charged
  uint64_t next_ = 0, end_ = 0;     // blocks that this thread has taken but not begun
  CachedRegion cache_[256];
  std::vector<Pool> pools_;
  size_t last_pool_ = 0;   // the pool used last
  Frame* made_ = nullptr;  // the newest frame
  struct alignas(128) JunkLine {
    std::byte bytes[128];
  };
  std::map<uint32_t, std::vector<JunkLine>> junk_;  // by size
  std::vector<std::unique_ptr<Block>> active_, spare_blocks_;
};

struct ThreadId {
  uint32_t x, y, z;
};
ThreadId thread_of(const Warp& warp, uint32_t lane);

// Fills those whose tier is `from` or later.
void fill_specials(Warp& warp, Frame& frame, Tier from = Tier::Launch);

}  // namespace kiln::engine
