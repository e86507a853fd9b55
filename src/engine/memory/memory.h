// SPDX-License-Identifier: Apache-2.0
// Which addresses may a kernel touch? The tensors of the launch, the engine's own allocations and
// variables; and, where an op gave no list, whatever the process has mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/memory/fork.h"
#include "kiln/engine_abi.h"

namespace kiln::engine {

// A generic address outside of global memory carries its space in the top byte.
constexpr uint64_t kSharedTag = 0x01;
constexpr uint64_t kLocalTag = 0x02;
// Inside of the shared window: bits 24-31 are 0 for the block's own memory, else the rank in the
// cluster plus one.
constexpr uint32_t kPeerShift = 24;
constexpr uint64_t kPeerBits = uint64_t{0xff} << kPeerShift;
constexpr uint64_t kSharedWindow = kSharedTag << 56;
constexpr uint64_t kLocalWindow = kLocalTag << 56;

struct Region {
  uint64_t begin = 1;
  uint64_t end = 0;  // begin > end: none
  bool writable = true;
  const char* name = "";

  bool holds(uint64_t address, uint64_t bytes) const {
    return address >= begin && address <= end && end - address >= bytes;
  }
};

enum class AllocationKind : uint8_t { Device, Host, Managed, Variable };

struct Allocation {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  AllocationKind kind = AllocationKind::Device;
  std::string name;
  void* owned = nullptr;  // null: the memory is someone else's
};

// The engine's own memory, by address. Thread-safe.
class Heap {
 public:
  // Aligned to 256 bytes, zeroed only as the system does it. Null when there is no memory.
  void* allocate(uint64_t bytes, AllocationKind kind, const char* name = "") noexcept;
  // From now on no new launch may touch it. The memory itself stays until every launch has ended
  // that began before, for those may: cudaFree of a GPU waits for them.
  bool release(const void* begin);
  // Memory that someone else owns but that kernels may touch.
  void adopt(const void* begin, uint64_t bytes, AllocationKind kind, std::string name);
  bool forget(const void* begin);
  std::optional<Allocation> find(uint64_t address) const;
  // Sorted by address; replaced and not changed when memory comes or goes.
  std::shared_ptr<const std::vector<Region>> regions() const;
  uint64_t bytes_in_use() const;
  uint64_t bytes_in_use(const std::string& name) const;
  size_t retired_count() const;
  void at_fork(ForkPhase phase);

 private:
  friend class RunningLaunch;
  struct Retired {
    void* memory;
    uint64_t before;  // launches with a smaller number may still touch it
  };
  std::shared_ptr<const std::vector<Region>> regions_locked() const;

  mutable std::mutex mutex_;
  std::map<uint64_t, Allocation> allocations_;
  std::vector<Retired> retired_;
  std::vector<uint64_t> running_;  // numbers of the launches that run, oldest first
  uint64_t next_launch_ = 0;
  mutable std::shared_ptr<const std::vector<Region>> snapshot_;
  uint64_t bytes_in_use_ = 0;
};

// While it lives, what it may touch is not given back to the system.
class RunningLaunch {
 public:
  explicit RunningLaunch(Heap& heap);
  ~RunningLaunch() { end(); }
  RunningLaunch(const RunningLaunch&) = delete;
  RunningLaunch& operator=(const RunningLaunch&) = delete;
  // As of its begin.
  std::shared_ptr<const std::vector<Region>> take_regions() { return std::move(regions_); }
  void end() noexcept;

 private:
  Heap& heap_;
  uint64_t number_ = 0;
  bool ended_ = false;
  std::shared_ptr<const std::vector<Region>> regions_;
};

// What one launch may touch.
class MemoryMap {
 public:
  void begin(const KilnRegion* regions, uint32_t count, bool check,
             std::shared_ptr<const std::vector<Region>> heap);
  void add(Region region);
  // Device-side malloc and free changed the heap.
  void refresh(std::shared_ptr<const std::vector<Region>> heap);
  // The region that holds the bytes and allows the access, or nothing.
  std::optional<Region> find(uint64_t address, uint64_t bytes, bool write) const;
  // For messages: the tensor or allocation that an address belongs to, also one without a byte.
  std::optional<Region> owner(uint64_t address) const;
  // For messages: the nearest region, or nothing when there is none at all.
  std::optional<Region> nearest(uint64_t address) const;

 private:
  std::vector<Region> regions_;  // sorted
  mutable std::mutex heap_mutex_;
  std::shared_ptr<const std::vector<Region>> heap_;
  bool check_ = true;

  std::shared_ptr<const std::vector<Region>> heap() const;
};

// The mapping of this process around an address, from /proc/self/maps.
std::optional<Region> mapped_region(uint64_t address);

}  // namespace kiln::engine
