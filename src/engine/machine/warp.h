// SPDX-License-Identifier: Apache-2.0
// What is the state of a running kernel? A grid has blocks, a block has warps, a warp has splits:
// groups of lanes that stand at the same Op of the same frame. All splits of a warp can go on
// independently of each other, as CUDA promises since Volta.
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
  const void* call = nullptr;  // the CallSite that made it
  uint32_t depth = 0;
  uint32_t users = 0;         // splits that stand in it, and frames that it called
  uint32_t local_offset = 0;  // of this function's local variables, in each lane's local memory
  uint32_t stack_bytes = 0;   // that alloca has taken behind the local variables
  uint64_t epoch = 0;         // of the launch whose parameters it holds
  // A kernel's: the block and the warp that it served last in that launch (hoist.h).
  uint64_t served_block = ~uint64_t{0};
  uint32_t served_warp = 0;
  // The block whose first warp has these values; all warps of it have ended.
  uint64_t begun_block = ~uint64_t{0};
  uint64_t stepped_block = ~uint64_t{0};  // the block that has its values from the one before it
  uint64_t bytes = 0;                     // of the whole frame
  Frame* next_free = nullptr;             // of those that the worker keeps for this program
  Frame* next_made =
      nullptr;  // of all that the worker has made: what is left of a launch that broke off
  Frame* previous_made = nullptr;

  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

enum class Wait : uint8_t { None, Barrier, Sync };
// What a split looked at before it gave others a turn, and found nothing yet.
enum class Look : uint8_t { None, Mbarrier, Cluster, Grid };

struct Split {
  const Op* at = nullptr;
  uint32_t mask = 0;
  Frame* frame = nullptr;
  Wait wait = Wait::None;
  uint8_t barrier = 0;
  uint32_t sync_mask = 0;
  uint64_t penalty = 0;  // rises each time it used up its turn in a loop; the lowest goes first
  bool pass = false;     // has waited for the members of its *.sync and may go through
  Look looks = Look::None;
};

enum class Event : uint8_t { None, Yield, Fault };
enum class Outcome : uint8_t { Finished, Blocked, Yielded, Faulted };

// A copy that cp.async has begun and that no wait has finished yet.
struct AsyncCopy {
  std::byte* to;
  uint8_t bytes;
  uint8_t value[16];
};

// What lanes bring to an exchange whose members stand at several places: compilers unroll loops
// that lanes leave one after the other, and hardware lets such lanes meet.
struct Brought {
  uint32_t lanes = 0;
  Handler by[kWarpSize];  // the kind of exchange
  uint64_t values[kWarpSize];
};

struct Warp {
  // Hot: what handlers touch.
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
  bool pass_sync = false;  // the split has waited for its members and may go through
  bool moved = false;  // since run() was called, more happened than waits that found nothing new
  uint64_t looked_at = 0;      // `steps` when a wait last found nothing new
  const Op* resume = nullptr;  // where the picked split stands, or the whole warp at a barrier
  // The first place behind it where another one stands that has to have its turn; null: none.
  const Op* others_at = nullptr;
  // All lanes wait at the block's usual barrier, with no split to say so: until Block::meetings
  // has risen above `met`.
  bool at_barrier = false;
  uint32_t met = 0;
  const Op* ops = nullptr;    // the first of those that it runs (tiering.h)
  std::vector<Split> splits;  // all but the current one
  uint64_t penalties = 0;
  uint64_t steps = 0;
  std::vector<std::byte> local;  // lane after lane, and a few bytes behind the last
  uint32_t local_stride = 0;
  uint32_t local_limit =
      0;  // what the functions of this warp have declared; the memory may be larger
  uint32_t cluster_parity = 0;    // by lane: the phase of the cluster's barrier at which it arrived
  std::vector<AsyncCopy> copies;  // begun, not committed
  std::vector<std::vector<AsyncCopy>> groups;  // committed, oldest first
  Brought brought, met_with;                   // by lanes that wait; by those that have met last

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

