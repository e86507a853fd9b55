// SPDX-License-Identifier: Apache-2.0
// asmjit's allocator moves values between registers and memory as it goes, which takes most of the
// time of compiling. This one decides once for each value. Where a value lives inside of a block is
// known when its instructions are noted (x64/notes.cpp); here the blocks are joined, for the few
// values that more than one of them knows. Values that are used most where they live shortest
// choose first. What gets no register is in memory all the time, and most instructions read it from
// there. There is a warp that waits for all of it.
#if defined(__x86_64__)
#include "engine/compile/x64/registers.h"

#include <algorithm>
#include <bit>

#include "engine/compile/target.h"

namespace kiln::engine {
namespace {

constexpr float kWeights[] = {1, 10, 100, 1000, 10000};  // by loops around

// Of the first word of [begin, end), and of its last one.
inline uint64_t from_begin(uint32_t begin) { return ~uint64_t{0} << begin % 64; }
inline uint64_t up_to_end(uint32_t end) { return ~uint64_t{0} >> (63 - (end - 1) % 64); }

template <class Body>
inline void for_each_bit(const uint64_t* set, size_t words, const Body& body) {
  for (size_t w = 0; w < words; ++w) {
    for (uint64_t bits = set[w]; bits; bits &= bits - 1)
      body(static_cast<uint32_t>(w * 64 + static_cast<size_t>(std::countr_zero(bits))));
  }
}

}  // namespace

void RegistersX64::link_blocks() {
  std::vector<NotesX64::Block>& blocks = notes_->blocks_;
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    NotesX64::Block& block = blocks[b];
    block.end = b + 1 < blocks.size() ? blocks[b + 1].begin : notes_->notes_.size();
    const Note& last = notes_->notes_[block.end - 1];
    const EncodingX64& how = encoding_x64(last.code);
    const bool jumps = how.form == Form::Jump;
    const bool ends = how.form == Form::Ret || how.id == asmjit::x86::Inst::kIdJmp;
    if (!ends && b + 1 < blocks.size()) block.next[block.next_count++] = b + 1;
    if (!jumps) continue;
    const uint32_t to = notes_->block_of_label_[static_cast<size_t>(last.number)];
    if (to >= blocks.size()) continue;  // nowhere
    block.next[block.next_count++] = to;
    for (uint32_t inside = to; inside <= b; ++inside) ++blocks[inside].depth;
  }
}

// Of values that some block finds there when it begins: others live in one block alone.
void RegistersX64::find_live() {
  const std::vector<NotesX64::Block>& blocks = notes_->blocks_;
  global_of_.assign(notes_->values_.size(), kNone);
  globals_.clear();
  for (uint32_t s : notes_->exposed_) {
    uint32_t& global = global_of_[spans_[s].value];
    if (global != kNone) continue;
    global = static_cast<uint32_t>(globals_.size());
    globals_.push_back({spans_[s].value, kNone, kNone, kNone, 0});
  }
  words_ = (globals_.size() + 63) / 64;
  live_.assign(blocks.size() * 4 * words_, 0);
  if (words_ == 0) return;
  for (size_t b = 0; b < blocks.size(); ++b) {
    uint64_t *reads = live(b, 0), *writes = live(b, 1);
    const uint32_t end = b + 1 < blocks.size() ? blocks[b + 1].first_span : first_global_;
    for (uint32_t s = blocks[b].first_span; s < end; ++s) {
      const uint32_t global = global_of_[spans_[s].value];
      if (global == kNone) continue;
      (spans_[s].exposed ? reads : writes)[global / 64] |= uint64_t{1} << global % 64;
    }
    std::copy(reads, reads + words_, live(b, 2));
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks.size(); b-- > 0;) {
      const NotesX64::Block& block = blocks[b];
      const uint64_t* const sets = live(b, 0);
      for (size_t w = 0; w < words_; ++w) {
        uint64_t out = 0;
        for (uint32_t n = 0; n < block.next_count; ++n) out |= live(block.next[n], 2)[w];
        live(b, 3)[w] = out;
        const uint64_t in = sets[w] | (out & ~sets[words_ + w]);
        changed |= in != sets[2 * words_ + w];
        live(b, 2)[w] = in;
      }
    }
  }
}

