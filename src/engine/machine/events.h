// SPDX-License-Identifier: Apache-2.0
// What can be seen of a run? Plain structs, delivered to one sink that a grid has when somebody
// watches it (docs/design/watch.md).
//
// What an instruction is about to do comes from Ops that the decoder puts before it, in a variant
// of the program that nobody else runs. What is known only while it runs comes from the handlers:
// they know the sink, and no watcher. Events of one warp arrive in the order in which it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cuda/limits.h"
#include "engine/memory/memory.h"
#include "engine/program/program.h"
#include "kiln/engine_abi.h"

namespace kiln::engine {

// Which events a sink wants. For the first ones the decoder makes a variant of a program.
enum EventBit : uint32_t {
  kAccessEvents = 1,
  kInstructionEvents = 2,
  kValueEvents = 4,        // what strong loads and atomics read
  kSyncEvents = 8,         // barriers, `*.sync` instructions, lanes that end
  kControlEvents = 16,     // branches, calls, returns
  kStretchEvents = 32,     // instructions, counted by stretches
  kVariableEvents = 64,    // faults: accesses that leave the shared variable of their address
  kGroupedAccesses = 128,  // an AccessEvent may stand for several (AccessEvent::repeats)
  kFenceEvents = 256,
  kAsyncEvents = 512,
  kMbarrierEvents = 1024,
  kBlockEvents = 2048,
  kHostEvents = 4096,
};
constexpr uint32_t kDecodedEvents = kAccessEvents | kInstructionEvents | kValueEvents |
                                    kSyncEvents | kControlEvents | kStretchEvents |
                                    kVariableEvents | kGroupedAccesses;
static_assert(kDecodedEvents < Variant::kCount / 4);

// Who does it: lanes of a warp, at an instruction. `program->sites[site]` is its source line.
struct Actor {
  const Program* program = nullptr;
  uint32_t site = 0;
  uint64_t block = 0;  // its number in the grid
  uint32_t warp = 0;   // in the block
  uint32_t mask = 0;   // the lanes
};

enum class AccessKind : uint8_t { Load, Store, Atomic, Reduction };
// Of the memory model (PTX ISA 8): weak accesses of two threads need something that orders them.
enum class Strength : uint8_t {
  Weak,
  Relaxed,
  Acquire,
  Release,
  AcquireRelease,
  Volatile,
  Sequential  // fences alone
};
enum class Scope : uint8_t { None, Block, Cluster, Gpu, System };
struct Order {
  Strength strength = Strength::Weak;
  Scope scope = Scope::None;
};
enum class AddressShape : uint8_t {
  Uniform,  // every lane at `base`
  Run,      // lane l at base + step * l
  Rows,     // lane l at base + step * (l % row_lanes) + row_step * (l / row_lanes)
  Lanes     // lane l at addresses[l], where it is active
};

// Before it happens, so also where the address turns out to be invalid. Shared memory is addressed
// from the start of the block's, local memory from the start of each lane's; a generic address has
// its space in the top byte (memory.h).
struct AccessEvent {
  Actor by;
  ptx::Space space = ptx::Space::Generic;
  AccessKind kind = AccessKind::Load;
  Strength strength = Strength::Weak;
  Scope scope = Scope::None;
  bool async = false;  // by a copy that runs alongside the threads
  uint32_t bytes = 0;  // of each lane
  AddressShape shape = AddressShape::Lanes;
  uint64_t base = 0, step = 0, row_step = 0;
  uint32_t row_lanes = kWarpSize;
  const uint64_t* addresses = nullptr;
  // Weak loads of one source line that the same lanes do one after the other, without anything that
  // orders memory in between: each `repeat_step` bytes behind the last. Else 1.
  uint32_t repeats = 1;
  int64_t repeat_step = 0;
  // Of a store of one register: what each lane writes, in `value_bytes`, of which it writes the
  // first `bytes`. Null: not known.
  const std::byte* values = nullptr;
  uint8_t value_bytes = 0;
  bool same_value = false;  // there is one for all lanes

