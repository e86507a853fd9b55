// SPDX-License-Identifier: Apache-2.0
// How do instructions of aarch64 become machine code once each value has its place? Spilled values
// go through a few reserved registers.
#if defined(__aarch64__)
#include "engine/compile/a64/registers.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "engine/compile/target.h"

namespace kiln::engine {
namespace {

// X0 is the Pass, X18 belongs to the system, and X29 and X30 are the frame pointer and the return
// address. Registers that a call preserves come last.
constexpr std::array<uint8_t, 27> kWordsA64 = {1,  2,  3,  4,  5,  6,  7,  8,  9,
                                               10, 11, 12, 13, 14, 15, 16, 17, 19,
                                               20, 21, 22, 23, 24, 25, 26, 27, 28};
constexpr std::array<uint8_t, 32> kVectorsA64 = {0,  1,  2,  3,  4,  5,  6,  7,  16, 17, 18,
                                                 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
                                                 30, 31, 8,  9,  10, 11, 12, 13, 14, 15};
constexpr uint32_t kWordsOfTheCaller = 0x1ff80000, kVectorsOfTheCaller = 0xff00;
// These are reserved for spilled values, if there are any.
constexpr size_t kWordsForMemory = 4, kVectorsForMemory = 3;

constexpr uint32_t kPass = 0, kFrame = 29, kLink = 30, kStack = 31;

int64_t offset_in_pass(const Spans::Span& span) {
  const auto slot = static_cast<size_t>(-1 - span.place);
  return static_cast<int64_t>(span.is_vector ? offsetof(Pass, vectors) + slot * 16
                                             : offsetof(Pass, words) + slot * 8);
}
// An instruction can address all of them.
static_assert(offsetof(Pass, words) % 8 == 0 && offsetof(Pass, words) / 8 + kSpilled <= 4096);
static_assert(offsetof(Pass, vectors) % 16 == 0 &&
              (offsetof(Pass, vectors) + kSpilledBytes) / 16 <= 4096);

bool is_jump_anywhere(uint32_t word) { return word >> 26 == 5; }
bool is_jump_on_bit(uint32_t word) { return (word & 0x7e000000) == 0x36000000; }
// The same jump on the opposite condition.
uint32_t opposite(uint32_t word) {
  return (word & 0xff000000) == 0x54000000 ? word ^ 1 : word ^ 1u << 24;
}

}  // namespace

bool RegistersA64::run(NotesA64& notes, std::vector<std::byte>* bytes) {
  if (notes.notes_.size() == 0 || notes.fails_) return false;
  constexpr std::span<const uint8_t> words(kWordsA64), vectors(kVectorsA64);
  const RegistersOf of_words{words, words.subspan(kWordsForMemory), ~kWordsOfTheCaller, kSpilled};
  const RegistersOf of_vectors{vectors, vectors.subspan(kVectorsForMemory), ~uint32_t{0},
                               kSpilledBytes / 16};
  notes_ = &notes;
  if (!places_.find(notes, notes.notes_.size(), of_words, of_vectors)) return false;
  spans_ = notes.spans_.data();
  calls_ = !notes.calls_.empty();
  find_saved();
  for (Far far : {Far::None, Far::Bits, Far::All}) {
    far_ = far;
    if (write(bytes)) return true;
    if (fails_) return false;
  }
  return false;
}

// They are saved in pairs: adds one more if their number is odd.
void RegistersA64::find_saved() {
  const auto even = [](uint32_t used, uint32_t of) {
    used &= of;
    return std::popcount(used) % 2 == 0 ? used : used | 1u << std::countr_zero(of & ~used);
  };
  saved_words_ = even(places_.used(false), kWordsOfTheCaller);
  saved_vectors_ = even(places_.used(true), kVectorsOfTheCaller);
}

// Saves or restores registers of the caller, in a frame as debuggers expect it. If the code calls
// functions, the frame also has the Pass, which A64::call loads again.
void RegistersA64::save(bool back) {
  struct Pair {
    uint32_t first, second;
    bool vectors;
  };
  std::array<Pair, 12> pairs{};
  uint32_t count = 0;
  if (calls_) pairs[count++] = {kFrame, kLink, false};
  const auto add = [&](uint32_t bits, bool vectors) {
    for (; bits; ++count) {
      const auto first = static_cast<uint32_t>(std::countr_zero(bits));
      bits &= bits - 1;
      pairs[count] = {first, static_cast<uint32_t>(std::countr_zero(bits)), vectors};
      bits &= bits - 1;
    }
  };
  add(saved_words_, false);
  add(saved_vectors_, true);
  if (count == 0) return;
  const uint32_t eights = (count + calls_) * 2;  // of bytes
  const auto put_pair = [&](uint32_t word, const Pair& pair, uint32_t offset) {
    put(word | (pair.vectors ? 0x6c000000u : 0xa8000000u) | (offset & 127) << 15 |
        pair.second << 10 | kStack << 5 | pair.first);
  };
  if (!back) put_pair(0x01800000, pairs[0], 0 - eights);
  for (uint32_t i = 1; i < count; ++i)
    put_pair(back ? 0x01400000 : 0x01000000, pairs[i], (i + calls_) * 2);
  if (back) return put_pair(0x00c00000, pairs[0], eights);
  if (!calls_) return;
  put(0x910003fd);  // MOV X29, SP
  put(0xf9000be0);  // STR X0, [SP, #16]
}

// Moves a spilled value between memory and a register.
void RegistersA64::copy(uint32_t span, uint32_t reg, bool back) {
  const int64_t offset = offset_in_pass(spans_[span]);
  if (spans_[span].is_vector)
    put((back ? 0x3d800000u : 0x3dc00000u) | static_cast<uint32_t>(offset / 16) << 10 | kPass << 5 |
        reg);
  else
    put((back ? 0xf9000000u : 0xf9400000u) | static_cast<uint32_t>(offset / 8) << 10 | kPass << 5 |
        reg);
}

RegistersA64::Held* RegistersA64::held(uint32_t span) {
  for (Held& each : held_[spans_[span].is_vector]) {
    if (each.span == span) return &each;
  }
  return nullptr;
}

// The register of an operand in this instruction. Loads a spilled value if the instruction reads
// it.
uint32_t RegistersA64::moved(uint32_t reg, bool reads) {
  if (!in_memory(reg)) return static_cast<uint32_t>(place(reg));
  const uint32_t span = reg - Spans::kSpans;
  const bool is_vector = spans_[span].is_vector;
  auto& all = held_[is_vector];
  Held* one = held(span);
  const auto own = [&] {
    const auto slot = static_cast<size_t>(one - all.data());
    return uint32_t{is_vector ? kVectorsA64[slot] : kWordsA64[slot]};
  };
  if (one == nullptr) {
    one = all.data();
    const size_t count = is_vector ? kVectorsForMemory : kWordsForMemory;
    for (size_t i = 1; i < count; ++i) one = all[i].used < one->used ? &all[i] : one;
    fails_ |= one->used == now_;
    one->span = span;
    if (reads) copy(span, own(), false);
  }
  one->used = now_;
  return own();
}

// For notes with operands in memory.
void RegistersA64::write_moved(const Note& note) {
  const uint32_t to = note.reg[NotesA64::kTo], from = note.reg[NotesA64::kSecond];
  ++now_;
  if (note.copies && !in_memory(from)) {
    if (Held* old = held(to - Spans::kSpans)) *old = {};
    return copy(to - Spans::kSpans, static_cast<uint32_t>(place(from)), true);
  }
  if (note.copies && !in_memory(to) && !held(from - Spans::kSpans))
    return copy(from - Spans::kSpans, static_cast<uint32_t>(place(to)), false);
  uint32_t word = note.word;
  constexpr uint32_t kAt[] = {0, 5, 16, 10};
  for (uint32_t i = 1; i < 4; ++i) {
    if (note.reads >> i & 1) word |= moved(note.reg[i], true) << kAt[i];
  }
  const uint32_t reg = moved(to, note.reads & 1);
  encode(note, word | reg, reg);
  if (note.writes && in_memory(to)) copy(to - Spans::kSpans, reg, true);
}

inline void RegistersA64::encode(const Note& note, uint32_t word, uint32_t to) {
  switch (note.kind) {
    case Kind::Number:
      return put_number(to, note.number());
    case Kind::Constant:
      links_.push_back({here(), kNone, static_cast<uint32_t>(note.number() / 4)});
      return put(word);
    case Kind::Jump:
      return jump(word, note);
    case Kind::Call:
      forget_held();
      return put(word);
    case Kind::Return:
      save(true);
      return put(word);
    default:
      return put(word);
  }
}

inline void RegistersA64::write(const Note& note) {
  constexpr ptrdiff_t kMost = 64;  // at least as many words as one note may become
  if (note.kind == Kind::None) return;
  if (end_ - at_ < kMost) make_room();
  const int to = place(note.reg[0]), first = place(note.reg[1]);
  if (note.kind != Kind::Plain) {
    if ((to | first) < 0) return write_moved(note);
    const auto reg = static_cast<uint32_t>(to);
    return encode(note, note.word | reg | static_cast<uint32_t>(first) << 5, reg);
  }
  const int second = place(note.reg[2]), third = place(note.reg[3]);
  if ((to | first | second | third) < 0) return write_moved(note);
  if (note.copies && to == second) return;
  put(note.word | static_cast<uint32_t>(to | first << 5 | second << 16 | third << 10));
}

// With as few instructions as possible.
void RegistersA64::put_number(uint32_t reg, uint64_t number) {
  const bool wide = number >> 32 != 0;
  const uint32_t parts = wide ? 4 : 2, sized = wide ? 1u << 31 : 0;
  uint32_t zeros = 0, ones = 0;
  for (uint32_t i = 0; i < parts; ++i) {
    zeros += (number >> 16 * i & 0xffff) == 0;
    ones += (number >> 16 * i & 0xffff) == 0xffff;
  }
  if (std::max(zeros, ones) + 1 < parts) {
    const uint32_t field = bits_field_a64(number, wide);
    if (field != kNotBits) return put(0x32000000 | sized | field | 31u << 5 | reg);
  }
  const bool inverted = ones > zeros;
  const uint64_t rest = inverted ? 0xffff : 0;
  const bool is_rest = std::max(zeros, ones) == parts;  // all parts are alike
  bool first = true;
  for (uint32_t i = 0; i < (is_rest ? 1 : parts); ++i) {
    const uint64_t part = number >> 16 * i & 0xffff;
    if (part == rest && !is_rest) continue;
    const uint32_t word = !first ? 0x72800000 : inverted ? 0x12800000 : 0x52800000;
    const auto bits = static_cast<uint32_t>(first && inverted ? part ^ 0xffff : part);
    put(word | sized | i << 21 | bits << 5 | reg);
    first = false;
  }
}

// The target may come before or after the jump; link() fills in the distance.
void RegistersA64::jump(uint32_t word, const Note& note) {
  const uint32_t to = notes_->block_of_label_[static_cast<size_t>(note.number())];
  if (to >= notes_->blocks_.size()) {
    fails_ = true;
    return;
  }
  const bool always = is_jump_anywhere(word);
  if (always && to == block_ + 1) return;
  if (!always && (far_ == Far::All || (far_ == Far::Bits && is_jump_on_bit(word)))) {
    put(opposite(word) | 2u << 5);
    word = 0x14000000;
  }
  links_.push_back({here(), to, 0});
  put(word);
}

// Returns false if a distance does not fit into its field.
bool RegistersA64::link(size_t behind) {
  for (const Link& link : links_) {
    uint32_t& word = words_[link.at];
    const size_t to = link.block == kNone ? behind + link.behind : block_at_[link.block];
    const int64_t far = static_cast<int64_t>(to) - static_cast<int64_t>(link.at);
    const uint32_t bits = is_jump_anywhere(word) ? 26 : is_jump_on_bit(word) ? 14 : 19;
    const int64_t most = int64_t{1} << (bits - 1);
    if (far < -most || far >= most) return false;
    const uint32_t field = static_cast<uint32_t>(far) & ((1u << bits) - 1);
    word |= bits == 26 ? field : field << 5;
  }
  return true;
}

void RegistersA64::make_room() {
  const auto used = at_ - words_.data();
  words_.resize(words_.size() * 2 + 1024);
  at_ = words_.data() + used;
  end_ = words_.data() + words_.size();
}

// Returns false if a label was never bound, if an instruction has too many spilled operands, or if
// something is too far away.
bool RegistersA64::write(std::vector<std::byte>* bytes) {
  const std::vector<Spans::Block>& blocks = notes_->blocks_;
  const std::vector<NotesA64::Constant>& constants = notes_->constants_;
  fails_ = false;
  links_.clear();
  now_ = 0;
  block_at_.resize(blocks.size());
  if (words_.size() == 0) make_room();
  at_ = words_.data();
  end_ = at_ + words_.size();
  save(false);
  for (block_ = 0; block_ < blocks.size(); ++block_) {
    block_at_[block_] = here();
    forget_held();
    const Note* const end = notes_->notes_.data() + blocks[block_].end;
    for (const Note* note = notes_->notes_.data() + blocks[block_].begin; note != end; ++note)
      write(*note);
  }
  constexpr size_t kEach = sizeof(NotesA64::Constant) / sizeof(uint32_t);
  const size_t code = here(), behind = (code + kEach - 1) / kEach * kEach;
  if (fails_ || !link(behind)) return false;
  bytes->resize(behind * 4 + constants.size() * sizeof(NotesA64::Constant));
  std::memcpy(bytes->data(), words_.data(), code * 4);
  if (!constants.empty())
    std::memcpy(bytes->data() + behind * 4, constants.data(),
                constants.size() * sizeof(NotesA64::Constant));
  return true;
}

}  // namespace kiln::engine
#endif
