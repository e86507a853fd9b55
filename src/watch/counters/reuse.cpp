// SPDX-License-Identifier: Apache-2.0
#include "watch/counters/reuse.h"

#include <algorithm>

#include "watch/counters/patterns.h"

namespace kiln::watch {
namespace {

constexpr size_t kMostSectors = size_t{1} << 20;  // of one warp; later ones are not looked at

// L1 does not give up its oldest line first. On an H200, of what comes again after as much as L1
// holds went through it, 42 to 68 % is lost; after half of that 20 %, after a quarter 11 %.
uint64_t lost_from_l1(uint64_t between_bytes, uint64_t l1_bytes) {
  if (between_bytes * 8 < l1_bytes) return 0;
  return std::min(Reuse::kWhole, Reuse::kWhole * between_bytes * 2 / (3 * l1_bytes));
}

}  // namespace

void Reuse::add(const Reuse& other) {
  loaded += other.loaded;
  from_l2 += other.from_l2;
  from_dram += other.from_dram;
}

uint64_t Reuse::scaled(uint64_t again, uint64_t sectors) const {
  if (loaded == 0) return 0;
  return static_cast<uint64_t>(static_cast<double>(sectors) * static_cast<double>(again) /
                               static_cast<double>(kWhole * loaded));
}

void WarpReuse::load(uint64_t first, uint64_t last) {
  for (uint64_t sector = first; sector <= last; ++sector) load(sector);
}

void WarpReuse::load(uint64_t sector) {
  if (seen_.size() >= kMostSectors) return;
  const auto [found, is_new] = seen_.try_emplace(sector);
  Seen& seen = found->second;
  if (is_new) {
    ++found_.loaded;
  } else {
    const uint64_t between = (loads_ - seen.loads) * kSectorBytes * scale_.multiprocessor_warps;
    const uint64_t lost = lost_from_l1(between, scale_.l1_bytes);
    if (lost == 0) return;  // still among the last ones
    found_.from_l2 += lost;
    if ((touches_ - seen.touches) * kSectorBytes * scale_.gpu_warps > scale_.l2_bytes)
      found_.from_dram += lost;
  }
  seen = {++loads_, ++touches_};
}

void WarpReuse::store(uint64_t first, uint64_t last) {
  for (uint64_t sector = first; sector <= last && stored_.size() < kMostSectors; ++sector) {
    // Sectors that are stored in parts take one place.
    if (stored_.insert(sector).second) ++touches_;
  }
}

}  // namespace kiln::watch
