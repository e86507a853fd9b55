// SPDX-License-Identifier: Apache-2.0
// What is kept of past accesses? For each line of 128 bytes a list of entries: which words, by
// which warps of which block, at which source line, when.
//
// A warp that reads or writes neighbours is one entry for 32 threads, and costs one comparison
// where it comes again: that is what keeps the checker within a few times of the plain speed. A
// line that is accessed in other ways (gathers, counters) is split, and has a list for each word.
//
// Two accesses race whether or not one of them is the latest, so "the last write" is not enough for
// a verdict that does not depend on the order of this run. Kept is the latest for each source line:
// if an earlier access of a line happened before a later one of the same line, then whatever races
// with the earlier one also races with the later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "watch/race/clock.h"

namespace kiln::watch::race {

constexpr uint32_t kLineBytes = 128, kWordBytes = 4, kLineWords = kLineBytes / kWordBytes;

// What two accesses must have in common to be of one entry: the place, and the form.
struct Key {
  uint32_t bits = 0;

  static constexpr uint32_t kBytesShift = 0;  // 4 bits: bytes of each word
  static constexpr uint32_t kSizeShift = 4;   // 3 bits: log2 of the bytes of a lane
  static constexpr uint32_t kDense = 1u << 7, kWrites = 1u << 8, kStrong = 1u << 9;
  static constexpr uint32_t kPlaceShift = 10;
  static constexpr uint32_t kMostPlaces = 1u << (32 - kPlaceShift);

  uint32_t place() const { return bits >> kPlaceShift; }
  uint32_t bytes() const { return bits & 15; }
  uint32_t size_log2() const { return bits >> kSizeShift & 7; }
  bool dense() const { return bits & kDense; }
  bool writes() const { return bits & kWrites; }
  bool strong() const { return bits & kStrong; }
  bool operator==(const Key&) const = default;
};

// Dense: neighbouring lanes at neighbouring elements; lane l is at byte (l - shift) << size_log2 of
// the line. Else each of the lanes accessed each of the words.
struct Entry {
  Key key;
  uint32_t block = 0;  // uid
  uint32_t warps = 0;  // of the block, that did the same
  Time time = 0;       // none of them has synchronised between its access and this
  uint32_t words = 0;
  uint32_t lanes = 0;  // a mask; dense: the shift, signed
  uint32_t next = 0;   // in the pool; 0: none
  uint32_t value = 0;  // a hash of what all of them wrote; 0: not known, or not the same

  // The lanes at a byte of a word.
  uint32_t lanes_at(uint32_t word, uint32_t byte) const {
    if (!key.dense()) return lanes;
    const uint32_t element = (word * kWordBytes + byte) >> key.size_log2();
    const uint32_t lane = element + lanes;
    return lane < 32 ? 1u << lane : 0;
  }
};

// Words of a split line whose lists say enough: a further access of the same source line would
// change no verdict, and is not looked up in them (Checker::is_known). Most of what kernels read
// again and again ends there.
struct Known {
  struct Words {
    Key key;
    uint32_t words = 0;
  };
  static constexpr uint32_t kSlots = 8;

  uint32_t launch = 0;  // that of_others is of
  uint32_t own_block = 0;
  Time own_since = 0;       // the barrier of that block
  Words own;                // two warps of it have entries
  Words of_others[kSlots];  // two blocks have entries, by place

  Words& slot(Key key) { return of_others[key.place() % kSlots]; }
  const Words& slot(Key key) const { return of_others[key.place() % kSlots]; }
};

// All entries of all lines, by index: half the size of pointers.
class Pool {
 public:
  Entry& operator[](uint32_t index) { return chunks_[index >> kShift][index & (kChunk - 1)]; }
  // 0: the limit is reached, or there is no memory.
  uint32_t take();
  void give(uint32_t index) {
    (*this)[index].next = free_;
    free_ = index;
    --used_;
  }
  void give_list(uint32_t head);

  // Heads of the lists of 32 words.
  uint32_t* words(uint32_t index) {
    return split_chunks_[index >> kSplitShift].get() + (index & (kSplitChunk - 1)) * kLineWords;
  }
  uint32_t take_words();
  void give_words(uint32_t index);

  Known& known(uint32_t index) { return known_chunks_[index >> kSplitShift][index % kSplitChunk]; }
  uint32_t take_known();
  void give_known(uint32_t index) { free_known_.push_back(index); }

  bool full() const { return full_; }
  uint32_t used() const { return used_; }
  void set_limit(uint32_t entries) { limit_ = entries; }

 private:
  static constexpr uint32_t kShift = 14, kChunk = 1u << kShift;
  static constexpr uint32_t kSplitShift = 10, kSplitChunk = 1u << kSplitShift;
  std::vector<std::unique_ptr<Entry[]>> chunks_;
  std::vector<std::unique_ptr<uint32_t[]>> split_chunks_;
  std::vector<std::unique_ptr<Known[]>> known_chunks_;
  uint32_t made_ = 1, free_ = 0, used_ = 0;  // index 0 is none
  uint32_t splits_made_ = 1;
  uint32_t known_made_ = 1;
  std::vector<uint32_t> free_splits_, free_known_;
  uint32_t limit_ = 1u << 27;
  bool full_ = false;
};

struct Line {
  uint32_t head = 0;   // of the list
  uint32_t split = 0;  // lists of words in its place; 0: none
  Time touched = 0;    // the time of the latest access
  Key key;             // of all entries of the list; 0: they may have several

  // Of a split line, which has neither list nor key: its Known in the pool (0: none), and the
  // largest uid of the blocks in its lists. There are many lines: none has room to spare.
  uint32_t& known() { return head; }
  uint32_t known() const { return head; }
  uint32_t& newest() { return key.bits; }
  uint32_t newest() const { return key.bits; }
};
using Lines = std::vector<Line>;

void clear_line(Pool& pool, Line& line);

// The lines of global memory.
class GlobalShadow {
 public:
  explicit GlobalShadow(Pool& pool) : pool_(pool) {}
  static constexpr uint64_t kPageBytes = 4096;
  static constexpr uint32_t kPageLines = kPageBytes / kLineBytes;

  // Never null where there is memory.
  Line* line(uint64_t address) {
    const uint64_t page = address / kPageBytes;
    const Cached& cached = cache_[page % kCached];
    Line* lines = cached.page == page ? cached.lines : page_lines(page);
    return lines ? lines + address / kLineBytes % kPageLines : nullptr;
  }
  // Null: nothing is kept of its page.
  Line* find(uint64_t address) const {
    const auto found = pages_.find(address / kPageBytes);
    return found == pages_.end() ? nullptr
                                 : found->second.get() + address / kLineBytes % kPageLines;
  }
  void forget(uint64_t begin, uint64_t bytes);
  void clear();
  size_t pages() const { return pages_.size(); }

 private:
  Line* page_lines(uint64_t page);
  void forget_page(uint64_t page, uint32_t first, uint32_t last);

  struct Cached {
    uint64_t page = ~uint64_t{0};
    Line* lines = nullptr;
  };
  static constexpr size_t kCached = 256;
  Pool& pool_;
  Cached cache_[kCached];
  std::unordered_map<uint64_t, std::unique_ptr<Line[]>> pages_;
};

}  // namespace kiln::watch::race
