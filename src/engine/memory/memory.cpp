// SPDX-License-Identifier: Apache-2.0
// How does the engine find an address among the regions of a launch, its own allocations and the
// mappings of the process?
#include "engine/memory/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace kiln::engine {
namespace {

constexpr uint64_t kAlignment = 256;
// The distance between allocations while freed memory is kept. An index that runs past the end of
// one, by as much as a launch has threads, must not reach the next one, where it would look right
// and race with the writes there. Nothing touches the gap, so it costs only addresses.
constexpr uint64_t kApart = 4 << 20;
// Large allocations ask for large pages. A kernel that walks down the columns of a matrix reaches
// another page with each access, and most of its time went into finding the pages; and to get a
// page of 4 KiB costs as much as to write it. If the system has no large pages, nothing changes.
constexpr uint64_t kLargePage = 2 << 20;
constexpr uint64_t kLargeFrom = 4 * kLargePage;

const Region* find_in(const std::vector<Region>& sorted, uint64_t address) {
  auto above =
      std::upper_bound(sorted.begin(), sorted.end(), address,
                       [](uint64_t value, const Region& region) { return value < region.begin; });
  return above == sorted.begin() ? nullptr : &above[-1];
}

uint64_t distance(const Region& region, uint64_t address) {
  if (address < region.begin) return region.begin - address;
  if (address >= region.end) return address - region.end + 1;
  return 0;
}

void* take(uint64_t room, uint64_t behind) noexcept {
  const bool large = room >= kLargeFrom;
  void* memory = std::aligned_alloc(large ? kLargePage : kAlignment, room + behind);
  if (memory && large) (void)madvise(memory, room / kLargePage * kLargePage, MADV_HUGEPAGE);
  return memory;
}

void consider(std::optional<Region>* best, const Region& region, uint64_t address) {
  if (!*best || distance(region, address) < distance(**best, address)) *best = region;
}

void nearest_in(std::optional<Region>* best, const std::vector<Region>& sorted, uint64_t address) {
  auto above =
      std::upper_bound(sorted.begin(), sorted.end(), address,
                       [](uint64_t value, const Region& region) { return value < region.begin; });
  if (above != sorted.end()) consider(best, *above, address);
  if (above != sorted.begin()) consider(best, above[-1], address);
}

}  // namespace

void* Heap::allocate(uint64_t bytes, AllocationKind kind, const char* name) noexcept {
  uint64_t room = std::max<uint64_t>(bytes, 1);
  if (room > (uint64_t{1} << 46)) return nullptr;
  room = (room + kAlignment - 1) / kAlignment * kAlignment;
  const bool apart = [this] {
    std::lock_guard lock(mutex_);
    return quarantine_limit_ > 0;
  }();
  void* memory = apart ? take(room, kApart) : nullptr;
  if (!memory) memory = take(room, 0);
  if (!memory) return nullptr;
  uint64_t begin = reinterpret_cast<uint64_t>(memory);
  try {
    std::lock_guard lock(mutex_);
    make_room_locked();
    allocations_[begin] = {begin, bytes, kind, name, memory};
    bytes_in_use_ += bytes;
    changed_locked();
  } catch (const std::bad_alloc&) {
    std::lock_guard lock(mutex_);
    allocations_.erase(begin);
    std::free(memory);
    return nullptr;
  }
  return memory;
}

bool Heap::release(const void* at) {
  std::lock_guard lock(mutex_);
  auto found = allocations_.find(reinterpret_cast<uint64_t>(at));
  if (found == allocations_.end() || !found->second.owned) return false;
  make_room_locked();
  void* memory = found->second.owned;
  const uint64_t bytes = found->second.bytes;
  bytes_in_use_ -= bytes;
  allocations_.erase(found);
  changed_locked();
  if (quarantine_limit_)
    quarantine_locked(memory, bytes);
  else
    retired_.push_back({memory, nullptr, time_.load()});
  free_retired_locked();
  return true;
}

void Heap::set_quarantine(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  quarantine_limit_ = bytes;
}

void Heap::quarantine_locked(void* memory, uint64_t bytes) {
  quarantine_.push_back({memory, bytes});
  quarantine_bytes_ += bytes;
  while (quarantine_bytes_ > quarantine_limit_) {
    quarantine_bytes_ -= quarantine_.front().bytes;
    retired_.push_back({quarantine_.front().memory, nullptr, time_.load()});
    quarantine_.pop_front();
  }
}

