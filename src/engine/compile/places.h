// SPDX-License-Identifier: Apache-2.0
// Which register does each value of a piece of code get? (places.cpp)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/compile/spans.h"

namespace kiln::engine {

// The registers of one kind that a CPU has.
struct RegistersOf {
  std::span<const uint8_t> all;     // in allocation order
  std::span<const uint8_t> others;  // the same, without those reserved for spilled values
  uint32_t lost;                    // by a call, as bits
  size_t slots;                     // spill slots in memory
};

// Keeps its memory from one piece of code to the next.
class Places {
 public:
  // Assigns a place to each span of `count` notes. Returns false if there are too few spill slots.
  // Removes notes whose results are never read: drop(note, forget) takes a note out of the list,
  // and calls `forget` for each register that it read.
  template <class Notes>
  bool find(Notes& notes, uint32_t count, const RegistersOf& words, const RegistersOf& vectors) {
    begin(notes, count);
    drop_unread(notes);
    return place(words, vectors);
  }
  // Registers that are assigned to some value, as bits.
  uint32_t used(bool vectors) const;

 private:
  using Span = Spans::Span;
  static constexpr uint32_t kNone = Spans::kNone;
  struct Range {
    uint32_t begin, end;
    uint32_t next;  // of the same value, before it
  };
  struct Global {  // a value that lives in several blocks
    uint32_t value;
    uint32_t last;    // its last span in `block`
    uint32_t block;   // the current block
    uint32_t ranges;  // the last one
    float weight;
  };

  void begin(Spans& spans, uint32_t notes);
  // Backwards, so that values that are read only to compute unread values are dropped too.
  template <class Notes>
  void drop_unread(Notes& notes) {
    for (uint32_t s = first_global_; s-- > 0;) {
      Span& span = spans_[s];
      if (!span.pure || span.count != 1 || span.joined) continue;
      span.place = -1;
      notes.drop(span.begin / 2, [&](uint32_t reg) {
        if (Spans::is_span(reg)) --spans_[reg - Spans::kSpans].count;
      });
      span.end = span.begin;
    }
  }
  bool place(const RegistersOf& words, const RegistersOf& vectors);
  void link_blocks();
  uint64_t* live(size_t block, uint32_t which) { return &live_[(block * 4 + which) * words_]; }
  void find_live();
  void join_blocks();
  std::span<const uint32_t> ordered(bool vectors) const {
    return {order_[vectors].data(), order_[vectors].size()};
  }
  void join(uint32_t span, uint32_t global, float weight);
  void add_range(Global& to, uint32_t begin, uint32_t end);
  uint32_t length_of(const Global& global) const;
  void note_key(uint32_t span, float weight, uint32_t length);
  void find_order();
  uint32_t most_alive(bool vectors);
  void take_for_calls(std::span<const uint8_t> registers, uint32_t lost);
  void clear_moments();
  void add_moments(uint32_t begin, uint32_t end);
  void find_moments(uint32_t span);
  bool is_free(const uint64_t* used) const;
  void take(uint64_t* used) const;
  void take_register(uint32_t index);
  bool place_all(bool vectors, std::span<const uint8_t> registers, uint32_t lost);
  bool assign(bool vectors, const RegistersOf& registers);
  struct Life {
    uint32_t begin, end;
  };
  Life life_of(const Global& global) const;
  size_t find_memory_of_globals(bool vectors, size_t slots);
  bool find_memory(bool vectors, size_t slots);

  Spans* of_ = nullptr;
  Span* spans_ = nullptr;
  uint32_t notes_ = 0;               // their number
  std::vector<uint32_t> global_of_;  // by value
  std::vector<Global> globals_;
  uint32_t first_global_ = 0;   // span
  std::vector<uint64_t> live_;  // by block: read, written, live in, live out
  Grown<Range> ranges_;
  std::vector<int16_t> changes_;
  struct Keys {
    std::array<uint32_t, 321> counts;
    uint32_t least, most;  // of the keys
  };
  std::array<Keys, 2> keys_;              // words, vectors
  std::array<Grown<uint32_t>, 2> order_;  // words, vectors
  // By register, in allocation order: the moments at which it is taken. By word of these: the
  // registers taken at any moment of the word.
  std::vector<uint64_t> used_;
  std::vector<uint32_t> any_;
  struct Moment {
    uint64_t bits;
    uint32_t word;
  };
  struct Words {
    uint32_t begin, end;
  };
  // Results of find_moments(): partial words, whole words, and registers taken in any of the
  // latter.
  Grown<Moment> moments_;
  Grown<Words> whole_;
  uint32_t blocked_ = 0;
  std::vector<uint32_t> slotless_;  // of find_memory_of_globals()
  std::vector<uint32_t> ends_;      // by slot of find_memory(): end of its last span
  size_t words_ = 0;                // of a set of values
  size_t time_words_ = 0;           // of a set of moments
};

}  // namespace kiln::engine
