// SPDX-License-Identifier: Apache-2.0
#include "watch/race/shadow.h"

#include <algorithm>
#include <new>

namespace kiln::watch::race {

uint32_t Pool::take() {
  if (free_) {
    const uint32_t index = free_;
    free_ = (*this)[index].next;
    ++used_;
    return index;
  }
  if (made_ >= limit_) {
    full_ = true;
    return 0;
  }
  if (made_ >> kShift >= chunks_.size()) {
    std::unique_ptr<Entry[]> chunk(new (std::nothrow) Entry[kChunk]);
    if (!chunk) {
      full_ = true;
      return 0;
    }
    chunks_.push_back(std::move(chunk));
  }
  ++used_;
  return made_++;
}

void Pool::give_list(uint32_t head) {
  while (head) {
    const uint32_t next = (*this)[head].next;
    give(head);
    head = next;
  }
}

uint32_t Pool::take_words() {
  const uint32_t index = words_.take();
  if (!index)
    full_ = true;
  else
    std::fill_n(words(index), kLineWords, 0u);
  return index;
}

uint32_t Pool::take_known() {
  const uint32_t index = known_.take();
  if (index) known(index) = {};
  return index;
}

void Pool::give_words(uint32_t index) {
  for (uint32_t word = 0; word < kLineWords; ++word) give_list(words(index)[word]);
  words_.give(index);
}

// Whoever comes races with one of two blocks, of which no thread knows what another did. Before the
// next barrier of a block the same holds for two of its warps.
void TwoReaders::add(Reader by) {
  const bool same_block = first.same_block(by), same_warp = first.same_warp(by);
  switch (first.state()) {
    case Reader::Nobody:
      first = by;
      return;
    case Reader::One:
    case Reader::Lanes:
      if (same_warp) {
        if (first.state() == Reader::One) second = 1u << first.lane();
        second |= 1u << by.lane();
        first.set_state(second & (second - 1) ? Reader::Lanes : Reader::One);
        return;
      }
      break;
    case Reader::TwoWarps:
      if (same_block) return;
      break;
    case Reader::TwoBlocks:
      return;
  }
  second = by.bits;
  first.set_state(same_block ? Reader::TwoWarps : Reader::TwoBlocks);
}

void clear_line(Pool& pool, Line& line) {
  if (!line.split) {
    pool.give_list(line.head);
  } else if (line.pairs()) {
    pool.pairs.give(line.readers());
  } else if (line.reads()) {
    pool.readers.give(line.readers());
  } else {
    pool.give_words(line.split);
    if (line.known()) pool.give_known(line.known());
  }
  line = {};
}

namespace {

// Without writing to those that nobody has touched: they may have no memory.
void clear_lines(Pool& pool, Line* lines, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    if (lines[i].is_touched()) clear_line(pool, lines[i]);
  }
}

}  // namespace

Line* GlobalShadow::page_lines(uint64_t page) {
  auto& lines = pages_[page];
  static_assert(std::is_trivially_copyable_v<Line>);  // zeros are a line that nobody has touched
  if (!lines) lines.reset(static_cast<Line*>(std::calloc(kPageLines, sizeof(Line))));
  cache_[page % kCached] = {page, lines.get()};
  return lines.get();
}

void GlobalShadow::forget_page(uint64_t page, uint32_t first, uint32_t last) {
  const auto found = pages_.find(page);
  if (found == pages_.end()) return;
  if (found->second) clear_lines(pool_, found->second.get() + first, last - first + 1);
  if (first != 0 || last != kPageLines - 1) return;
  cache_[page % kCached] = {};
  pages_.erase(found);
}

// Allocations begin at lines; their last one is theirs alone.
void GlobalShadow::forget(uint64_t begin, uint64_t bytes) {
  if (bytes == 0 || pages_.empty()) return;
  const uint64_t last = begin + bytes - 1;
  const uint64_t first_page = begin / kPageBytes, last_page = last / kPageBytes;
  auto first_line = [&](uint64_t page) {
    return page == first_page ? static_cast<uint32_t>(begin / kLineBytes % kPageLines) : 0;
  };
  auto last_line = [&](uint64_t page) {
    return page == last_page ? static_cast<uint32_t>(last / kLineBytes % kPageLines)
                             : kPageLines - 1;
  };
  if (last_page - first_page < pages_.size()) {
    for (uint64_t page = first_page; page <= last_page; ++page)
      forget_page(page, first_line(page), last_line(page));
    return;
  }
  std::vector<uint64_t> inside;
  for (const auto& [page, lines] : pages_) {
    if (page >= first_page && page <= last_page) inside.push_back(page);
  }
  for (uint64_t page : inside) forget_page(page, first_line(page), last_line(page));
}

void GlobalShadow::clear() {
  for (auto& [page, lines] : pages_) {
    if (lines) clear_lines(pool_, lines.get(), kPageLines);
  }
  pages_.clear();
  for (Cached& each : cache_) each = {};
}

}  // namespace kiln::watch::race