  // `first`: where a new warp begins, with all its lanes in its kernel's frame.
  Outcome run(const Op* first = nullptr);
  // As a split that waits, for whoever looks at those.
  void show_barrier();
  // Handlers of control flow call these and return what they return.
  const Op* diverge(const Op* taken, uint32_t taken_mask, const Op* other);
  const Op* jump_back(const Op* from, const Op* to);
  const Op* park(const Op* at, Wait wait, uint8_t barrier, uint32_t sync_mask);
  const Op* yield(const Op* next);
  // As yield, of a wait that must look again: after others, and only others of the cluster, have
  // had their turn.
  const Op* look_again(const Op* next, Look looks);
  const Op* exit_lanes();
  const Op* fault(const Op* op, int code, uint32_t lane, const std::string& what);
  // True when all lanes of `members` that live are here; else the split has been parked and the
  // handler must return null.
  bool converged(const Op* op, uint32_t members);
  // The same for handlers that deliver the event themselves.
  bool all_here(const Op* op, uint32_t members);
  // The same of an exchange. Lanes that wait bring their values along, `bytes` of each, or one bit
  // where that is 0; where others wait at other places, *away are those, and `values` becomes what
  // they have brought.
  bool all_here(const Op* op, uint32_t members, void* values, uint32_t bytes, uint32_t* away);
  bool grow_local(uint32_t bytes_per_lane);
  // Local variables begin as fill.h says: `bytes` at `from`, in each lane of `lanes`.
  void fill_local(uint32_t lanes, uint32_t from, uint32_t bytes);
  // One Op under a mask that is not full.
  const Op* step_masked(const Op* op);
  // Does it wait at a barrier that all have come to, to go on with this Op? Then it is ready to.
  bool passes_to(const Op* op);
  // It has a turn again and goes on with this Op, all lanes together.
  void stand_at(const Op* next);

 private:
  void stand_by(const Op* at, uint32_t lanes);
  bool pick_lowest();
  bool pick();
  // Behind the usual barrier; null: others have not come yet, or the kernel has to end.
  const Op* pass_barrier();
  // The Op that takes the place of `next`, where the program has got faster since the warp began.
  const Op* goes_over(const Op* next);
  void run_alone(const Op* op);
  void run_divergent(const Op* op);
};

// A backward branch that waits for somebody (Op::y) uses up its turn sooner: 16 times around a
// lock, not 2,048. With 1,152 threads at one lock that is 1 s and not 53.
constexpr int32_t kSpinCost = 128;

struct Barrier {
  uint32_t arrived = 0;
  uint32_t wanted = 0;  // threads; 0: all that live
  uint32_t votes_true = 0;
  uint32_t voters = 0;
  uint32_t result_true = 0;
  uint32_t result_voters = 0;
};

constexpr uint32_t kBarrierCount = 16;

