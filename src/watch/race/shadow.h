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
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
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

  // Of a list of one, of the same source line, warp and time.
  bool same_but_place(const Entry& other) const {
    const auto two = [](const Entry& of, size_t offset) {
      uint64_t both;
      std::memcpy(&both, reinterpret_cast<const std::byte*>(&of) + offset, sizeof both);
      return both;
    };
    const auto equal = [&](size_t offset) { return two(*this, offset) == two(other, offset); };
    return equal(0) && equal(8) && equal(24);  // key, block; warps, time; next, value
  }

  // The lanes at a byte of a word.
  uint32_t lanes_at(uint32_t word, uint32_t byte) const {
    if (!key.dense()) return lanes;
    const uint32_t element = (word * kWordBytes + byte) >> key.size_log2();
    const uint32_t lane = element + lanes;
    return lane < 32 ? 1u << lane : 0;
  }
};

static_assert(offsetof(Entry, block) == 4 && offsetof(Entry, warps) == 8 &&
              offsetof(Entry, time) == 12 && offsetof(Entry, next) == 24);

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

// Who read a word of a line that has only been read in this launch, at one source line: all that
// most gathers leave behind. What is the same for the whole line is kept with the line, so a word
// takes 4 bytes, a ninth of lists. That matters because scattered accesses wait for memory. An
// access that this cannot say makes lists of the line (Checker::unfold).
struct Reader {
  uint32_t bits = 0;  // 0: nobody

  // Of two warps of a block, or of two blocks, whoever comes differs from one (check.h). Of several
  // lanes of a warp all are kept: some of them may be known to who comes, and others not.
  enum State : uint32_t { Nobody, One, Lanes, TwoWarps, TwoBlocks };
  static constexpr uint32_t kStateShift = 29, kBlockShift = 10;
  static constexpr uint32_t kBlockBits = kStateShift - kBlockShift;
  static constexpr uint32_t kMostBlocks = 1u << (kBlockBits - 1);  // of a launch

  // Lane 0 of a warp.
  static Reader of(uint32_t block, uint32_t warp) {
    constexpr uint32_t kMask = (1u << kBlockBits) - 1;
    return {One << kStateShift | (block & kMask) << kBlockShift | warp << 5};
  }
  State state() const { return static_cast<State>(bits >> kStateShift); }
  void set_state(State state) {
    bits = (bits & ((1u << kStateShift) - 1)) | uint32_t{state} << kStateShift;
  }
  uint32_t lane() const { return bits & 31; }
  uint32_t warp() const { return bits >> 5 & 31; }
  // Its uid, given that of another block of its launch.
  uint32_t block(uint32_t other) const {
    constexpr uint32_t kShift = 32 - kBlockBits;
    const auto ahead = static_cast<int32_t>(((bits >> kBlockShift) - other) << kShift) >> kShift;
    return other + static_cast<uint32_t>(ahead);
  }
  bool same_block(Reader other) const { return same(other, kBlockShift); }
  bool same_warp(Reader other) const { return same(other, kBlockShift - 5); }

 private:
  bool same(Reader other, uint32_t shift) const {
    return ((bits ^ other.bits) << (32 - kStateShift)) >> (32 - kStateShift + shift) == 0;
  }
};
struct TwoReaders {
  Reader first;         // its state is that of both
  uint32_t second = 0;  // a Reader; of Lanes: a mask of lanes, with the first
  void add(Reader by);
};

// Records of one size, by index; 0 is none. They lie side by side, so that an index is a place
// without a table; who takes one may move all others.
template <class T>
class Records {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Records() = default;
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;
  ~Records() { std::free(data_); }

  T& operator[](uint32_t index) { return data_[index]; }
  // As it was left, or as T begins; 0: there is no memory.
  uint32_t take() {
    if (!free_.empty()) {
      const uint32_t index = free_.back();
      free_.pop_back();
      return index;
    }
    if (made_ >= room_ && !grow()) return 0;
    new (data_ + made_) T();
    return made_++;
  }
  void give(uint32_t index) { free_.push_back(index); }

 private:
  bool grow() {
    const size_t room = room_ ? size_t{2} * room_ : 64;
    void* moved =
        room < kMost ? std::realloc(static_cast<void*>(data_), room * sizeof(T)) : nullptr;
    if (!moved) return false;
    data_ = static_cast<T*>(moved);
    room_ = static_cast<uint32_t>(room);
    return true;
  }