// One that begins where the last one ends makes that one longer.
inline void RegistersX64::add_range(Global& to, uint32_t begin, uint32_t end) {
  if (to.ranges != kNone && ranges_[to.ranges].end == begin) {
    ranges_[to.ranges].end = end;
    return;
  }
  ranges_.push_back({begin, end, to.ranges});
  to.ranges = static_cast<uint32_t>(ranges_.size()) - 1;
}

inline void RegistersX64::join(uint32_t span, uint32_t global, float weight) {
  spans_[span].joined = true;
  globals_[global].weight += weight * static_cast<float>(spans_[span].count);
}

// What a block finds there, and what it leaves behind, is a part of the span of all blocks.
void RegistersX64::join_blocks() {
  const std::vector<NotesX64::Block>& blocks = notes_->blocks_;
  ranges_.clear();
  if (words_ == 0) return;
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    const NotesX64::Block& block = blocks[b];
    const uint64_t* const out = live(b, 3);
    const float weight = kWeights[std::min(block.depth, 4u)];
    const uint32_t last = b + 1 < blocks.size() ? blocks[b + 1].first_span : first_global_;
    for (uint32_t s = block.first_span; s < last; ++s) {
      const uint32_t global = global_of_[spans_[s].value];
      if (global == kNone) continue;
      globals_[global].last = s;
      globals_[global].block = b;
      if (!spans_[s].exposed) continue;
      join(s, global, weight);
      add_range(globals_[global], spans_[s].begin, spans_[s].end);
    }
    for_each_bit(out, words_, [&](uint32_t g) {
      Global& global = globals_[g];
      if (global.block != b) return add_range(global, block.begin * 2, block.end * 2);
      Span& span = spans_[global.last];
      if (span.exposed) {  // to the end after all
        ranges_[global.ranges].end = block.end * 2;
        return;
      }
      join(global.last, g, weight);
      add_range(global, span.begin, block.end * 2);
    });
  }
}

// Going back: what is read only to compute what nobody reads is not read either.
void RegistersX64::drop_unread() {
  for (uint32_t s = first_global_; s-- > 0;) {
    Span& span = spans_[s];
    if (!span.pure || span.count != 1 || span.joined) continue;
    Note& note = notes_->notes_[span.begin / 2];
    const EncodingX64& how = encoding_x64(note.code);
    note.code = 0;
    span.end = span.begin;
    span.place = -1;
    const auto forget = [&](uint32_t reg) {
      if (reg < kNone - 1 && reg >= NotesX64::kSpans) --spans_[reg - NotesX64::kSpans].count;
    };
    for (uint32_t i = 1; i < 4; ++i) {
      if (how.reads >> i & 1) forget(note.reg[i]);
    }
    forget(note.base);
    forget(note.index);
  }
}

// In places in time.
uint32_t RegistersX64::length_of(const Global& global) const {
  uint32_t length = 0;
  for (uint32_t r = global.ranges; r != kNone; r = ranges_[r].next)
    length += ranges_[r].end - ranges_[r].begin;
  return length;
}

// What is used most where it lives shortest comes first: by the exponent of that number, from 2^-24
// to 2^16, and three more bits of it, of which there are so few that each has a place in a list.
inline void RegistersX64::note_key(uint32_t span, float weight, uint32_t length) {
  constexpr uint32_t kKept = 20, kLeast = (127 - 24) << 3, kKeys = 40 << 3;
  const float density = weight / static_cast<float>(length);
  const uint32_t above = std::max(std::bit_cast<uint32_t>(density) >> kKept, kLeast) - kLeast;
  const uint32_t key = kKeys - 1 - std::min(above, kKeys - 1);
  Keys& keys = keys_[spans_[span].is_vector];
  keys.all.push_back({key, span});
  keys.least = std::min(keys.least, key);
  keys.most = std::max(keys.most, key);
  ++keys.counts[key + 1];
}

