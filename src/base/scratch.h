// SPDX-License-Identifier: Apache-2.0
// Where does a task keep many short lists that all end with it?
//
// To ask the system's allocator for each takes a tenth of the instructions of a short task, and
// each page that is touched first costs as much as a thousand of them. So lists are laid one behind
// the other in memory that stays for the next task.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <new>
#include <set>
#include <utility>
#include <vector>

namespace kiln {

class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    while (blocks_) std::free(std::exchange(blocks_, blocks_->before));
  }

  // The lists of this thread are here while it lives. A list must begin and end with it.
  class Use {
   public:
    explicit Use(Scratch& scratch) : before_(std::exchange(current_, &scratch)) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() {
      current_->clear();
      current_ = before_;
    }

   private:
    Scratch* before_;
  };

  // Without a Use, and of very long lists, which would only be a burden here: the system's.
  static void* allocate(size_t bytes) {
    Scratch* const here = current_;
    if (!here || bytes > kLong) return ::operator new(bytes);
    const size_t whole = (bytes + kAlign - 1) / kAlign * kAlign;
    if (static_cast<size_t>(here->end_ - here->at_) < whole) here->grow(whole);
    return std::exchange(here->at_, here->at_ + whole);
  }
  static void free(void* memory, size_t bytes) noexcept {
    Scratch* const here = current_;
    if (!here || bytes > kLong) return ::operator delete(memory);
    const size_t whole = (bytes + kAlign - 1) / kAlign * kAlign;
    if (static_cast<std::byte*>(memory) + whole == here->at_) here->at_ -= whole;
  }

 private:
  // Little at first: the system's allocator has that where somebody has been already.
  static constexpr size_t kAlign = 16, kFirst = 4 << 10, kMost = 64 << 10, kLong = 32 << 10;
  struct alignas(kAlign) Block {
    Block* before;
    size_t bytes;
  };

  [[gnu::noinline]] void grow(size_t least) {
    const size_t next = blocks_ ? std::min(blocks_->bytes * 2, kMost) : kFirst;
    const size_t bytes = std::max(least + sizeof(Block), next);
    auto* block = static_cast<Block*>(std::malloc(bytes));
    if (!block) throw std::bad_alloc();
    *block = {blocks_, bytes};
    begin(block);
  }
  void begin(Block* block) {
    blocks_ = block;
    at_ = reinterpret_cast<std::byte*>(block + 1);
    end_ = reinterpret_cast<std::byte*>(block) + block->bytes;
  }
  // The last block stays, which is the longest.
  void clear() {
    if (!blocks_) return;
    for (Block* each = std::exchange(blocks_->before, nullptr); each;)
      std::free(std::exchange(each, each->before));
    begin(blocks_);
  }

  static inline constinit thread_local Scratch* current_ = nullptr;
  Block* blocks_ = nullptr;
  std::byte *at_ = nullptr, *end_ = nullptr;
};

template <class T>
struct ScratchAllocator {
  using value_type = T;
  ScratchAllocator() = default;
  template <class Other>
  ScratchAllocator(const ScratchAllocator<Other>&) {}  // NOLINT(google-explicit-constructor)
  T* allocate(size_t count) { return static_cast<T*>(Scratch::allocate(count * sizeof(T))); }
  void deallocate(T* memory, size_t count) noexcept { Scratch::free(memory, count * sizeof(T)); }
  bool operator==(const ScratchAllocator&) const { return true; }
};

template <class T>
using List = std::vector<T, ScratchAllocator<T>>;
template <class Key, class T>
using ListedMap = std::map<Key, T, std::less<Key>, ScratchAllocator<std::pair<const Key, T>>>;
template <class T>
using ListedSet = std::set<T, std::less<T>, ScratchAllocator<T>>;

}  // namespace kiln
