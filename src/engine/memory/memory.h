// SPDX-License-Identifier: Apache-2.0
// Which addresses may a kernel access? The tensors of the launch, and the engine's own allocations
// and variables; if an op passes no list, also everything that the process has mapped.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/memory/fork.h"
#include "kiln/engine_abi.h"

namespace kiln::engine {

// The top byte of a generic address outside of global memory is the tag of its space.
constexpr uint64_t kSharedTag = 0x01;
constexpr uint64_t kLocalTag = 0x02;
// In the shared window, bits 24-31 are 0 for the block's own memory; otherwise they are the rank in
// the cluster plus one.
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
  void* owned = nullptr;  // null: the engine does not own the memory
};

// The engine's own memory, by address. Thread-safe.
class Heap {
 public:
  // Aligned to 256 bytes, and zeroed only as far as the system does it. Returns null if there is no
  // memory.
  void* allocate(uint64_t bytes, AllocationKind kind, const char* name = "") noexcept;
  // Launches that begin later may not access the memory. It is kept until all launches that began
  // before have ended, because they may still access it: on a GPU, cudaFree waits for them.
  bool release(const void* begin);
  // Adds memory that the engine does not own but that kernels may access.
  void adopt(const void* begin, uint64_t bytes, AllocationKind kind, std::string name);
  bool forget(const void* begin);
  std::optional<Allocation> find(uint64_t address) const;
  // Sorted by address. A change replaces the list and does not modify it.
  std::shared_ptr<const std::vector<Region>> regions();
  // Keeps up to `bytes` bytes of released memory, so that a use after free is not hidden by a new
  // allocation at the same address.
  void set_quarantine(uint64_t bytes);
  uint64_t bytes_in_use() const;
  uint64_t bytes_in_use(const std::string& name) const;
  size_t retired_count() const;
  void at_fork(ForkPhase phase);

 private:
  friend class RunningLaunch;
  using Regions = std::vector<Region>;
  struct Retired {
    void* memory;                             // null: none
    std::shared_ptr<const Regions> snapshot;  // null: none
    uint64_t since;                           // launches that began earlier may still access it
  };
  std::shared_ptr<const Regions> regions_locked();
  void make_room_locked();
  void quarantine_locked(void* memory, uint64_t bytes);
  void changed_locked() noexcept;
  void free_retired_locked() noexcept;
  uint64_t oldest_running_locked() const;

  mutable std::mutex mutex_;
  std::map<uint64_t, Allocation> allocations_;
  std::vector<Retired> retired_;
  struct Quarantined {
    void* memory;
    uint64_t bytes;
  };
  std::deque<Quarantined> quarantine_;  // oldest first
  uint64_t quarantine_limit_ = 0, quarantine_bytes_ = 0;
  uint64_t bytes_in_use_ = 0;
  std::shared_ptr<const Regions> snapshot_;
  // A launch takes no lock. It writes the time at which it began into a slot before it takes the
  // snapshot. A thread that retires something replaces the snapshot before it looks at the slots.
  // Sequentially consistent operations have one total order, so either the launch is seen in its
  // slot, or it takes the new snapshot.
  static constexpr size_t kSlots = 64;
  struct alignas(64) Slot {
    std::atomic<uint64_t> began{0};  // 0: free
  };
  Slot slots_[kSlots];
  std::atomic<uint64_t> time_{1};                 // increases with each change
  std::atomic<const Regions*> current_{nullptr};  // snapshot_.get(); null: must be made again
  std::atomic<size_t> retired_count_{0};
  std::vector<uint64_t> running_beyond_;  // begin times of launches that found no free slot
};

// While it lives, the memory that the launch may access is not given back to the system.
class RunningLaunch {
 public:
  explicit RunningLaunch(Heap& heap);
  ~RunningLaunch() { end(); }
  RunningLaunch(const RunningLaunch&) = delete;
  RunningLaunch& operator=(const RunningLaunch&) = delete;
  // As they were when the launch began; valid until it ends.
  const std::vector<Region>& regions() const { return *regions_; }
  void end() noexcept;

 private:
  Heap& heap_;
  std::atomic<uint64_t>* slot_ = nullptr;  // null: began_ is in running_beyond_
  uint64_t began_ = 0;
  bool ended_ = false;
  const std::vector<Region>* regions_ = nullptr;
};

// What one launch may access.
class MemoryMap {
 public:
  // `heap` must outlive the map.
  void begin(const KilnRegion* regions, uint32_t count, bool check,
             const std::vector<Region>& heap);
  void add(Region region);
  // For changes of the heap by device-side malloc and free.
  void refresh(std::shared_ptr<const std::vector<Region>> heap);
  // The region that holds the bytes and allows the access, if there is one.
  std::optional<Region> find(uint64_t address, uint64_t bytes, bool write) const;
  // For messages: the tensor or allocation that an address belongs to, even if it is empty.
  std::optional<Region> owner(uint64_t address) const;
  // For messages: the nearest region, if there is any.
  std::optional<Region> nearest(uint64_t address) const;

 private:
  std::vector<Region> regions_;  // sorted
  mutable std::mutex heap_mutex_;
  std::shared_ptr<const std::vector<Region>> heap_;
  bool check_ = true;

  std::shared_ptr<const std::vector<Region>> heap() const;
};

// The readable mapping of this process that contains an address, from /proc/self/maps.
std::optional<Region> mapped_region(uint64_t address);

}  // namespace kiln::engine