void RegistersX64::find_order() {
  const std::vector<NotesX64::Block>& blocks = notes_->blocks_;
  for (Keys& keys : keys_) {
    keys.all.clear();
    keys.counts.fill(0);
    keys.least = static_cast<uint32_t>(keys.counts.size()), keys.most = 0;
  }
  for (size_t b = 0; b < blocks.size(); ++b) {
    const uint32_t last = b + 1 < blocks.size() ? blocks[b + 1].first_span : first_global_;
    const float weight = kWeights[std::min(blocks[b].depth, 4u)];
    for (uint32_t s = blocks[b].first_span; s < last; ++s) {
      const Span& span = spans_[s];
      if (!span.joined && span.begin != span.end)
        note_key(s, weight * static_cast<float>(span.count), span.end - span.begin);
    }
  }
  for (uint32_t g = 0; g < globals_.size(); ++g)
    note_key(first_global_ + g, globals_[g].weight, length_of(globals_[g]));
  for (uint32_t c = 0; c < 2; ++c) {
    Keys& keys = keys_[c];
    for (uint32_t k = keys.least; k < keys.most; ++k) keys.counts[k + 1] += keys.counts[k];
    order_[c].resize(keys.all.size());
    for (uint32_t k = 0; k < keys.all.size(); ++k)
      order_[c][keys.counts[keys.all[k].key]++] = keys.all[k].span;
  }
}

// At once.
uint32_t RegistersX64::most_alive(bool vectors) {
  changes_.assign(size_t{notes_->notes_.size()} * 2 + 2, 0);
  for (uint32_t s : ordered(vectors)) {
    if (s < first_global_) {
      ++changes_[spans_[s].begin];
      --changes_[spans_[s].end];
      continue;
    }
    for (uint32_t r = globals_[s - first_global_].ranges; r != kNone; r = ranges_[r].next) {
      ++changes_[ranges_[r].begin];
      --changes_[ranges_[r].end];
    }
  }
  int now = 0, most = 0;
  for (int16_t each : changes_) most = std::max(most, now += each);
  return static_cast<uint32_t>(most);
}

// What a function that is called may change is taken while that happens (X64::call): a value that
// is needed behind it is in a register of the caller, or in memory.
void RegistersX64::take_for_calls(bool vectors) {
  for (uint32_t call : notes_->calls_) {
    for (uint32_t at = call * 2 - 6; at < call * 2 + 2; ++at) {
      for (uint32_t reg = 0; reg < 16; ++reg) {
        if (vectors || !(kOfTheCaller >> reg & 1))
          used_[reg * time_words_ + at / 64] |= uint64_t{1} << at % 64;
      }
    }
  }
}

// The words of a register's set that a value needs. What is asked of each register is the same, so
// it is put together once.
inline void RegistersX64::find_moments(uint32_t index) {
  moments_.clear();
  const auto add = [&](uint32_t begin, uint32_t end) {
    const uint32_t last = (end - 1) / 64;
    uint64_t bits = from_begin(begin);
    for (uint32_t word = begin / 64; word < last; ++word, bits = ~uint64_t{0})
      moments_.push_back({bits, word});
    moments_.push_back({bits & up_to_end(end), last});
  };
  if (index < first_global_) return add(spans_[index].begin, spans_[index].end);
  for (uint32_t r = globals_[index - first_global_].ranges; r != kNone; r = ranges_[r].next)
    add(ranges_[r].begin, ranges_[r].end);
}

inline bool RegistersX64::is_free(const uint64_t* used) const {
  const Moment* const end = moments_.data() + moments_.size();
  for (const Moment* each = moments_.data(); each != end; ++each) {
    if (used[each->word] & each->bits) return false;
  }
  return true;
}

inline void RegistersX64::take(uint64_t* used) const {
  const Moment* const end = moments_.data() + moments_.size();
  for (const Moment* each = moments_.data(); each != end; ++each) used[each->word] |= each->bits;
}

// False: some get none.
bool RegistersX64::place_all(bool vectors, std::span<const uint8_t> registers) {
  used_.assign(16 * time_words_, 0);
  take_for_calls(vectors);
  bool all = true;
  uint32_t allowed = 0;
  for (uint8_t reg : registers) allowed |= 1u << reg;
  for (uint32_t index : ordered(vectors)) spans_[index].place = -1;
  for (uint32_t index : ordered(vectors)) {
    Span& span = spans_[index];
    find_moments(index);
    // A register that it is copied from or to saves the copy.
    const int like = span.like == kNone ? -1 : spans_[span.like].place;
    if (like >= 0 && allowed >> like & 1) {
      uint64_t* const used = &used_[static_cast<size_t>(like) * time_words_];
      if (is_free(used)) {
        span.place = static_cast<int16_t>(like);
        take(used);
        continue;
      }
    }
    size_t i = 0;
    while (i < registers.size() && !is_free(&used_[registers[i] * time_words_])) ++i;
    if (i == registers.size()) {
      all = false;
      continue;
    }
    span.place = registers[i];
    take(&used_[registers[i] * time_words_]);
  }
  return all;
}