// Blocks that run together, on one thread, and see each other's shared memory. Those that have
// ended are kept until the last one has.
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
  Sink* sync_sink = nullptr;         // the grid's, where it wants to know of barriers
  std::shared_ptr<Cluster> cluster;  // null: the block is alone
  uint32_t x = 0, y = 0, z = 0;
  uint64_t number = 0;  // in the grid
  uint32_t live_threads = 0;
  std::vector<std::byte> shared_storage;
  std::byte* shared = nullptr;
  uint64_t shared_bytes = 0;
  Barrier barriers[kBarrierCount];
  // Warps that come to bar.sync 0 as a whole are only counted (Warp::at_barrier).
  bool counts_warps = false;
  uint32_t meetings = 0;           // how often all have met there
  uint32_t others_at_barrier = 0;  // threads that are there and have a split that says so
  std::vector<std::unique_ptr<Warp>> warps;
  uint32_t warp_count = 0;
  std::vector<uint8_t> finished;  // by warp
  uint32_t finished_count = 0;
  uint32_t started = 0;  // warps that have a frame
  uint32_t reached = 0;  // the last one that has had its turn in this round, by way of another
  // Of a schedule: its order of warps, where those begin that have not, and how often all had a
  // turn.
  std::vector<uint32_t> order;
  std::vector<const Op*> beginnings;
  uint64_t round = 0;
  Tiering* tiering = nullptr;  // of the kernel; null: it is not to get faster
  uint64_t ran = 0;            // Ops that its warps ran in loops, of those that have ended
  bool stuck = false;          // in the last run() its warps only looked and found nothing new
  bool spins = false;          // in the last round some warp used up its turn

  void start(Grid& grid, Worker& worker, KilnDim3 at);
  // Runs every warp until one has used up its turn. Finished: the block is done. Yielded: others
  // may have to run before it goes on.
  Outcome run();
  void arrive(uint8_t barrier, uint32_t threads, uint32_t wanted);
  void arrive_whole(Warp& warp, const Op* next);
  void release_if_complete(uint8_t barrier);
  void threads_exited(uint32_t count);
  // Gives back the frames of warps that will not run on.
  void abandon();
  void report_deadlock() const;

 private:
  const Op* begin_warp(uint32_t i);  // null: there is no memory for its registers
  bool run_warp(uint32_t* i, const Op* first, bool* progress);  // false: the block has to end
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
  uint64_t reserved_bytes = 0;  // behind them, where the kernel asks for %reserved_smem_offset
  bool cooperative = false;
  uint32_t workspace[2] = {8,
                           0};  // of a cooperative grid: its size, and the barrier of grid.sync()
  bool has_barriers = true;     // false: neither the kernel nor what it calls has any
  // In lines of 128 bytes, as a tensor map among the parameters has to be aligned.
  struct alignas(128) ParameterLine {
    std::byte bytes[128];
  };
  std::vector<ParameterLine> parameter_lines;
  MemoryMap memory;
  uint64_t epoch = 0;
  Settings settings;
  Sink* sink = nullptr;         // null: nobody watches
  uint32_t wanted = 0;          // the events it wants
  uint32_t blocks_at_once = 1;  // that a thread takes from the counter
  // Lines of the cache for what threads write: else each write takes the rest of the grid from the
  // others' caches.
  alignas(128) std::atomic<uint64_t> next_block{0};  // or cluster
  alignas(128) std::atomic<bool> stop{false};
  alignas(128) std::atomic<uint32_t> workers{0};  // that run blocks of it
  std::atomic<uint32_t> stuck_workers{0};         // of those, all of whose blocks only wait
  StopSignal* outside = nullptr;                  // null: nothing stops it
  std::atomic<bool> interrupted{false};
  std::mutex fault_mutex;
  int fault_code = 0;
  std::string fault_text;  // empty where there was no memory for one

  std::byte* parameters() { return parameter_lines.data()->bytes; }
  const std::byte* parameters() const { return parameter_lines.data()->bytes; }
  void report(int code, std::string text) noexcept;
};

// What one thread keeps for the blocks it runs: frames to reuse, and which region each site touched
// last.
class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();
  Frame* acquire(const Program& program, Grid& grid);  // null: no memory for one more
  void release(Frame* frame) noexcept;
  // Until no block is left or the grid stops. What is thrown on the way becomes the grid's fault.
  void run_blocks(Grid& grid) noexcept;
  // Of a block that has ended and is the only one that is open: is the next in the grid this
  // worker's too?
  bool has_next(const Grid& grid, const Block& block) const {
    return next_ != end_ && next_ == block.number + 1 && active_.size() == 1 &&
           !grid.stop.load(std::memory_order_relaxed);
  }
  void take_next() { ++next_; }  // it counts as begun
  Budget& budget() { return *budget_; }
  // What the values of Program::block_steps rise by, in this launch.
  struct BlockRise {
    uint64_t by;
    uint32_t offset;  // of a header
    bool check;
  };
  std::span<const BlockRise> block_rises(const Program& program, const Grid& grid,
                                         const Frame& frame);
  // Memory of no thread's, aligned to 128 bytes; one piece for each size, for the pointers of
  // several lanes stay in use.
  std::byte* junk(uint32_t bytes);

  struct CachedRegion {
    uint64_t begin = 1, end = 0;
    bool writable = false;
  };
  CachedRegion& cached(const Op* op) {
    return cache_[(reinterpret_cast<uintptr_t>(op) / sizeof(Op)) % std::size(cache_)];
  }
  // What machine code is entered with (compile/entry.h); null: it never was.
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
  uint64_t rises_epoch_ = 0, rises_serial_ = 0;  // of whom
  // A block that has ended; `active_` held it.
  void close(std::unique_ptr<Block> block);
  // Forgets all blocks and frames, in whatever state an exception left them.
  void drop_all() noexcept;

  std::shared_ptr<Budget> budget_;  // what the frames below count in
  uint64_t next_ = 0, end_ = 0;     // blocks that this thread has taken and not begun
  CachedRegion cache_[256];
  std::vector<Pool> pools_;
  size_t last_pool_ = 0;   // the one that was used last
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

// Those that hold for `from` or less.
void fill_specials(Warp& warp, Frame& frame, Tier from = Tier::Launch);

}  // namespace kiln::engine