void Heap::adopt(const void* at, uint64_t bytes, AllocationKind kind, std::string name) {
  uint64_t begin = reinterpret_cast<uint64_t>(at);
  std::lock_guard lock(mutex_);
  make_room_locked();
  allocations_[begin] = {begin, bytes, kind, std::move(name)};
  changed_locked();
}

bool Heap::forget(const void* at) {
  std::lock_guard lock(mutex_);
  auto found = allocations_.find(reinterpret_cast<uint64_t>(at));
  if (found == allocations_.end() || found->second.owned) return false;
  make_room_locked();
  allocations_.erase(found);
  changed_locked();
  return true;
}

void Heap::at_fork(ForkPhase phase) {
  if (phase == ForkPhase::Child) {  // the child does not have the threads of these launches
    for (Slot& slot : slots_) slot.began.store(0);
    running_beyond_.clear();
  }
  hold(mutex_, phase);
}

// Reserves room for what a change retires: the memory and the snapshot. Call it before changing
// anything, because it may throw.
void Heap::make_room_locked() { retired_.reserve(retired_.size() + 2); }

// Launches that begin later see the memory as it is now. Call make_room_locked() first.
void Heap::changed_locked() noexcept {
  current_.store(nullptr);
  const uint64_t now = time_.fetch_add(1) + 1;
  if (snapshot_) retired_.push_back({nullptr, std::move(snapshot_), now});
  snapshot_.reset();
  free_retired_locked();
}

uint64_t Heap::oldest_running_locked() const {
  uint64_t oldest = ~uint64_t{0};
  for (const Slot& slot : slots_) {
    if (const uint64_t began = slot.began.load()) oldest = std::min(oldest, began);
  }
  for (uint64_t began : running_beyond_) oldest = std::min(oldest, began);
  return oldest;
}

void Heap::free_retired_locked() noexcept {
  const uint64_t oldest = oldest_running_locked();
  std::erase_if(retired_, [&](Retired& retired) {
    if (retired.since > oldest) return false;
    std::free(retired.memory);
    return true;
  });
  retired_count_.store(retired_.size());
}

RunningLaunch::RunningLaunch(Heap& heap) : heap_(heap) {
  static std::atomic<size_t> next_slot{0};
  thread_local const size_t own = next_slot.fetch_add(1, std::memory_order_relaxed);
  for (size_t i = 0; i < Heap::kSlots && !slot_; ++i) {
    std::atomic<uint64_t>& slot = heap.slots_[(own + i) % Heap::kSlots].began;
    uint64_t free = 0;
    if (slot.compare_exchange_strong(free, heap.time_.load())) slot_ = &slot;
  }
  if (slot_) regions_ = heap.current_.load();
  if (regions_) return;
  try {
    std::lock_guard lock(heap.mutex_);
    regions_ = heap.regions_locked().get();
    if (!slot_) heap.running_beyond_.push_back(began_ = heap.time_.load());
  } catch (...) {  // no destructor runs, and a slot that stays taken would keep all memory forever
    if (slot_) slot_->store(0);
    throw;
  }
}

void RunningLaunch::end() noexcept {
  if (ended_) return;
  ended_ = true;
  if (slot_) slot_->store(0);
  if (slot_ && heap_.retired_count_.load() == 0) return;
  std::lock_guard lock(heap_.mutex_);
  if (!slot_) {
    auto own = std::ranges::find(heap_.running_beyond_, began_);
    heap_.running_beyond_.erase(own);
  }
  heap_.free_retired_locked();
}

size_t Heap::retired_count() const {
  std::lock_guard lock(mutex_);
  return static_cast<size_t>(
      std::ranges::count_if(retired_, [](const Retired& each) { return each.memory != nullptr; }));
}

std::optional<Allocation> Heap::find(uint64_t address) const {
  std::lock_guard lock(mutex_);
  auto above = allocations_.upper_bound(address);
  if (above == allocations_.begin()) return std::nullopt;
  const Allocation& candidate = std::prev(above)->second;
  if (address - candidate.begin >= std::max<uint64_t>(candidate.bytes, 1)) return std::nullopt;
  return candidate;
}

