// SPDX-License-Identifier: Apache-2.0
#include "watch/counters/footprint.h"

#include <algorithm>
#include <bit>

#include "watch/counters/patterns.h"

namespace kiln::watch {
namespace {

uint64_t bits_between(uint32_t first, uint32_t last) {
  const uint64_t above = last == 63 ? ~uint64_t{0} : (uint64_t{1} << (last + 1)) - 1;
  return above & ~((uint64_t{1} << first) - 1);
}

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
    const bool all = page.bits[0] == ~uint64_t{0} && page.bits[1] == ~uint64_t{0};
    if (all && !at.each) {
      seen(at.whole, SectorSet::kPageSectors);
      at.whole = wave;
      return;
    }
    if (!at.each) {
      at.each = std::make_unique<std::array<uint32_t, SectorSet::kPageSectors>>();
      at.each->fill(at.whole);
    }
    for (uint32_t half = 0; half < 2; ++half) {
      for (uint64_t rest = page.bits[half]; rest; rest &= rest - 1) {
        uint32_t& last = (*at.each)[half * 64 + static_cast<uint32_t>(std::countr_zero(rest))];
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
  if (places_.size() > 4096 || places_.empty()) {
    places_.assign(64, 0);
  } else if (!pages_.empty()) {
    std::fill(places_.begin(), places_.end(), 0);
  }
  pages_.clear();
  last_number_ = ~uint64_t{0};
}

SectorSet::Page& SectorSet::find(uint64_t number) {
  if (pages_.size() * 2 >= places_.size()) grow();
  const size_t mask = places_.size() - 1;
  size_t place = number * 0x9e3779b97f4a7c15u >> 20 & mask;
  while (places_[place] && pages_[places_[place] - 1].number != number) place = (place + 1) & mask;
  if (!places_[place]) {
    pages_.push_back({number, {}});
    places_[place] = static_cast<uint32_t>(pages_.size());
  }
  last_number_ = number;
  last_index_ = places_[place] - 1;
  return pages_[last_index_];
}

void SectorSet::grow() {
  std::vector<uint32_t> larger(places_.size() * 2, 0);
  const size_t mask = larger.size() - 1;
  for (uint32_t i = 0; i < pages_.size(); ++i) {
    size_t place = pages_[i].number * 0x9e3779b97f4a7c15u >> 20 & mask;
    while (larger[place]) place = (place + 1) & mask;
    larger[place] = i + 1;
  }
  places_ = std::move(larger);
}

void SectorSet::add(uint64_t first, uint64_t last) {
  for (uint64_t number = first / kPageSectors; number <= last / kPageSectors; ++number) {
    const uint64_t begin = std::max(first, number * kPageSectors) % kPageSectors;
    const uint64_t end = std::min(last, number * kPageSectors + kPageSectors - 1) % kPageSectors;
    Page& to = page(number);
    if (begin < 64)
      to.bits[0] |= bits_between(static_cast<uint32_t>(begin),
                                 static_cast<uint32_t>(std::min<uint64_t>(end, 63)));
    if (end >= 64)
      to.bits[1] |= bits_between(static_cast<uint32_t>(begin < 64 ? 0 : begin - 64),
                                 static_cast<uint32_t>(end - 64));
  }
}

void SectorSet::add(const SectorSet& other) {
  for (const Page& from : other.pages_) {
    Page& to = page(from.number);
    to.bits[0] |= from.bits[0];
    to.bits[1] |= from.bits[1];
  }
}

uint64_t SectorSet::count() const {
  uint64_t all = 0;
  for (const Page& page : pages_) {
    all += static_cast<uint64_t>(std::popcount(page.bits[0]) + std::popcount(page.bits[1]));
  }
  return all;
}

void Footprint::begin(const Caches& caches, uint64_t wave_blocks) {
  caches_ = caches;
  wave_blocks_ = std::max<uint64_t>(wave_blocks, 1);
  waves_.clear();
  block_sectors_ = 0;
}

void Footprint::end_block(uint64_t block, const Touched& touched) {
  block_sectors_ += touched.loaded.count();
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
    for (const SectorSet::Page& page : wave.loaded.pages()) {
      touched.touch(with_neighbours(page), now, [&](uint32_t last, uint32_t sectors) {
        if (is_gone(last)) out.dram_read_sectors += sectors;
      });
    }
    for (const SectorSet::Page& page : wave.stored.pages()) {
      touched.touch(page, now, [](uint32_t, uint32_t) {});
      // What is written again while it is still there goes to DRAM once, later.
      dirty.touch(page, now, [&](uint32_t last, uint32_t sectors) {
        if (!is_gone(last)) dirtied[last] -= sectors;
        dirtied[now] += sectors;
      });
    }
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
