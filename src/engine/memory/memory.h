// SPDX-License-Identifier: Apache-2.0
// Which addresses may a kernel touch? The tensors of the launch, the engine's own allocations and
// variables; and, where an op gave no list, whatever the process has mapped.
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

// A generic address outside of global memory carries its space in the top byte.
constexpr uint64_t kSharedTag = 0x01;
constexpr uint64_t kLocalTag = 0x02;
// Inside the shared window: bits 24-31 are 0 for the block's own memory, else the rank in the
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
  std::shared_ptr<const std::vector<Region>> regions();
  // Keeps up to that many bytes of what was released: a use of freed memory is then not hidden by
  // an allocation that got the same address.
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
    uint64_t since;  // launches that began at an earlier time may still touch it
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
  // A launch takes no lock. It writes the time at which it began into a slot, and only then takes
  // the snapshot; whoever retires something replaces the snapshot first and looks at the slots
  // then. In the one order that sequentially consistent operations have, either the launch is seen
  // in its slot, or it takes the new snapshot.
  static constexpr size_t kSlots = 64;
  struct alignas(64) Slot {
    std::atomic<uint64_t> began{0};  // 0: free
  };
  Slot slots_[kSlots];
  std::atomic<uint64_t> time_{1};                 // rises with each change
  std::atomic<const Regions*> current_{nullptr};  // of snapshot_; null: has to be made anew
  std::atomic<size_t> retired_count_{0};
  std::vector<uint64_t> running_beyond_;  // times of launches that found no free slot
};

// While it lives, what it may touch is not given back to the system.
class RunningLaunch {
 public:
  explicit RunningLaunch(Heap& heap);
  ~RunningLaunch() { end(); }
  RunningLaunch(const RunningLaunch&) = delete;
  RunningLaunch& operator=(const RunningLaunch&) = delete;
  // As of its begin; valid until its end.
  const std::vector<Region>& regions() const { return *regions_; }
  void end() noexcept;

 private:
  Heap& heap_;
  std::atomic<uint64_t>* slot_ = nullptr;  // null: it is in running_beyond_
  uint64_t began_ = 0;
  bool ended_ = false;
  const std::vector<Region>* regions_ = nullptr;
};

// What one launch may touch.
class MemoryMap {
 public:
  // `heap` must live as long as the map.
  void begin(const KilnRegion* regions, uint32_t count, bool check,
             const std::vector<Region>& heap);
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
