// SPDX-License-Identifier: Apache-2.0
// How does the register allocator stay fast? A warp waits for the code, and an allocator that moves
// values between registers and memory while it runs takes most of the compile time. This one
// decides once per value. The live range of a value inside a block is known when its instructions
// are noted (spans.h); here the blocks are joined, for the few values that live in several of them.
// Values with many uses and short live ranges choose first. A value without a register is in memory
// all its life.
#include "engine/compile/places.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>
#include <utility>

#include "engine/compile/target.h"

namespace kiln::engine {
namespace {

constexpr float kWeights[] = {1, 10, 100, 1000, 10000};  // by loop depth

// The moments of [begin, end) in its first word, and in its last one.
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

void Spans::clear_spans() {
  values_.clear();
  spans_.clear();
  exposed_.clear();
  blocks_.clear();
  copies_.clear();
  calls_.clear();
  block_of_label_.clear();
  bare_labels_.clear();
  begins_block_ = true;
}

// A value that the block has not written comes from another block.
[[gnu::noinline]] uint32_t Spans::expose(uint32_t value, uint32_t until) {
  const uint32_t index = new_span(value, blocks_.back().begin * 2, until);
  spans_[index].exposed = true;
  exposed_.push_back(index);
  return index;
}

void Places::link_blocks() {
  std::vector<Spans::Block>& blocks = of_->blocks_;
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    Spans::Block& block = blocks[b];
    block.end = b + 1 < blocks.size() ? blocks[b + 1].begin : notes_;
    if (block.goes_on && b + 1 < blocks.size()) block.next[block.next_count++] = b + 1;
    if (block.label == kNone) continue;
    const uint32_t to = of_->block_of_label_[block.label];
    if (to >= blocks.size()) continue;  // the label was never bound
    block.next[block.next_count++] = to;
    for (uint32_t inside = to; inside <= b; ++inside) ++blocks[inside].depth;
  }
}

// For values that are live at the start of some block; all others live in one block only.
void Places::find_live() {
  const std::vector<Spans::Block>& blocks = of_->blocks_;
  global_of_.assign(of_->values_.size(), kNone);
  globals_.clear();
  for (uint32_t s : of_->exposed_) {
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
      const Spans::Block& block = blocks[b];
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

// A range that begins where the last one ends extends it.
inline void Places::add_range(Global& to, uint32_t begin, uint32_t end) {
  if (to.ranges != kNone && ranges_[to.ranges].end == begin) {
    ranges_[to.ranges].end = end;
    return;
  }
  ranges_.push_back({begin, end, to.ranges});
  to.ranges = static_cast<uint32_t>(ranges_.size()) - 1;
}

inline void Places::join(uint32_t span, uint32_t global, float weight) {
  spans_[span].joined = true;
  globals_[global].weight += weight * static_cast<float>(spans_[span].count);
}

// Values that are live at the start or at the end of a block become part of the span of all blocks.
void Places::join_blocks() {
  const std::vector<Spans::Block>& blocks = of_->blocks_;
  ranges_.clear();
  if (words_ == 0) return;
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    const Spans::Block& block = blocks[b];
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
      if (span.exposed) {  // live to the end of the block after all
        ranges_[global.ranges].end = block.end * 2;
        return;
      }
      join(global.last, g, weight);
      add_range(global, span.begin, block.end * 2);
    });
  }
}

// In moments.
uint32_t Places::length_of(const Global& global) const {
  uint32_t length = 0;
  for (uint32_t r = global.ranges; r != kNone; r = ranges_[r].next)
    length += ranges_[r].end - ranges_[r].begin;
  return length;
}

// Values with many uses and short live ranges come first. The key is the exponent of their ratio,
// from 2^-24 to 2^16, and three more bits: few enough keys for one counter each.
inline void Places::note_key(uint32_t span, float weight, uint32_t length) {
  constexpr uint32_t kKept = 20, kLeast = (127 - 24) << 3, kKeys = 40 << 3;
  const float density = weight / static_cast<float>(length);
  const uint32_t above = std::max(std::bit_cast<uint32_t>(density) >> kKept, kLeast) - kLeast;
  const uint32_t key = kKeys - 1 - std::min(above, kKeys - 1);
  spans_[span].place = static_cast<int16_t>(key);  // it has no place yet
  Keys& keys = keys_[spans_[span].is_vector];
  keys.least = std::min(keys.least, key);
  keys.most = std::max(keys.most, key);
  ++keys.counts[key + 1];
}

