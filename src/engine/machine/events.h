// SPDX-License-Identifier: Apache-2.0
// Which events of a run can be watched? Plain structs, delivered to the one sink that a grid has if
// it is watched (docs/design/watch.md).
//
// Ops that the decoder inserts before an instruction deliver what the instruction is about to do;
// only watched runs use such a variant of the program. Handlers deliver what is known only at run
// time: they know the sink, but no watcher. Events of one warp arrive in the order in which it
// runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/cuda/limits.h"
#include "engine/memory/memory.h"
#include "engine/program/program.h"
#include "kiln/engine_abi.h"

namespace kiln::engine {

// The events that a sink wants. For those in kDecodedEvents the decoder makes a variant of the
// program.
enum EventBit : uint32_t {
  kAccessEvents = 1,
  kInstructionEvents = 2,
  kValueEvents = 4,        // what strong loads and atomics read, and stores write
  kSyncEvents = 8,         // barriers, `*.sync` instructions, lanes that end
  kControlEvents = 16,     // branches, calls, returns
  kStretchEvents = 32,     // instructions, counted per stretch
  kVariableEvents = 64,    // faults: accesses outside the shared variable of their address
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
static_assert(kDecodedEvents < Variant::kCount / Variant::kPlain);

// Lanes of a warp, at an instruction. `program->sites[site]` is its source line.
struct Actor {
  const Program* program = nullptr;
  uint32_t site = 0;
  uint64_t block = 0;  // its number in the grid
  uint32_t warp = 0;   // in the block
  uint32_t mask = 0;   // the lanes
};

enum class AccessKind : uint8_t { Load, Store, Atomic, Reduction };
// As in the memory model (PTX ISA 8): weak accesses of two threads must be ordered by something.
enum class Strength : uint8_t {
  Weak,
  Relaxed,
  Acquire,
  Release,
  AcquireRelease,
  Volatile,
  Sequential  // fences only
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
  Lanes     // lane l at addresses[l], if it is active
};

// Delivered before the access, so also if the address turns out to be invalid. Addresses of shared
// memory are relative to the block's, those of local memory to each lane's. A generic address has
// its space in the top byte (memory.h).
struct AccessEvent {
  Actor by;
  ptx::Space space = ptx::Space::Generic;
  AccessKind kind = AccessKind::Load;
  Strength strength = Strength::Weak;
  Scope scope = Scope::None;
  bool async = false;  // by an asynchronous copy
  uint32_t bytes = 0;  // per lane
  AddressShape shape = AddressShape::Lanes;
  uint64_t base = 0, step = 0, row_step = 0;
  uint32_t row_lanes = kWarpSize;
  const uint64_t* addresses = nullptr;
  // If not 1, the event stands for several weak loads of one source line that the same lanes do one
  // after the other, with nothing in between that orders memory. Each is `repeat_step` bytes after
  // the one before.
  uint32_t repeats = 1;
  int64_t repeat_step = 0;
  // For a store of one register: the value of each lane, in `value_bytes`, of which the lane stores
  // the first `bytes`. Null: unknown.
  const std::byte* values = nullptr;
  uint8_t value_bytes = 0;
  bool same_value = false;  // one value for all lanes

