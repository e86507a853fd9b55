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
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace kiln::watch {

struct Caches {
  uint32_t multiprocessors = 132;
  uint64_t l2_bytes = uint64_t{50} << 20;
};

// Sectors as bits, in pages of 128.
class SectorSet {
 public:
  static constexpr uint32_t kPageSectors = 128;
  struct Page {
    uint64_t number = 0;
    std::array<uint64_t, 2> bits{};
  };

  SectorSet() { clear(); }
  void add(uint64_t sector) {
    page(sector / kPageSectors).bits[sector / 64 % 2] |= uint64_t{1} << sector % 64;
  }
  void add(uint64_t first, uint64_t last);
  void add(const SectorSet& other);
  void clear();
  uint64_t count() const;
  const std::vector<Page>& pages() const { return pages_; }

 private:
  Page& page(uint64_t number) {
    if (number == last_number_) return pages_[last_index_];
    return find(number);
  }
  Page& find(uint64_t number);
  void grow();

  std::vector<Page> pages_;
  std::vector<uint32_t> places_;  // index into pages_, from 1; 0: free
  uint64_t last_number_ = ~uint64_t{0};
  uint32_t last_index_ = 0;
};

// One block, or all blocks of a wave.
struct Touched {
  SectorSet loaded, stored;
  void clear() {
    loaded.clear();
    stored.clear();
  }
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
