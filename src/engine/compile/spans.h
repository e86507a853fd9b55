// SPDX-License-Identifier: Apache-2.0
// Where do the values of a piece of code live? Each CPU notes its instructions on registers without
// a limit to their number, one after the other; what is known of a value when an instruction is
// noted is written down at once, for each way through the list again costs as much as noting it
// did. places.h finds a place for each value then.
#pragma once

#include <asmjit/core.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <vector>

namespace kiln::engine {

// A list that grows without touching memory that it does not use: a page costs as much as a
// thousand instructions when it is touched first, and most code is made by a process that is young.
// So short lists begin with so little that several share a page.
template <class T, size_t kFirst = 1024>
class Grown {
 public:
  Grown() = default;
  Grown(const Grown&) = delete;
  Grown& operator=(const Grown&) = delete;
  ~Grown() { std::free(all_); }
  void clear() { size_ = 0; }
  uint32_t size() const { return size_; }
  T& operator[](size_t index) { return all_[index]; }
  const T& operator[](size_t index) const { return all_[index]; }
  T* data() { return all_; }
  const T* data() const { return all_; }
  T& back() { return all_[size_ - 1]; }
  // Memory for one more, which is a part of the list after add().
  T& next() {
    if (size_ == room_) grow(size_ + 1);
    return all_[size_];
  }
  void add() { ++size_; }
  void push_back(const T& one) {
    next() = one;
    ++size_;
  }
  // What is new has any bits.
  void resize(uint32_t size) {
    if (size > room_) grow(size);
    size_ = size;
  }

 private:
  static_assert(std::is_trivially_copyable_v<T>);
  [[gnu::noinline]] void grow(uint32_t least) {
    const uint32_t room = std::max<uint32_t>({least, room_ * 2, kFirst / sizeof(T)});
    void* more = std::realloc(all_, size_t{room} * sizeof(T));
    if (!more) throw std::bad_alloc();
    all_ = static_cast<T*>(more);
    room_ = room;
  }
  T* all_ = nullptr;
  uint32_t size_ = 0, room_ = 0;
};

// What is the same for the instructions of every CPU: values, blocks and labels.
class Spans {
 public:
  // What names a register in an instruction: registers of the CPU are below kSpans, spans behind.
  static constexpr uint32_t kSpans = 64, kNone = ~uint32_t{0};
  // Of longer code the memory goes back to the system; else the next piece of code begins with what
  // the last one left behind, which takes a fifth off the time.
  static constexpr size_t kMostKept = 16 << 10;  // instructions
  static bool is_span(uint32_t reg) { return reg >= kSpans && reg < kNone - 1; }

  // Where a value lives in one block; and, behind all of those, where a value lives that more than
  // one block knows.
  struct Span {
    uint32_t value;
    uint32_t begin, end;  // an instruction has two: it reads at the first and writes at the second
    uint32_t like;        // one that it is copied from or to
    uint16_t count;       // of uses
    int16_t place;        // a register; below 0, memory
    bool is_vector;
    bool exposed;  // it is there before the block
    bool pure;     // so is the instruction that it begins with
    bool joined;   // it is a part of the span of all blocks
  };
  struct Block {
    uint32_t begin = 0, end = 0;  // instructions
    uint32_t first_span = 0;
    uint32_t label = kNone;  // that its last instruction may jump to
    bool goes_on = true;     // to the next block
    uint32_t next[2] = {}, next_count = 0;
    uint32_t depth = 0;  // loops around it
  };
  struct Copy {
    uint32_t to, from;  // spans
  };
  struct Lost {  // where registers are: a function is called
    uint32_t begin, end;
  };