  static constexpr size_t kMost = size_t{1} << 30;  // Line::readers()
  T* data_ = nullptr;
  uint32_t room_ = 0, made_ = 1;
  std::vector<uint32_t> free_;
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
  uint32_t* words(uint32_t index) { return words_[index].of; }
  uint32_t take_words();
  void give_words(uint32_t index);

  Known& known(uint32_t index) { return known_[index]; }
  uint32_t take_known();
  void give_known(uint32_t index) { known_.give(index); }

  // Readers of 32 words: one of each, or two.
  struct Readers {
    Reader of[kLineWords];
  };
  struct Pairs {
    TwoReaders of[kLineWords];
  };
  Records<Readers> readers;
  Records<Pairs> pairs;

  bool full() const { return full_; }
  uint32_t used() const { return used_; }
  void set_limit(uint32_t entries) { limit_ = entries; }

 private:
  static constexpr uint32_t kShift = 14, kChunk = 1u << kShift;
  struct Words {
    uint32_t of[kLineWords];
  };
  std::vector<std::unique_ptr<Entry[]>> chunks_;
  Records<Words> words_;
  Records<Known> known_;
  uint32_t made_ = 1, free_ = 0, used_ = 0;  // index 0 is none
  uint32_t limit_ = 1u << 27;
  bool full_ = false;
};

struct Line {
  uint32_t head = 0;   // of the list
  uint32_t split = 0;  // lists of words in its place; 0: none
  Time touched = 0;    // the time of the latest access
  Key key;             // of all entries of the list; 0: they may have several

  bool is_touched() const { return head | split | touched; }

  // Of a split line, which has neither list nor key: its Known in the pool (0: none), and the
  // largest uid of the blocks in its lists. There are many lines: none has room to spare.
  uint32_t& known() { return head; }
  uint32_t known() const { return head; }
  uint32_t& newest() { return key.bits; }
  uint32_t newest() const { return key.bits; }

  // Of a split line with readers in the place of lists: the key of all of them, and the uid of the
  // block that came last. `touched` is the time of what that block read.
  static constexpr uint32_t kReads = 1u << 31, kPairs = 1u << 30;
  bool reads() const { return split & kReads; }
  bool pairs() const { return split & kPairs; }
  uint32_t readers() const { return split & (kPairs - 1); }  // in the pool
  // With this key, and one reader a word, or two. Both words of it in one comparison.
  bool reads_at(Key at) const { return state() == (uint64_t{kReads} << 32 | at.bits); }
  bool pairs_at(Key at) const { return state() == (uint64_t{kReads | kPairs} << 32 | at.bits); }
  uint64_t state() const {
    uint64_t both;
    std::memcpy(&both, this, sizeof both);
    return both & (uint64_t{kReads | kPairs} << 32 | 0xffffffffu);
  }
  uint32_t& reads_key() { return head; }
  uint32_t& reader() { return key.bits; }
};
using Lines = std::vector<Line>;

void clear_line(Pool& pool, Line& line);

// The lines of global memory. Those of a page are one array, of which the system gives memory where
// it is touched: so most kernels have their arrays in one page, and a place in it is a subtraction
// away.
class GlobalShadow {
 public:
  explicit GlobalShadow(Pool& pool) : pool_(pool) {}
  static constexpr uint64_t kPageBytes = 32 << 20;
  static constexpr uint32_t kPageLines = kPageBytes / kLineBytes;

  // Never null where there is memory.
  Line* line(uint64_t address) {
    Line* lines = page(address);
    return lines ? lines + address / kLineBytes % kPageLines : nullptr;
  }
  // The first line of its page.
  Line* page(uint64_t address) {
    const uint64_t page = address / kPageBytes;
    const Cached& cached = cache_[page % kCached];
    return cached.page == page ? cached.lines : page_lines(page);
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
  struct Free {
    void operator()(Line* lines) const { std::free(lines); }
  };
  static constexpr size_t kCached = 64;
  Pool& pool_;
  Cached cache_[kCached];
  std::unordered_map<uint64_t, std::unique_ptr<Line[], Free>> pages_;
};

}  // namespace kiln::watch::race