  // Of the first of them.
  uint64_t address(uint32_t lane) const {
    switch (shape) {
      case AddressShape::Uniform:
        return base;
      case AddressShape::Run:
        return base + step * lane;
      case AddressShape::Rows:
        return base + step * (lane % row_lanes) + row_step * (lane / row_lanes);
      case AddressShape::Lanes:
        break;
    }
    return addresses[lane];
  }
};

// Once for each warp that issues it. `by.mask` are the lanes whose guard holds; `issued` those that
// stood at it.
struct InstructionEvent {
  Actor by;
  uint32_t issued = 0;
};

// Before a stretch of code that the same lanes run from its first instruction to its last: no label
// and no branch is inside, and a guarded instruction is a stretch of its own. One event stands for
// `count` instructions, which makes counting all of them cost less than running them.
struct StretchEvent {
  Actor by;             // the first instruction; the lanes whose guard holds
  uint32_t issued = 0;  // the lanes that stand at it
  uint32_t count = 1;   // instructions: the sites from by.site on
};

// What each lane got, after a strong load or an atomic, or writes, before a store. `bytes`: 1 to 8.
struct ValueEvent {
  Actor by;
  uint32_t bytes = 0;
  const void* lanes = nullptr;
  uint32_t element = 0;  // of a vector
};

// Before the lanes of `by.mask` go on at one place or at several. Not of a guard around an
// instruction: there InstructionEvent has both masks.
struct BranchEvent {
  Actor by;
  uint32_t taken = 0;  // the lanes that jump
  uint32_t paths = 1;  // different places at which lanes go on
};

// When lanes have entered a function, and before they leave it. Lanes that call different functions
// through a pointer enter one after the other.
struct CallEvent {
  Actor by;  // the call, or the return
  const Program* callee = nullptr;
  bool returns = false;
};

// Before the lanes of `by.mask` end.
struct ExitEvent {
  Actor by;
};

enum class SyncKind : uint8_t {
  Block,     // bar, barrier
  Warp,      // bar.warp.sync
  Exchange,  // shfl, vote, match, redux, elect, mma, ...: all members meet, memory is not ordered
  Cluster
};
// Of a block's barrier: once for each group of lanes that arrives, and once when it completes. Of
// lanes of a warp: when those that name the same members have met and pass, and, not completed, for
// members elsewhere when others begin to wait. Of a cluster's: when lanes arrive, and pass the
// wait.
struct SyncEvent {
  Actor by;  // without a program where nobody arrives: the barrier completes
  SyncKind kind = SyncKind::Block;
  uint32_t id = 0;        // of a block's barrier; the site where others wait for lanes elsewhere
  uint32_t expected = 0;  // threads of a block's barrier, 0: all; lanes of a warp's, as a mask
  bool waits = true;      // false: arrives and goes on
  bool completed = false;
  bool aligned = false;  // promises that all lanes of the warp are at it
  uint32_t phase = 0;  // of a cluster's barrier: the one that lanes arrived at, or have waited for
  Strength strength = Strength::AcquireRelease;
  // Of a shuffle: the lane that each lane reads; -1: none, it keeps its own value.
  const int8_t* sources = nullptr;
};

enum class Proxy : uint8_t { None, Alias, Async, TensorMap };
struct FenceEvent {
  Actor by;
  Scope scope = Scope::Gpu;
  Strength order = Strength::AcquireRelease;  // Weak: of a proxy alone
  Proxy proxy = Proxy::None;
};

enum class AsyncKind : uint8_t { Copy, Bulk, Matrix };  // cp.async; cp.async.bulk; wgmma
enum class AsyncStep : uint8_t { Issue, Commit, Wait, Fence };
struct AsyncEvent {
  Actor by;
  AsyncStep step = AsyncStep::Issue;
  // Of Wait: this many of the newest groups may still run; -1: none, committed or not.
  int64_t pending = 0;
  AsyncKind kind = AsyncKind::Copy;
  bool reads_only = false;  // of Wait: what the groups read may be written again
};

// After it happened to the object at `address`, a generic one of shared memory.
enum class MbarrierStep : uint8_t {
  Init,
  Invalidate,
  Arrive,    // also with bytes to expect
  Expect,    // bytes alone
  Complete,  // bytes have come
  Test       // test_wait and try_wait: each time it is asked
};
struct MbarrierEvent {
  Actor by;  // one lane, or those that test one object with one answer
  MbarrierStep step = MbarrierStep::Init;
  uint64_t address = 0;
  uint32_t count = 0;      // arrivals; of Init: those that a phase needs
  int64_t bytes = 0;       // to expect, or that have come
  bool drops = false;      // the arrivals are missing from later phases too
  bool async = false;      // once the lane's earlier cp.async are complete, or by a bulk copy
  uint32_t parity = 0;     // of the phase that was under way
  bool completed = false;  // that phase is over with this
  bool passed = false;     // of Test: the phase that it asks for is over
  Order order;
};

struct BlockEvent {
  uint64_t block = 0;
  KilnDim3 at{};
  bool ended = false;
};

struct LaunchEvent {
  const Program* program = nullptr;
  uint64_t number = 0;  // of the process
  KilnDim3 grid{}, block{}, cluster{};
  uint64_t shared_bytes = 0;          // static and dynamic
  uint64_t dynamic_shared_bytes = 0;  // the last of them
  const MemoryMap* memory = nullptr;  // what it may touch, until it has ended
  bool ended = false;
  int code = 0;  // cudaError_t, when it has ended
  bool cooperative = false;
  uint64_t stream = 0;
  uint32_t thread = 0;    // of the host
  const char* file = "";  // the library or program that holds the kernel; "": not known
};

enum class HostKind : uint8_t {
  Allocate,
  Free,
  Copy,
  Fill,
  Call,  // of a host function, in a stream
  StreamCreate,
  StreamDestroy,
  StreamSynchronize,  // also a query, for its answer is "done"
  StreamWaitEvent,
  EventRecord,
  EventSynchronize,  // also a query
  DeviceSynchronize,
  GraphBegin,
  GraphNode,  // before the node's own event or launch
  GraphEnd,
  Failed,     // a call of the runtime: `code` and `text`
  ErrorRead,  // cudaGetLastError and cudaPeekAtLastError
};
// Row y of slice z begins at `at + z * slice + y * pitch`.
struct Rows {
  uint64_t at = 0, pitch = 0, slice = 0;
};
// A call of the host that reaches memory or orders work, in the order of the calls. Allocations
// and copies arrive when they are done, frees before, refused calls with their code.
struct HostEvent {
  HostKind kind = HostKind::Copy;
  Actor by;             // with a program where a kernel does it: malloc and free on the device
  uint32_t thread = 0;  // of the host: threads are numbered as they come
  uint64_t stream = 0;  // its id; 0: the default stream, 1: the one of each thread
  bool waits = false;   // the form of the call without Async, or one that waits by its nature
  int code = 0;         // cudaError_t; not 0: the call was refused and did nothing
  // Copy, Fill, Allocate and Free (with `to` and `width` alone).
  Rows to, from;
  uint64_t width = 0, height = 1, depth = 1;  // bytes, rows, slices
  uint32_t value = 0;                         // of Fill
  AllocationKind memory = AllocationKind::Device;
  bool registered = false;       // the memory is the program's own (cudaHostRegister)
  bool nonblocking = false;      // of StreamCreate: does not wait for the default stream
  uint64_t event = 0;            // its id
  uint64_t graph = 0;            // the number of the graph's launch
  uint32_t node = 0;             // of it, from 0 in the order in which they run
  std::vector<uint32_t> before;  // nodes that it waits for
  const char* call = "";         // "cudaFree": of Allocate and Free
  std::string text;              // of Failed: what the program is reported
};

enum class FaultKind : uint8_t {
  Bounds,     // no memory of the launch has these bytes
  ReadOnly,   // a write to memory that the op may only read
  Alignment,  // the address is not a multiple of the access's size
  Index,      // of a View
  Free,       // of an address that malloc() on the device did not give, or gave back already
  Deadlock,
  Other
};
enum class WaitsFor : uint8_t { Barrier, Cluster, Grid, Mbarrier, Memory, Warp };
// Threads of one block that wait at one place of a deadlock.
struct Waiter {
  Actor by;  // the first of them; its mask has one lane
  WaitsFor waits_for = WaitsFor::Barrier;
  std::string waits_at;  // "barrier 1", "an mbarrier whose phase does not end"
  uint32_t threads = 0;
};
// Before a kernel stops. Of the first five kinds the sink may say that the run continues: then a
// read gives junk, a write is dropped, and nothing is freed.
struct FaultEvent {
  Actor by;  // one lane; without a program where no instruction is at fault
  FaultKind kind = FaultKind::Other;
  int code = 0;  // cudaError_t
  // Of the first three: inside `space`, which is not generic.
  ptx::Space space = ptx::Space::Global;
  AccessKind access = AccessKind::Load;
  uint64_t address = 0;  // of Index: of the View's data, a generic one
  uint32_t bytes = 0;
  uint64_t limit = 0;  // bytes of the block's shared memory, or of the thread's local memory
  // Of Bounds in shared memory: the bytes are there, and those of another variable than the one
  // that the address was made of. Else null.
  const SharedVariable* variable = nullptr;
  int64_t index = 0, size = 0, dimension = 0;  // of Index
  const std::string* text = nullptr;           // of the last two: as the program reads it
  const std::vector<Waiter>* waiters = nullptr;
};

// Called from the threads that run blocks; from one alone unless can_merge().
class Sink {
 public:
  virtual ~Sink() = default;
  virtual uint32_t wanted() const = 0;  // EventBits; the same for the sink's whole life
  virtual bool can_merge() const { return false; }
  virtual void on(const AccessEvent&) {}
  virtual void on(const InstructionEvent&) {}
  virtual void on(const StretchEvent&) {}
  virtual void on(const ValueEvent&) {}
  virtual void on(const BranchEvent&) {}
  virtual void on(const CallEvent&) {}
  virtual void on(const ExitEvent&) {}
  virtual void on(const SyncEvent&) {}
  virtual void on(const FenceEvent&) {}
  virtual void on(const AsyncEvent&) {}
  virtual void on(const MbarrierEvent&) {}
  virtual void on(const BlockEvent&) {}
  virtual void on(const LaunchEvent&) {}
  virtual void on(const HostEvent&) {}
  // True: the kernel goes on.
  virtual bool recovers(const FaultEvent&) { return false; }
};

}  // namespace kiln::engine