  asmjit::Label newLabel() {
    block_of_label_.push_back(kNone);
    return asmjit::Label(static_cast<uint32_t>(block_of_label_.size()) - 1);
  }
  // What jumps there on a condition does not end its block: no value has to be known there, and
  // those of a block are found much faster than those of several.
  asmjit::Label new_bare_label() {
    const asmjit::Label label = newLabel();
    bare_labels_.push_back(label.id());
    return label;
  }
  void bind(const asmjit::Label& label) {
    begins_block_ = true;
    block_of_label_[label.id()] = static_cast<uint32_t>(blocks_.size());
  }

 protected:
  friend class Places;
  static bool is_virtual(uint32_t id) { return asmjit::Operand::isVirtId(id); }
  void clear_spans();
  uint32_t new_register(bool is_vector) {
    values_.push_back({kNone, kNone >> 1, is_vector});
    return asmjit::Operand::indexToVirtId(values_.size() - 1);
  }
  // Before each instruction.
  void begin_note(uint32_t note) {
    if (!begins_block_) return;
    begins_block_ = false;
    block_ = static_cast<uint32_t>(blocks_.size());
    blocks_.push_back({note, note, spans_.size()});
  }
  // The value becomes a span that is read until then.
  [[gnu::always_inline]] uint32_t read(uint32_t id, uint32_t until) {
    if (!is_virtual(id)) return id;
    const uint32_t value = asmjit::Operand::virtIdToIndex(id);
    const uint32_t index =
        values_[value].block == block_ ? values_[value].span : expose(value, until);
    Span& span = spans_[index];
    span.end = until;  // what was noted before is not later
    span.count += span.count != 0xffff;
    return index + kSpans;
  }
  // The value is written: what was there before goes on, as it was read, or ends.
  [[gnu::always_inline]] uint32_t write(uint32_t id, uint32_t at, bool begins, bool is_pure) {
    if (!is_virtual(id)) return id;
    const uint32_t value = asmjit::Operand::virtIdToIndex(id);
    uint32_t index = values_[value].span;
    if (begins) {
      index = new_span(value, at + 1, at + 2);
      spans_[index].pure = is_pure;
    }
    Span& span = spans_[index];
    span.end = at + 2;
    span.count += span.count != 0xffff;
    return index + kSpans;
  }
  void note_copy(uint32_t to, uint32_t from) {
    if (is_span(to) && is_span(from)) copies_.push_back({to - kSpans, from - kSpans});
  }
  // Behind a jump or a return.
  void end_block(uint32_t label, bool goes_on) {
    begins_block_ = true;
    blocks_.back().label = label;
    blocks_.back().goes_on = goes_on;
  }
  bool is_bare(uint32_t label) const {
    return std::find(bare_labels_.begin(), bare_labels_.end(), label) != bare_labels_.end();
  }

  struct Value {
    uint32_t span;
    uint32_t block : 31;  // that the span is in
    uint32_t is_vector : 1;
  };
  // So long from the beginning that they need not move: what nobody has touched costs nothing.
  static constexpr size_t kLong = 1 << 20;
  Grown<Value> values_;
  Grown<Span, kLong> spans_;
  std::vector<uint32_t> exposed_;  // spans
  std::vector<Block> blocks_;
  uint32_t block_ = 0;  // the last one
  Grown<Copy> copies_;
  std::vector<Lost> calls_;
  std::vector<uint32_t> block_of_label_;
  std::vector<uint32_t> bare_labels_;
  bool begins_block_ = true;

 private:
  uint32_t new_span(uint32_t value, uint32_t begin, uint32_t end) {
    const uint32_t index = spans_.size();
    Value& of = values_[value];
    spans_.next() = {.value = value,
                     .begin = begin,
                     .end = end,
                     .like = kNone,
                     .count = 0,
                     .place = -1,
                     .is_vector = of.is_vector != 0,
                     .exposed = false,
                     .pure = false,
                     .joined = false};
    spans_.add();
    of.span = index;
    of.block = block_;
    return index;
  }
  uint32_t expose(uint32_t value, uint32_t until);
};

}  // namespace kiln::engine
