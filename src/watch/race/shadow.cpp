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
  uint32_t index = 0;
  if (!free_splits_.empty()) {
    index = free_splits_.back();
    free_splits_.pop_back();
  } else {
    if (splits_made_ >> kSplitShift >= split_chunks_.size()) {
      constexpr size_t kWords = size_t{kSplitChunk} * kLineWords;
      std::unique_ptr<uint32_t[]> chunk(new (std::nothrow) uint32_t[kWords]);
      if (!chunk) {
        full_ = true;
        return 0;
      }
      split_chunks_.push_back(std::move(chunk));
    }
    index = splits_made_++;
  }
  std::fill_n(words(index), kLineWords, 0u);
  return index;
}

uint32_t Pool::take_known() {
  if (!free_known_.empty()) {
    const uint32_t index = free_known_.back();
    free_known_.pop_back();
    known(index) = {};
    return index;
  }
  if (known_made_ >> kSplitShift >= known_chunks_.size()) {
    std::unique_ptr<Known[]> chunk(new (std::nothrow) Known[kSplitChunk]);
    if (!chunk) return 0;
    known_chunks_.push_back(std::move(chunk));
  }
  return known_made_++;
}

void Pool::give_words(uint32_t index) {
  for (uint32_t word = 0; word < kLineWords; ++word) give_list(words(index)[word]);
  free_splits_.push_back(index);
}

void clear_line(Pool& pool, Line& line) {
  if (!line.split) {
    pool.give_list(line.head);
  } else {
    pool.give_words(line.split);
    if (line.known()) pool.give_known(line.known());
  }
  line = {};
}

Line* GlobalShadow::page_lines(uint64_t page) {
  auto& lines = pages_[page];
  if (!lines) lines = std::make_unique<Line[]>(kPageLines);
  cache_[page % kCached] = {page, lines.get()};
  return lines.get();
}

void GlobalShadow::forget_page(uint64_t page, uint32_t first, uint32_t last) {
  const auto found = pages_.find(page);
  if (found == pages_.end()) return;
  for (uint32_t i = first; i <= last; ++i) clear_line(pool_, found->second[i]);
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
    for (uint32_t i = 0; i < kPageLines; ++i) clear_line(pool_, lines[i]);
  }
  pages_.clear();
  for (Cached& each : cache_) each = {};
}

}  // namespace kiln::watch::race