std::shared_ptr<const std::vector<Region>> Heap::regions() {
  std::lock_guard lock(mutex_);
  return regions_locked();
}

std::shared_ptr<const std::vector<Region>> Heap::regions_locked() {
  if (!snapshot_) {
    auto regions = std::make_shared<std::vector<Region>>();
    regions->reserve(allocations_.size());
    for (const auto& [begin, a] : allocations_)
      regions->push_back({begin, begin + a.bytes, true, ""});
    snapshot_ = std::move(regions);
    current_.store(snapshot_.get());
  }
  return snapshot_;
}

uint64_t Heap::bytes_in_use() const {
  std::lock_guard lock(mutex_);
  return bytes_in_use_;
}

uint64_t Heap::bytes_in_use(const std::string& name) const {
  std::lock_guard lock(mutex_);
  uint64_t bytes = 0;
  for (const auto& [begin, allocation] : allocations_)
    bytes += allocation.name == name ? allocation.bytes : 0;
  return bytes;
}

void MemoryMap::begin(const KilnRegion* regions, uint32_t count, bool check,
                      const std::vector<Region>& heap) {
  regions_.clear();
  heap_ = {std::shared_ptr<void>(), &heap};  // owned by the launch
  check_ = check;
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t at = reinterpret_cast<uint64_t>(regions[i].begin);
    if (regions[i].bytes > ~at) continue;
    const char* name = regions[i].name ? regions[i].name : "";
    add({at, at + regions[i].bytes, regions[i].writable != 0, name});
  }
}

void MemoryMap::refresh(std::shared_ptr<const std::vector<Region>> heap) {
  std::lock_guard lock(heap_mutex_);
  heap_ = std::move(heap);
}

std::shared_ptr<const std::vector<Region>> MemoryMap::heap() const {
  std::lock_guard lock(heap_mutex_);
  return heap_;
}

void MemoryMap::add(Region region) {
  auto above = std::upper_bound(regions_.begin(), regions_.end(), region.begin,
                                [](uint64_t value, const Region& r) { return value < r.begin; });
  regions_.insert(above, region);
}

std::optional<Region> MemoryMap::find(uint64_t address, uint64_t bytes, bool write) const {
  // Tensors may overlap (views of one storage). Any that holds the bytes will do; there are few.
  for (const Region& region : regions_) {
    if (region.begin > address) break;
    if (region.holds(address, bytes) && (region.writable || !write)) return region;
  }
  auto allocations = heap();
  if (const Region* region = find_in(*allocations, address);
      region && region->holds(address, bytes))
    return *region;
  if (check_) return std::nullopt;
  auto region = mapped_region(address);
  if (region && region->holds(address, bytes) && (region->writable || !write)) return region;
  return std::nullopt;
}

std::optional<Region> MemoryMap::owner(uint64_t address) const {
  const Region* empty = nullptr;
  for (const Region& region : regions_) {
    if (region.holds(address, 1)) return region;
    if (region.begin == address && region.end == address) empty = &region;
  }
  if (empty) return *empty;
  auto allocations = heap();
  if (const Region* region = find_in(*allocations, address); region && region->holds(address, 1))
    return *region;
  return std::nullopt;
}

std::optional<Region> MemoryMap::nearest(uint64_t address) const {
  std::optional<Region> best;
  nearest_in(&best, regions_, address);
  nearest_in(&best, *heap(), address);
  return best;
}

std::optional<Region> mapped_region(uint64_t address) {
  std::FILE* maps = std::fopen("/proc/self/maps", "re");
  if (!maps) return std::nullopt;
  std::optional<Region> found;
  // Adjacent mappings with the same rights count as one, because an allocation may span them.
  Region current;
  char line[512];
  while (std::fgets(line, sizeof line, maps)) {
    unsigned long begin = 0, end = 0;
    char rights[5] = "";
    if (std::sscanf(line, "%lx-%lx %4s", &begin, &end, rights) != 3 || rights[0] != 'r') continue;
    bool writable = rights[1] == 'w';
    if (current.end == begin && current.begin < current.end && current.writable == writable) {
      current.end = end;
    } else {
      if (current.holds(address, 1)) break;
      current = {begin, end, writable, ""};
    }
  }
  std::fclose(maps);
  if (current.begin < current.end && current.holds(address, 1)) found = current;
  return found;
}

}  // namespace kiln::engine
