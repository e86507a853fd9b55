// SPDX-License-Identifier: Apache-2.0
// Which sectors of global memory did each block touch, and which of them came from L2 and DRAM?
//
// The model does not depend on the order in which blocks and warps ran, so that any schedule gives
// the same numbers. Each block fetches a sector that it loads from L2 once: L1 keeps it. Blocks run
// in waves, by their number, as many as the GPU holds at once; a wave that loads a sector finds it
// in L2 if the waves since the last touch have touched less than L2 holds, else in DRAM. Stores go
// to L2, and from there to DRAM when later waves need the room.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace kiln::watch {

struct Caches {
  uint32_t multiprocessors = 132;
  uint64_t l2_bytes = uint64_t{50} << 20;
  uint64_t l1_bytes = uint64_t{256} << 10;  // of a multiprocessor, shared memory with it
};

// Sectors as bits, in pages of 32 KB. A table with the pages in it: an access to scattered sectors
// takes one look per sector, and that look is most of what counting it costs. Large pages make few
// of them per block.
class SectorSet {
 public:
  static constexpr uint32_t kPageSectors = 1024, kPageWords = kPageSectors / 64;
  struct Page {
    uint64_t number = kFree;
    std::array<uint64_t, kPageWords> bits{};
  };

  SectorSet() : slots_(kFewest), last_(slots_.data()) {}
  SectorSet(const SectorSet&) = delete;
  SectorSet& operator=(const SectorSet&) = delete;
  // How many of them are new.
  uint64_t add(uint64_t sector) {
    uint64_t& word = find(sector / kPageSectors).bits[sector / 64 % kPageWords];
    const uint64_t bit = uint64_t{1} << sector % 64, is_new = (word & bit) == 0;
    word |= bit;
    return is_new;
  }
  uint64_t add(uint64_t first, uint64_t last) {
    if (first / 64 != last / 64) return add_range(first, last);
    const uint64_t bits = (~uint64_t{0} >> (63 - (last - first))) << first % 64;
    uint64_t& word = page(first / kPageSectors).bits[first / 64 % kPageWords];
    const uint64_t added = bits & ~word;
    word |= bits;
    return static_cast<uint64_t>(std::popcount(added));
  }
  void add(const SectorSet& other);
  void clear();
  uint64_t count() const;
  // Calls then(page), in the order in which pages were first touched.
  template <class Then>
  void each_page(Then then) const {
    for (const uint32_t slot : used_) then(slots_[slot]);
  }

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  static constexpr size_t kFewest = 32;

  Page& page(uint64_t number) {
    if (last_->number != number) last_ = &find(number);
    return *last_;
  }
  Page& find(uint64_t number) {
    const size_t mask = slots_.size() - 1;
    size_t slot = slot_of(number) & mask;
    while (slots_[slot].number != number) {
      if (slots_[slot].number == kFree) return insert(number, slot);
      slot = (slot + 1) & mask;
    }
    return slots_[slot];
  }
  static size_t slot_of(uint64_t number) { return number * 0x9e3779b97f4a7c15u >> 32; }
  Page& insert(uint64_t number, size_t slot);
  uint64_t add_range(uint64_t first, uint64_t last);
  void grow();

  std::vector<Page> slots_;
  std::vector<uint32_t> used_;
  Page* last_;
};

// One block, or all blocks of a wave.
struct Touched {
  SectorSet loaded, stored;
  uint64_t loaded_count = 0;  // of a block: counted as it goes
  template <class... Sectors>
  void load(Sectors... sectors) {
    loaded_count += loaded.add(sectors...);
  }
  template <class... Sectors>
  void store(Sectors... sectors) {
    stored.add(sectors...);
  }
  void clear() {
    loaded.clear();
    stored.clear();
    loaded_count = 0;
  }
};

// How often is the address updated that atomics update most? Counters by a hash of the address: a
// few addresses may share one, and the order of updates does not matter.
class AtomicUpdates {
 public:
  void add(uint64_t address, uint32_t updates) {
    if (counts_.empty()) counts_.resize(kPlaces, 0);
    counts_[address / 4 * 0x9e3779b97f4a7c15u >> 48] += updates;
  }
  uint64_t end();  // the largest; begins anew

 private:
  static constexpr size_t kPlaces = 1 << 16;
  std::vector<uint64_t> counts_;
};

struct Traffic {
  uint64_t block_sectors = 0;                      // loaded, by block, each once in it
  uint64_t read_sectors = 0, written_sectors = 0;  // of the launch, each once
  uint64_t dram_read_sectors = 0, dram_write_sectors = 0;
};

class Footprint {
 public:
  // `wave_blocks`: how many blocks run at once.
  void begin(const Caches& caches, uint64_t wave_blocks);
  void end_block(uint64_t block, const Touched& touched);
  Traffic end();

 private:
  Caches caches_;
  uint64_t wave_blocks_ = 1;
  std::map<uint64_t, Touched> waves_;
  uint64_t block_sectors_ = 0;
};

}  // namespace kiln::watch