void Places::find_order() {
  const std::vector<Spans::Block>& blocks = of_->blocks_;
  for (Keys& keys : keys_) {
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
    order_[c].resize(keys.counts[keys.most] + keys.counts[keys.most + 1]);
  }
  for (uint32_t s = 0; s < of_->spans_.size(); ++s) {
    const Span& span = spans_[s];
    if (span.place < 0) continue;
    Keys& keys = keys_[span.is_vector];
    order_[span.is_vector][keys.counts[static_cast<size_t>(span.place)]++] = s;
  }
}

// The most values that are live at once.
uint32_t Places::most_alive(bool vectors) {
  changes_.assign(size_t{notes_} * 2 + 2, 0);
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

// Registers that a call may change are taken during the call (Target::call): a value that is needed
// after it is in a register that the call preserves, or in memory.
void Places::take_for_calls(std::span<const uint8_t> registers, uint32_t lost) {
  for (const Spans::Lost& call : of_->calls_) {
    clear_moments();
    add_moments(call.begin, call.end);
    for (uint32_t i = 0; i < registers.size(); ++i) {
      if (lost >> registers[i] & 1) take_register(i);
    }
  }
}

inline void Places::clear_moments() {
  moments_.clear();
  whole_.clear();
  blocked_ = 0;
}

// Only the first and the last word of a range may be needed in part. The words between are needed
// as a whole, so a register that is taken anywhere in them is blocked.
inline void Places::add_moments(uint32_t begin, uint32_t end) {
  const uint32_t first = begin / 64, last = (end - 1) / 64;
  if (first == last) return moments_.push_back({from_begin(begin) & up_to_end(end), first});
  moments_.push_back({from_begin(begin), first});
  moments_.push_back({up_to_end(end), last});
  if (first + 1 == last) return;
  whole_.push_back({first + 1, last});
  uint32_t blocked = 0;
  for (uint32_t word = first + 1; word < last; ++word) blocked |= any_[word];
  blocked_ |= blocked;
}

// The query is the same for each register, so it is put together once.
inline void Places::find_moments(uint32_t index) {
  clear_moments();
  if (index < first_global_) return add_moments(spans_[index].begin, spans_[index].end);
  for (uint32_t r = globals_[index - first_global_].ranges; r != kNone; r = ranges_[r].next)
    add_moments(ranges_[r].begin, ranges_[r].end);
}

// Without the check for blocked registers.
inline bool Places::is_free(const uint64_t* used) const {
  const Moment* const end = moments_.data() + moments_.size();
  for (const Moment* each = moments_.data(); each != end; ++each) {
    if (used[each->word] & each->bits) return false;
  }
  return true;
}

inline void Places::take(uint64_t* used) const {
  const Moment* const end = moments_.data() + moments_.size();
  for (const Moment* each = moments_.data(); each != end; ++each) used[each->word] |= each->bits;
  for (uint32_t w = 0; w < whole_.size(); ++w)
    std::fill(used + whole_[w].begin, used + whole_[w].end, ~uint64_t{0});
}

// `index` is that of the register.
inline void Places::take_register(uint32_t index) {
  const Moment* const end = moments_.data() + moments_.size();
  uint32_t* const any = any_.data();
  const uint32_t bit = 1u << index;
  for (const Moment* each = moments_.data(); each != end; ++each) any[each->word] |= bit;
  for (uint32_t w = 0; w < whole_.size(); ++w) {
    for (uint32_t word = whole_[w].begin; word < whole_[w].end; ++word) any[word] |= bit;
  }
  take(&used_[index * time_words_]);
}

// Returns false if some values get none.
bool Places::place_all(bool vectors, std::span<const uint8_t> registers, uint32_t lost) {
  const auto count = static_cast<uint32_t>(registers.size());
  used_.assign(count * time_words_, 0);
  any_.assign(time_words_, 0);
  take_for_calls(registers, lost);
  bool all = true;
  std::array<uint8_t, 32> index_of{};  // by register, plus 1
  for (uint32_t i = 0; i < count; ++i) index_of[registers[i]] = static_cast<uint8_t>(i + 1);
  const auto known = static_cast<uint32_t>((uint64_t{1} << count) - 1);
  for (uint32_t index : ordered(vectors)) spans_[index].place = -1;
  for (uint32_t index : ordered(vectors)) {
    Span& span = spans_[index];
    find_moments(index);
    const auto fits = [&](uint32_t i) { return is_free(&used_[i * time_words_]); };
    // The register of a value that it is copied from or to saves the copy.
    const int like = span.like == kNone ? -1 : spans_[span.like].place;
    const uint32_t same = like < 0 ? 0 : index_of[static_cast<size_t>(like)];
    uint32_t found = same - 1, left = known & ~blocked_;
    if (same == 0 || !(left >> found & 1) || !fits(found)) {
      while (left && !fits(static_cast<uint32_t>(std::countr_zero(left)))) left &= left - 1;
      found = static_cast<uint32_t>(std::countr_zero(left));
    }
    all &= found < count;
    if (found >= count) continue;
    span.place = registers[found];
    take_register(found);
  }
  return all;
}

// From the first to the last moment at which it is needed.
inline Places::Life Places::life_of(const Global& global) const {
  Life out{~0u, 0};
  for (uint32_t r = global.ranges; r != kNone; r = ranges_[r].next)
    out = {std::min(out.begin, ranges_[r].begin), std::max(out.end, ranges_[r].end)};
  return out;
}

// Returns the number of slots. With enough slots each value has its own, which is the fastest;
// otherwise slots of values that are dead are reused.
size_t Places::find_memory_of_globals(bool vectors, size_t slots) {
  slotless_.clear();
  for (uint32_t index : ordered(vectors)) {
    if (index >= first_global_ && spans_[index].place < 0) slotless_.push_back(index);
  }
  const bool has_room = slotless_.size() <= slots / 4;
  const auto life = [&](uint32_t index) { return life_of(globals_[index - first_global_]); };
  if (!has_room)
    std::sort(slotless_.begin(), slotless_.end(), [&](uint32_t a, uint32_t b) {
      const uint32_t first = life(a).begin, second = life(b).begin;
      return first != second ? first < second : a < b;
    });
  // The slots by the end of what they contain.
  std::priority_queue<std::pair<uint32_t, size_t>, std::vector<std::pair<uint32_t, size_t>>,
                      std::greater<>>
      taken;
  size_t count = 0;
  for (uint32_t index : slotless_) {
    size_t slot = count;
    if (!has_room) {
      const Life all = life(index);
      if (!taken.empty() && taken.top().first <= all.begin) {
        slot = taken.top().second;
        taken.pop();
      }
      taken.emplace(all.end, slot);
    }
    count = std::max(count, slot + 1);
    if (count > slots) break;
    spans_[index].place = static_cast<int16_t>(-1 - static_cast<int>(slot));
  }
  return count;
}

// The spans of one block begin in order, so only the end of the last span in each slot matters.
// They do not share slots with values that live in several blocks.
bool Places::find_memory(bool vectors, size_t slots) {
  const size_t first = find_memory_of_globals(vectors, slots);
  if (first > slots) return false;
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
    if (first + slot >= slots) return false;
  }
  return true;
}