// Values of one block begin one after the other, so that the end of the last one in each slot is
// all that has to be known of it; they do not share slots with those that several blocks know.
bool RegistersX64::find_memory(bool vectors) {
  used_.clear();
  for (uint32_t index : ordered(vectors)) {
    if (index < first_global_ || spans_[index].place >= 0) continue;
    find_moments(index);
    size_t slot = 0;
    while (slot * time_words_ < used_.size() && !is_free(&used_[slot * time_words_])) ++slot;
    if (slot * time_words_ == used_.size()) used_.resize(used_.size() + time_words_, 0);
    take(&used_[slot * time_words_]);
    spans_[index].place = static_cast<int16_t>(-1 - static_cast<int>(slot));
    if (slot >= kSpilled) return false;
  }
  const size_t first = used_.size() / time_words_;
  ends_.clear();
  for (uint32_t s = 0; s < first_global_; ++s) {
    Span& span = spans_[s];
    if (span.place >= 0 || span.joined || span.is_vector != vectors || span.begin == span.end)
      continue;
    size_t slot = 0;
    while (slot < ends_.size() && ends_[slot] > span.begin) ++slot;
    if (slot == ends_.size()) ends_.push_back(0);
    ends_[slot] = span.end;
    span.place = static_cast<int16_t>(-1 - static_cast<int>(first + slot));
    if (first + slot >= kSpilled) return false;
  }
  return true;
}

bool RegistersX64::assign(bool vectors) {
  const std::span<const uint8_t> all = vectors ? std::span<const uint8_t>(kVectorRegisters)
                                               : std::span<const uint8_t>(kWordRegisters);
  // In short code to try takes less than to look.
  constexpr uint32_t kShort = 256;
  const bool may_fit = notes_->notes_.size() < kShort || most_alive(vectors) <= all.size();
  if (may_fit && place_all(vectors, all)) return true;
  // Some are for what comes from memory, none of them a caller's.
  place_all(vectors, vectors ? all.first(all.size() - kForMemory) : all.subspan(kForMemory));
  return find_memory(vectors);
}

void RegistersX64::find_saved() {
  saved_ = 0;
  for (uint32_t index : ordered(0)) {
    const int place = spans_[index].place;
    if (place >= 0) saved_ |= 1u << place & kOfTheCaller;
  }
  // A call puts one more word on the stack, and a function begins with half of what it is aligned
  // to.
  if (!notes_->calls_.empty() && std::popcount(saved_) % 2 == 1)
    saved_ |= 1u << std::countr_zero(kOfTheCaller & ~saved_);
}

bool RegistersX64::run(NotesX64& notes, std::vector<std::byte>* bytes) {
  notes_ = &notes;
  if (notes.notes_.size() == 0 || notes.fails_) return false;
  link_blocks();
  first_global_ = static_cast<uint32_t>(notes.spans_.size());
  spans_ = notes.spans_.data();
  find_live();
  for (const Global& global : globals_)
    notes.spans_.push_back({.value = global.value,
                            .begin = 0,
                            .end = 0,
                            .like = kNone,
                            .count = 0,
                            .place = -1,
                            .is_vector = notes.values_[global.value].is_vector != 0,
                            .exposed = false,
                            .pure = false,
                            .joined = false});
  spans_ = notes.spans_.data();
  join_blocks();
  drop_unread();
  time_words_ = size_t{notes.notes_.size()} * 2 / 64 + 1;
  const auto whole = [&](uint32_t s) {
    return spans_[s].joined ? first_global_ + global_of_[spans_[s].value] : s;
  };
  for (uint32_t c = 0; c < notes.copies_.size(); ++c) {
    const uint32_t a = whole(notes.copies_[c].to), b = whole(notes.copies_[c].from);
    if (a == b) continue;
    spans_[a].like = b;
    spans_[b].like = a;
  }
  find_order();
  if (!assign(false) || !assign(true)) return false;
  for (uint32_t s = 0; s < first_global_; ++s) {
    if (spans_[s].joined) spans_[s].place = spans_[whole(s)].place;
  }
  find_saved();
  return write(bytes);
}

}  // namespace kiln::engine
#endif
