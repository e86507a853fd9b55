// SPDX-License-Identifier: Apache-2.0
// What can be seen of a run? Plain structs, delivered to one sink that a grid has when somebody
// watches it (docs/design/watch.md).
//
// What an instruction is about to do comes from Ops that the decoder puts before it, in a variant
// of the program that nobody else runs. What is known only while it runs comes from the handlers:
// they know the sink, and no watcher. Events of one warp arrive in the order in which it runs.
#pragma once

#include <cstdint>

#include "engine/cuda/limits.h"
#include "engine/memory/memory.h"
#include "engine/program/program.h"
#include "kiln/engine_abi.h"

namespace kiln::engine {

// Which events a sink wants.
enum EventBit : uint32_t {
  kAccessEvents = 1,
  kInstructionEvents = 2,
  kValueEvents = 4,  // what strong loads and atomics read
  kSyncEvents = 8,
  kFenceEvents = 16,
  kAsyncEvents = 32,
  kBlockEvents = 64,
  kHostEvents = 128,
};
// Those for which the decoder makes a variant of a program.
constexpr uint32_t kDecodedEvents = kAccessEvents | kInstructionEvents | kValueEvents | kSyncEvents;

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
enum class Strength : uint8_t { Weak, Relaxed, Acquire, Release, AcquireRelease, Volatile };
enum class Scope : uint8_t { None, Block, Cluster, Gpu, System };
enum class AddressShape : uint8_t {
  Uniform,  // every lane at `base`
  Run,      // lane l at base + step * l
  Rows,     // lane l at base + step * (l % row_lanes) + row_step * (l / row_lanes)
  Lanes     // lane l at addresses[l], where it is active
};

// Before it happens, so also where the address turns out to be invalid. Shared memory is addressed
// from the begin of the block's, local memory from the begin of each lane's; a generic address has
// its space in the top byte (memory.h).
struct AccessEvent {
  Actor by;
  ptx::Space space = ptx::Space::Generic;
  AccessKind kind = AccessKind::Load;
  Strength strength = Strength::Weak;
  Scope scope = Scope::None;
  bool async = false;  // by a copy that runs beside the threads
  uint32_t bytes = 0;  // of each lane
  AddressShape shape = AddressShape::Lanes;
  uint64_t base = 0, step = 0, row_step = 0;
  uint32_t row_lanes = kWarpSize;
  const uint64_t* addresses = nullptr;

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

// After a strong load or an atomic: what each lane of `by.mask` got. `bytes` of a lane are 1 to 8.
struct ValueEvent {
  Actor by;
  uint32_t bytes = 0;
  const void* lanes = nullptr;
};

enum class SyncKind : uint8_t { Block, Warp, Cluster };
struct SyncEvent {
  Actor by;  // without a program where nobody arrives: a barrier completed because threads ended
  SyncKind kind = SyncKind::Block;
  uint32_t id = 0;        // of a block's barrier
  uint32_t expected = 0;  // threads of a block's barrier, 0: all; lanes of a warp's, as a mask
  bool waits = true;      // false: arrives and goes on
  bool completed = false;
};

struct FenceEvent {
  Actor by;
  Scope scope = Scope::Gpu;
  Strength order = Strength::AcquireRelease;
};

enum class AsyncStep : uint8_t { Issue, Commit, Wait };
struct AsyncEvent {
  Actor by;
  AsyncStep step = AsyncStep::Issue;
  int64_t pending =
      0;  // of Wait: so many of the newest groups may still run; -1: none, committed or not
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
  uint64_t shared_bytes = 0;
  const MemoryMap* memory = nullptr;  // what it may touch, until it has ended
  bool ended = false;
  int code = 0;  // cudaError_t, when it has ended
};

enum class HostKind : uint8_t { Allocate, Free, Copy, Fill };
struct HostEvent {
  HostKind kind = HostKind::Copy;
  uint64_t to = 0, from = 0, bytes = 0;
};

// Called from the threads that run blocks; from one alone unless can_merge().
class Sink {
 public:
  virtual ~Sink() = default;
  virtual uint32_t wanted() const = 0;  // EventBits; the same for the sink's whole life
  virtual bool can_merge() const { return false; }
  virtual void on(const AccessEvent&) {}
  virtual void on(const InstructionEvent&) {}
  virtual void on(const ValueEvent&) {}
  virtual void on(const SyncEvent&) {}
  virtual void on(const FenceEvent&) {}
  virtual void on(const AsyncEvent&) {}
  virtual void on(const BlockEvent&) {}
  virtual void on(const LaunchEvent&) {}
  virtual void on(const HostEvent&) {}
};

}  // namespace kiln::engine