bool Places::assign(bool vectors, const RegistersOf& registers) {
  // In short code, trying is faster than counting.
  constexpr uint32_t kShort = 256;
  const bool may_fit = notes_ < kShort || most_alive(vectors) <= registers.all.size();
  if (may_fit && place_all(vectors, registers.all, registers.lost)) return true;
  place_all(vectors, registers.others, registers.lost);
  return find_memory(vectors, registers.slots);
}

uint32_t Places::used(bool vectors) const {
  uint32_t bits = 0;
  for (uint32_t index : ordered(vectors)) {
    const int place = spans_[index].place;
    if (place >= 0) bits |= 1u << place;
  }
  return bits;
}

void Places::begin(Spans& spans, uint32_t notes) {
  of_ = &spans;
  notes_ = notes;
  link_blocks();
  first_global_ = spans.spans_.size();
  spans_ = spans.spans_.data();
  find_live();
  for (const Global& global : globals_)
    spans.spans_.push_back({.value = global.value,
                            .begin = 0,
                            .end = 0,
                            .like = kNone,
                            .count = 0,
                            .place = -1,
                            .is_vector = spans.values_[global.value].is_vector != 0,
                            .exposed = false,
                            .pure = false,
                            .joined = false});
  spans_ = spans.spans_.data();
  join_blocks();
}

bool Places::place(const RegistersOf& words, const RegistersOf& vectors) {
  time_words_ = size_t{notes_} * 2 / 64 + 1;
  const auto whole = [&](uint32_t s) {
    return spans_[s].joined ? first_global_ + global_of_[spans_[s].value] : s;
  };
  for (uint32_t c = 0; c < of_->copies_.size(); ++c) {
    const uint32_t a = whole(of_->copies_[c].to), b = whole(of_->copies_[c].from);
    if (a == b) continue;
    spans_[a].like = b;
    spans_[b].like = a;
  }
  find_order();
  if (!assign(false, words) || !assign(true, vectors)) return false;
  for (uint32_t s = 0; s < first_global_; ++s) {
    if (spans_[s].joined) spans_[s].place = spans_[whole(s)].place;
  }
  return true;
}

}  // namespace kiln::engine