  // The address of the first of the repeated loads.
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

// Once per warp that issues the instruction. `by.mask`: lanes whose guard holds; `issued`: lanes
// that are at the instruction.
struct InstructionEvent {
  Actor by;
  uint32_t issued = 0;
};

// Delivered before a stretch that the same lanes run from its first instruction to its last: it
// contains no label and no branch, and a guarded instruction is its own stretch. One event stands
// for `count` instructions, so counting all of them costs less than running them.
struct StretchEvent {
  Actor by;             // the first instruction; lanes whose guard holds
  uint32_t issued = 0;  // lanes that are at it
  uint32_t count = 1;   // instructions, at the sites from by.site on
};

// The value of each lane: read by a strong load or an atomic (delivered afterwards), or about to be
// stored. `bytes`: 1 to 8.
struct ValueEvent {
  Actor by;
  uint32_t bytes = 0;
  const void* lanes = nullptr;
  uint32_t element = 0;  // of a vector
};

// Delivered before the lanes of `by.mask` branch, to one place or several. Not for the guard of an
// instruction, for which InstructionEvent has both masks.
struct BranchEvent {
  Actor by;
  uint32_t taken = 0;  // lanes that jump
  uint32_t paths = 1;  // different places at which lanes continue
};

// Delivered after lanes have entered a function, and before they leave it. Lanes that call
// different functions through a pointer enter one after the other.
struct CallEvent {
  Actor by;  // the call, or the return
  const Program* callee = nullptr;
  bool returns = false;
};

// Delivered before the lanes of `by.mask` end.
struct ExitEvent {
  Actor by;
};

enum class SyncKind : uint8_t {
  Block,     // bar, barrier
  Warp,      // bar.warp.sync
  Exchange,  // shfl, vote, match, redux, elect, mma, ...: all members meet, memory is not ordered
  Cluster
};
// A block's barrier: one event per group of lanes that arrives, and one when it completes. Lanes of
// a warp: one when those that name the same members have met and continue; and one that is not
// completed, for members elsewhere, when others begin to wait for them. A cluster's barrier: one
// when lanes arrive, and one when they pass the wait.
struct SyncEvent {
  Actor by;  // without a program if nobody arrives: the barrier completes
  SyncKind kind = SyncKind::Block;
  uint32_t id = 0;        // of a block's barrier; or the site that waits for lanes elsewhere
  uint32_t expected = 0;  // threads at a block's barrier, 0: all; members of a warp's, as a mask
  bool waits = true;      // false: arrives and continues
  bool completed = false;
  bool aligned = false;  // the program promises that all lanes of the warp are at it
  uint32_t phase = 0;    // of a cluster's barrier: the one arrived at, or waited for
  Strength strength = Strength::AcquireRelease;
  // For a shuffle: the lane that each lane reads; -1: none, the lane keeps its own value.
  const int8_t* sources = nullptr;
};

enum class Proxy : uint8_t { None, Alias, Async, TensorMap };
struct FenceEvent {
  Actor by;
  Scope scope = Scope::Gpu;
  Strength order = Strength::AcquireRelease;  // Weak: a proxy fence only
  Proxy proxy = Proxy::None;
};

enum class AsyncKind : uint8_t { Copy, Bulk, Matrix };  // cp.async; cp.async.bulk; wgmma
enum class AsyncStep : uint8_t { Issue, Commit, Wait, Fence };
struct AsyncEvent {
  Actor by;
  AsyncStep step = AsyncStep::Issue;
  // For Wait: how many of the newest groups may still run; -1: none, committed or not.
  int64_t pending = 0;
  AsyncKind kind = AsyncKind::Copy;
  bool reads_only = false;  // for Wait: the sources of the groups may be overwritten
};

// Delivered afterwards. `address` of the object is a generic address of shared memory.
enum class MbarrierStep : uint8_t {
  Init,
  Invalidate,
  Arrive,    // also with expected bytes
  Expect,    // bytes only
  Complete,  // bytes have arrived
  Test       // test_wait and try_wait: each poll
};
struct MbarrierEvent {
  Actor by;  // one lane, or those that test one object with the same result
  MbarrierStep step = MbarrierStep::Init;
  uint64_t address = 0;
  uint32_t count = 0;      // arrivals; for Init: how many a phase needs
  int64_t bytes = 0;       // expected, or arrived
  bool drops = false;      // the arrivals are removed from later phases too
  bool async = false;      // when the lane's earlier cp.async complete, or by a bulk copy
  uint32_t parity = 0;     // of the current phase
  bool completed = false;  // this completes the phase
  bool passed = false;     // for Test: the tested phase is complete
  Order order;
};

struct BlockEvent {
  uint64_t block = 0;
  KilnDim3 at{};
  bool ended = false;
};

struct LaunchEvent {
  const Program* program = nullptr;
  uint64_t number = 0;  // unique in the process
  KilnDim3 grid{}, block{}, cluster{};
  uint64_t shared_bytes = 0;          // static and dynamic
  uint64_t dynamic_shared_bytes = 0;  // included in shared_bytes
  const MemoryMap* memory = nullptr;  // what the launch may access; valid until it has ended
  bool ended = false;
  int code = 0;  // cudaError_t, if it has ended
  bool cooperative = false;
  uint64_t stream = 0;
  uint32_t thread = 0;    // of the host
  const char* file = "";  // the library or program that contains the kernel; "": unknown
};

enum class HostKind : uint8_t {
  Allocate,
  Free,
  Copy,
  Fill,
  Call,  // of a host function, in a stream
  StreamCreate,
  StreamDestroy,
  StreamSynchronize,  // also a query, because it always succeeds
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
// A call of the host that accesses memory or orders work, in the order of the calls. Allocations
// and copies arrive when they are done, frees before, and refused calls with their code.
struct HostEvent {
  HostKind kind = HostKind::Copy;
  Actor by;             // with a program if a kernel does it: malloc and free in device code
  uint32_t thread = 0;  // of the host; threads are numbered in order of appearance
  uint64_t stream = 0;  // its ID; 0: the default stream, 1: the per-thread one
  bool waits = false;   // the form of the call without Async, or a call that always waits
  int code = 0;         // cudaError_t; not 0: the call was refused and did nothing
  // For Copy, Fill, Allocate and Free (which have only `to` and `width`).
  Rows to, from;
  uint64_t width = 0, height = 1, depth = 1;  // bytes, rows, slices
  uint32_t value = 0;                         // for Fill
  AllocationKind memory = AllocationKind::Device;
  bool registered = false;       // the memory is the program's own (cudaHostRegister)
  bool nonblocking = false;      // for StreamCreate: does not wait for the default stream
  uint64_t event = 0;            // its ID
  uint64_t graph = 0;            // the number of the graph's launch
  uint32_t node = 0;             // of the graph, counted from 0 in the order in which they run
  std::vector<uint32_t> before;  // nodes that it depends on
  const char* call = "";         // "cudaFree"; for Allocate and Free
  std::string text;              // for Failed: the message that the program gets
};

enum class FaultKind : uint8_t {
  Bounds,     // no memory of the launch has these bytes
  ReadOnly,   // a write to memory that the op may only read
  Alignment,  // the address is not a multiple of the size of the access
  Index,      // of a View
  Free,       // of an address that malloc() in device code did not return, or that is already free
  Deadlock,
  Other
};
enum class WaitsFor : uint8_t { Barrier, Cluster, Grid, Mbarrier, Memory, Warp };
// Threads of one block that wait at the same place in a deadlock.
struct Waiter {
  Actor by;  // the first of them; its mask has one lane
  WaitsFor waits_for = WaitsFor::Barrier;
  std::string waits_at;  // "barrier 1", "an mbarrier whose phase does not end"
  uint32_t threads = 0;
};
// Delivered before a kernel stops. For the first five kinds the sink may let the kernel continue:
// then a read returns junk, a write is dropped, and nothing is freed.
struct FaultEvent {
  Actor by;  // one lane; without a program if no instruction is at fault
  FaultKind kind = FaultKind::Other;
  int code = 0;  // cudaError_t
  // For the first three kinds: an address in `space`, which is not generic.
  ptx::Space space = ptx::Space::Global;
  AccessKind access = AccessKind::Load;
  uint64_t address = 0;  // for Index: of the View's data, a generic address
  uint32_t bytes = 0;
  uint64_t limit = 0;  // bytes of the block's shared memory, or of the thread's local memory
  // For Bounds in shared memory: not null if the bytes exist but belong to another variable than
  // the one from which the address was computed.
  const SharedVariable* variable = nullptr;
  int64_t index = 0, size = 0, dimension = 0;  // for Index
  const std::string* text = nullptr;  // for the last two kinds: the message that the program gets
  const std::vector<Waiter>* waiters = nullptr;
};

// Called from the threads that run blocks; from only one thread unless can_merge().
class Sink {
 public:
  virtual ~Sink() = default;
  virtual uint32_t wanted() const = 0;  // EventBits; constant while the sink lives
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
  // Returns true if the kernel continues.
  virtual bool recovers(const FaultEvent&) { return false; }
  // Asked now and then in the loops of a launch that went on after a fault: what a bad address
  // reads is junk, and a loop over junk may never end. Returns true if the kernel stops there.
  virtual bool gives_up(const Actor&) { return false; }
};

}  // namespace kiln::engine
