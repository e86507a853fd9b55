// SPDX-License-Identifier: Apache-2.0
// Where do the values of a piece of code live? Each CPU records its instructions one after the
// other, on an unlimited number of virtual registers. Live ranges are recorded at the same time,
// because another pass over the list would cost as much as recording it. places.h then finds a
// place for each value.
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

// A list that grows without touching memory that it does not use: the first touch of a page costs
// as much as a thousand instructions, and most code is made by young processes. Short lists start
// so small that several share a page.
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
  // Memory for one more element, which add() appends.
  T& next() {
    if (size_ == room_) grow(size_ + 1);
    return all_[size_];
  }
  void add() { ++size_; }
  void push_back(const T& one) {
    next() = one;
    ++size_;
  }
  // New elements are uninitialised.
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
  // Registers in an instruction: numbers below kSpans are registers of the CPU, the others are
  // spans.
  static constexpr uint32_t kSpans = 64, kNone = ~uint32_t{0};
  // Memory for longer code is freed. Otherwise the next piece of code reuses it, which saves a
  // fifth of the time.
  static constexpr size_t kMostKept = 16 << 10;  // instructions
  static bool is_span(uint32_t reg) { return reg >= kSpans && reg < kNone - 1; }

  // The live range of a value in one basic block; after all of those, the live ranges of values
  // that live in several blocks.
  struct Span {
    uint32_t value;
    uint32_t begin, end;  // two per instruction: it reads at the first and writes at the second
    uint32_t like;        // a value that it is copied from or to
    uint16_t count;       // of uses
    int16_t place;        // a register; negative: memory
    bool is_vector;
    bool exposed;  // live at the start of the block
    bool pure;     // it begins with an instruction that has no other effect
    bool joined;   // part of a value that lives in several blocks
  };
  struct Block {
    uint32_t begin = 0, end = 0;  // instructions
    uint32_t first_span = 0;
    uint32_t label = kNone;  // possible target of its last instruction
    bool goes_on = true;     // to the next block
    uint32_t next[2] = {}, next_count = 0;
    uint32_t depth = 0;  // loops around it
  };
  struct Copy {
    uint32_t to, from;  // spans
  };
  struct Lost {  // where a call overwrites registers
    uint32_t begin, end;
  };

  asmjit::Label newLabel() {
    block_of_label_.push_back(kNone);
    return asmjit::Label(static_cast<uint32_t>(block_of_label_.size()) - 1);
  }
  // A conditional jump to such a label does not end its block: the target reads no values, and live
  // ranges inside a block are found much faster than across blocks.
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
  // Must be called before each instruction.
  void begin_note(uint32_t note) {
    if (!begins_block_) return;
    begins_block_ = false;
    block_ = static_cast<uint32_t>(blocks_.size());
    blocks_.push_back({note, note, spans_.size()});
  }
  // The value is read, so it lives at least until then.
  [[gnu::always_inline]] uint32_t read(uint32_t id, uint32_t until) {
    if (!is_virtual(id)) return id;
    const uint32_t value = asmjit::Operand::virtIdToIndex(id);
    const uint32_t index =
        values_[value].block == block_ ? values_[value].span : expose(value, until);
    Span& span = spans_[index];
    span.end = until;  // notes come in order
    span.count += span.count != 0xffff;
    return index + kSpans;
  }
  // The value is written: either a new span begins, or the old one continues because the
  // instruction reads it too.
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
  // After a jump or a return.
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
    uint32_t block : 31;  // the block of the span
    uint32_t is_vector : 1;
  };
  // Long enough that it usually never has to move; untouched memory costs nothing.
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
