// SPDX-License-Identifier: Apache-2.0
// Does a warp that reads its data again still find it in the caches?
//
// What lies between two loads of a sector decides. A warp's own loads and stores come in one order
// under every schedule, and the other warps do about the same at the same time: what a warp touched
// in between, times the warps that run beside it, is what passed through the cache. A few warps of
// a launch stand for all.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

namespace kiln::watch {

struct ReuseScale {
  uint64_t l1_bytes = 0, l2_bytes = 0;
  uint64_t multiprocessor_warps = 1, gpu_warps = 1;  // that run at once
};

// Sectors; those that were loaded again count by 1/256.
struct Reuse {
  static constexpr uint64_t kWhole = 256;
  uint64_t loaded = 0;     // each once
  uint64_t from_l2 = 0;    // loaded again, after L1 had lost them
  uint64_t from_dram = 0;  // of these, what L2 had lost too
  void add(const Reuse& other);
  // What `sectors` that are loaded once would be in all.
  uint64_t more_from_l2(uint64_t sectors) const { return scaled(from_l2, sectors); }
  uint64_t more_from_dram(uint64_t sectors) const { return scaled(from_dram, sectors); }

 private:
  uint64_t scaled(uint64_t again, uint64_t sectors) const;
};

class WarpReuse {
 public:
  explicit WarpReuse(const ReuseScale& scale) : scale_(scale) {}
  void load(uint64_t first, uint64_t last);
  void store(uint64_t first, uint64_t last);
  const Reuse& found() const { return found_; }

 private:
  struct Seen {
    uint64_t loads = 0, touches = 0;  // of the warp, when it loaded the sector
  };
  void load(uint64_t sector);

  ReuseScale scale_;
  Reuse found_;
  uint64_t loads_ = 0, touches_ = 0;
  std::unordered_map<uint64_t, Seen> seen_;
  std::unordered_set<uint64_t> stored_;
};

}  // namespace kiln::watch
