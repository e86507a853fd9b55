// SPDX-License-Identifier: Apache-2.0
#include "watch/counters/footprint.h"

#include <algorithm>
#include <bit>

#include "watch/counters/patterns.h"

namespace kiln::watch {
namespace {

// Which wave touched each sector last, from 1; 0: none. Most pages are touched as a whole.
class LastTouched {
 public:
  struct Page {
    uint32_t whole = 0;
    std::unique_ptr<std::array<uint32_t, SectorSet::kPageSectors>> each;  // null: all are `whole`
  };

  // Calls seen(wave before, sectors) for the sectors of `bits`, and notes `wave` for them.
  template <class Seen>
  void touch(const SectorSet::Page& page, uint32_t wave, Seen seen) {
    Page& at = pages_[page.number];
    const bool all = std::all_of(page.bits.begin(), page.bits.end(),
                                 [](uint64_t bits) { return bits == ~uint64_t{0}; });
    if (all && !at.each) {
      seen(at.whole, SectorSet::kPageSectors);
      at.whole = wave;
      return;
    }
    if (!at.each) {
      at.each = std::make_unique<std::array<uint32_t, SectorSet::kPageSectors>>();
      at.each->fill(at.whole);
    }
    for (uint32_t word = 0; word < SectorSet::kPageWords; ++word) {
      for (uint64_t rest = page.bits[word]; rest; rest &= rest - 1) {
        uint32_t& last = (*at.each)[word * 64 + static_cast<uint32_t>(std::countr_zero(rest))];
        seen(last, 1);
        last = wave;
      }
    }
  }

 private:
  std::unordered_map<uint64_t, Page> pages_;
};

// DRAM gives two sectors at a time: a kernel that reads one of every 64 bytes reads all of them.
SectorSet::Page with_neighbours(SectorSet::Page page) {
  constexpr uint64_t kEven = 0x5555555555555555u;
  for (uint64_t& bits : page.bits) bits |= (bits & kEven) << 1 | (bits & ~kEven) >> 1;
  return page;
}

}  // namespace

void SectorSet::clear() {
  if (slots_.size() > 64 * kFewest) {
    slots_.assign(kFewest, {});
  } else {
    for (const uint32_t slot : used_) slots_[slot] = {};
  }
  used_.clear();
  last_ = slots_.data();
}

SectorSet::Page& SectorSet::insert(uint64_t number, size_t slot) {
  if (used_.size() * 2 >= slots_.size()) {
    grow();
    return find(number);
  }
  slots_[slot].number = number;
  used_.push_back(static_cast<uint32_t>(slot));
  return slots_[slot];
}

void SectorSet::grow() {
  std::vector<Page> larger(slots_.size() * 2);
  const size_t mask = larger.size() - 1;
  for (uint32_t& used : used_) {
    size_t slot = slot_of(slots_[used].number) & mask;
    while (larger[slot].number != kFree) slot = (slot + 1) & mask;
    larger[slot] = slots_[used];
    used = static_cast<uint32_t>(slot);
  }
  slots_ = std::move(larger);
  last_ = slots_.data();
}

uint64_t SectorSet::add_range(uint64_t first, uint64_t last) {
  uint64_t added = 0;
  for (uint64_t word = first / 64; word <= last / 64; ++word)
    added += add(std::max(first, word * 64), std::min(last, word * 64 + 63));
  return added;
}

void SectorSet::add(const SectorSet& other) {
  other.each_page([&](const Page& from) {
    Page& to = page(from.number);
    for (uint32_t word = 0; word < kPageWords; ++word) to.bits[word] |= from.bits[word];
  });
}

uint64_t SectorSet::count() const {
  uint64_t all = 0;
  each_page([&](const Page& page) {
    for (const uint64_t bits : page.bits) all += static_cast<uint64_t>(std::popcount(bits));
  });
  return all;
}

uint64_t AtomicUpdates::end() {
  if (counts_.empty()) return 0;
  const uint64_t most = *std::max_element(counts_.begin(), counts_.end());
  counts_.clear();
  return most;
}

void Footprint::begin(const Caches& caches, uint64_t wave_blocks) {
  caches_ = caches;
  wave_blocks_ = std::max<uint64_t>(wave_blocks, 1);
  waves_.clear();
  block_sectors_ = 0;
}

void Footprint::end_block(uint64_t block, const Touched& touched) {
  block_sectors_ += touched.loaded_count;
  Touched& wave = waves_[block / wave_blocks_];
  wave.loaded.add(touched.loaded);
  wave.stored.add(touched.stored);
}

Traffic Footprint::end() {
  Traffic out;
  out.block_sectors = block_sectors_;
  LastTouched touched, dirty;
  SectorSet read, written;
  // By wave, from 1: bytes that it and those before it touched, and what it made dirty.
  std::vector<uint64_t> bytes = {0}, dirtied = {0};
  for (auto& [number, wave] : waves_) {
    const auto now = static_cast<uint32_t>(bytes.size());
    bytes.push_back(bytes.back() + kSectorBytes * (wave.loaded.count() + wave.stored.count()));
    dirtied.push_back(0);
    const auto is_gone = [&](uint32_t last) {
      return last == 0 || bytes[now] - bytes[last] > caches_.l2_bytes;
    };
    wave.loaded.each_page([&](const SectorSet::Page& page) {
      touched.touch(with_neighbours(page), now, [&](uint32_t last, uint32_t sectors) {
        if (is_gone(last)) out.dram_read_sectors += sectors;
      });
    });
    wave.stored.each_page([&](const SectorSet::Page& page) {
      touched.touch(page, now, [](uint32_t, uint32_t) {});
      // What is written again while it is still there goes to DRAM once, later.
      dirty.touch(page, now, [&](uint32_t last, uint32_t sectors) {
        if (!is_gone(last)) dirtied[last] -= sectors;
        dirtied[now] += sectors;
      });
    });
    read.add(wave.loaded);
    written.add(wave.stored);
    wave.clear();
  }
  // What the last waves wrote is still in L2 when the kernel ends; of the wave at its edge a part.
  for (size_t wave = 1; wave < bytes.size(); ++wave) {
    const uint64_t later = bytes.back() - bytes[wave], own = bytes[wave] - bytes[wave - 1];
    const uint64_t room = later >= caches_.l2_bytes ? 0 : caches_.l2_bytes - later;
    const double kept =
        own == 0 ? 1 : std::min(1.0, static_cast<double>(room) / static_cast<double>(own));
    const auto kept_sectors = static_cast<uint64_t>(kept * static_cast<double>(dirtied[wave]));
    out.dram_write_sectors += dirtied[wave] - kept_sectors;
  }
  out.read_sectors = read.count();
  out.written_sectors = written.count();
  waves_.clear();
  return out;
}

}  // namespace kiln::watch
