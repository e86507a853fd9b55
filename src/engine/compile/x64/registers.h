// SPDX-License-Identifier: Apache-2.0
// Which register of x86-64 does each value of a piece of code get, and which bytes are it?
// (x64/registers.cpp, x64/notes.cpp)
#pragma once

#include <asmjit/x86.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <span>
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

// An instruction that is known: how it is encoded, and what it does with its operands.
struct alignas(16) EncodingX64 {
  // Where its operands go: r is the field of a register, m that of a register or memory, v the
  // third one that VEX has, i a number of 8 bits.
  enum class Form : uint8_t {
    Unknown,
    // With VEX.
    None,
    Rvm,
    RvmI,
    Rvmr,
    Rm,
    RmI,
    Mr,
    MrI,
    Mvr,
    Rmv,   // sizes of general registers, as the next one
    VmE,   // the field r is a part of the opcode
    VmiE,  // of vectors
    ME,    // memory alone
    Gather,
    // Of general registers.
    Alu,  // the field r of the form with a number is `extra`
    Test,
    Mov,
    WordRm,
    Widen,  // from memory
    SetByte,
    OneE,   // one operand
    OneEi,  // and a number
    Jump,
    Call,
    Push,
    Pop,
    Ret,
  };
  uint16_t id = 0;  // asmjit's
  Form form = Form::Unknown;
  uint8_t opcode = 0;
  uint8_t prefix = 0;             // 1: 66, 2: F3, 3: F2
  uint8_t map = 1;                // 1: 0F, 2: 0F 38, 3: 0F 3A
  bool wide = false;              // W
  uint8_t extra = 0;              // of the opcode; of Mr forms that can load too, the other opcode
  uint8_t reads = 0, writes = 0;  // operands, by bit
  int8_t folds = -1;              // the one that may as well be in memory
  // Of one register with itself it gives a constant; it copies; it does nothing but write its first
  // operand.
  bool may_be_constant = false, copies = false, pure = false;
  bool commutes = false;  // the second operand and the third
};
// By a code, and the codes by asmjit's numbers; the first one stands for what is not known
// (x64/codes.cpp).
extern const std::array<EncodingX64, 256> kEncodingsX64;
extern const std::array<uint8_t, asmjit::x86::Inst::_kIdCount> kCodesX64;
inline uint8_t code_x64(uint32_t id) { return kCodesX64[id]; }
inline const EncodingX64& encoding_x64(uint8_t code) { return kEncodingsX64[code]; }

// Instructions on registers without a limit to their number, noted one after the other, and where
// the values in them live. What is known when an instruction is noted is written down at once: each
// way through the list again costs as much as noting it did.
class NotesX64 : public asmjit::x86::EmitterExplicitT<NotesX64> {
 public:
  // Registers of the CPU are below kSpans, spans behind.
  static constexpr uint32_t kSpans = 16, kNone = ~uint32_t{0};
  static constexpr uint8_t kNoMemory = 0xff;
  static constexpr uint32_t kConstants = kNone - 1;  // a base: behind the code
  struct Note {
    uint8_t code = 0;            // as of encoding_x64(); 0: nobody reads what it writes
    uint8_t count = 0;           // of operands
    uint8_t memory = kNoMemory;  // the operand that is in memory
    uint8_t size = 0;            // of a general register, or of memory
    uint8_t memory_size = 0, scale = 0;
    bool is_long = false;  // 256 bits
    bool has_number = false;
    uint32_t reg[4] = {kNone, kNone, kNone, kNone};
    uint32_t base = kNone, index = kNone;
    int32_t offset = 0;
    int32_t number = 0;            // or a label
    int64_t wide_number() const {  // of one without memory
      return static_cast<int64_t>(uint64_t{static_cast<uint32_t>(offset)} << 32 |
                                  static_cast<uint32_t>(number));
    }
  };
  using Constant = std::array<uint64_t, 4>;
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
    uint32_t next[2] = {}, next_count = 0;
    uint32_t depth = 0;  // loops around it
  };
  struct Copy {
    uint32_t to, from;  // spans
  };

  void clear();
  size_t size() const { return notes_.size(); }
  asmjit::x86::Ymm new_vector() { return asmjit::x86::Ymm(new_register(true)); }
  asmjit::x86::Gp new_word() { return asmjit::x86::gpq(new_register(false)); }
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
  // Behind the code.
  asmjit::x86::Mem in_memory(const Constant& bits);

  template <class... Operands>
  asmjit::Error _emitI(uint32_t id, const Operands&... operands) {
    Note& note = notes_.next();
    note = {code_x64(id)};
    (operand(note, operands), ...);
    note_uses(note);
    notes_.add();
    return asmjit::kErrorOk;
  }

 private:
  friend class RegistersX64;
  struct Value {
    uint32_t span;
    uint32_t block : 31;  // that the span is in
    uint32_t is_vector : 1;
  };
  uint32_t new_register(bool is_vector) {
    values_.push_back({kNone, kNone >> 1, is_vector});
    return asmjit::Operand::indexToVirtId(values_.size() - 1);
  }
  static void operand(Note& note, const asmjit::BaseReg& reg) {
    note.reg[note.count++] = reg.id();
    if (reg.isVec())
      note.is_long |= reg.size() == 32;
    else if (note.size == 0)
      note.size = static_cast<uint8_t>(reg.size());
  }
  static void operand(Note& note, const asmjit::x86::Mem& mem);
  static void operand(Note& note, const asmjit::Imm& number) {
    note.number = static_cast<int32_t>(number.value());
    if (note.memory == kNoMemory) note.offset = static_cast<int32_t>(number.value() >> 32);
    note.has_number = true;
    ++note.count;
  }
  static void operand(Note& note, const asmjit::Label& label) {
    note.number = static_cast<int32_t>(label.id());
    ++note.count;
  }
  void note_uses(Note& note);
  bool ends_block(const Note& note) const;
  void begin_block();
  uint32_t read(uint32_t id, uint32_t until);
  uint32_t expose(uint32_t value, uint32_t until);
  uint32_t new_span(uint32_t value, uint32_t begin, uint32_t end);

  // So long from the beginning that the system moves their pages and not their bytes.
  static constexpr size_t kLong = 160 << 10;
  Grown<Note, kLong> notes_;
  Grown<Value> values_;
  Grown<Span, kLong> spans_;
  std::vector<uint32_t> exposed_;  // spans
  std::vector<Block> blocks_;
  uint32_t block_ = 0;  // the last one
  Grown<Copy> copies_;
  std::vector<uint32_t> calls_;  // notes
  std::vector<uint32_t> block_of_label_;
  std::vector<uint32_t> bare_labels_;
  bool begins_block_ = true, fails_ = false;
  std::vector<Constant> constants_;
  std::vector<uint32_t> next_constant_;          // of those with the same hash
  std::array<uint32_t, 64> constant_by_hash_{};  // its index and 1
};

// RSP and RDI are taken. Those that a caller wants back come last.
inline constexpr std::array<uint8_t, 14> kWordRegisters = {0,  1, 2, 6,  8,  9,  10,
                                                           11, 3, 5, 12, 13, 14, 15};
inline constexpr std::array<uint8_t, 16> kVectorRegisters = {0, 1, 2,  3,  4,  5,  6,  7,
                                                             8, 9, 10, 11, 12, 13, 14, 15};
constexpr uint32_t kOfTheCaller = 1u << 3 | 1u << 5 | 0xf000u;
constexpr uint32_t kForMemory = 3;  // registers for what comes from memory, where there is any

// Writes what was noted as machine code, with registers of the CPU. RDI is the Pass, which also has
// memory for values that get none. What it needs for one piece of code it keeps for the next.
class RegistersX64 {
 public:
  // False: the memory for such values is too small, or an instruction is not known.
  bool run(NotesX64& notes, std::vector<std::byte>* bytes);

 private:
  using Note = NotesX64::Note;
  using Span = NotesX64::Span;
  using Form = EncodingX64::Form;
  static constexpr uint32_t kNone = NotesX64::kNone;
  struct Range {
    uint32_t begin, end;
    uint32_t next;  // of the same value, before it
  };
  struct Global {  // a value that more than one block knows
    uint32_t value;
    uint32_t last;    // span of the block that is looked at
    uint32_t block;   // that this is true of
    uint32_t ranges;  // the last one
    float weight;
  };
  struct Key {
    uint32_t key, span;
  };

  void link_blocks();
  uint64_t* live(size_t block, uint32_t which) { return &live_[(block * 4 + which) * words_]; }
  void find_live();
  void join_blocks();
  std::span<const uint32_t> ordered(bool vectors) {
    return {order_[vectors].data(), order_[vectors].size()};
  }
  void join(uint32_t span, uint32_t global, float weight);
  void add_range(Global& to, uint32_t begin, uint32_t end);
  void drop_unread();
  uint32_t length_of(const Global& global) const;
  void note_key(uint32_t span, float weight, uint32_t length);
  void find_order();
  uint32_t most_alive(bool vectors);
  void take_for_calls(bool vectors);
  void find_moments(uint32_t span);
  bool is_free(const uint64_t* used) const;
  void take(uint64_t* used) const;
  bool place_all(bool vectors, std::span<const uint8_t> registers);
  bool assign(bool vectors);
  bool find_memory(bool vectors);
  void find_saved();

  // x64/notes.cpp
  struct Moved {  // from memory to a register, for one instruction
    uint32_t span;
    uint8_t reg;
    bool is_vector;
    bool reads = false, back = false;
  };
  bool write(std::vector<std::byte>* bytes);
  void write(Note& note);
  void find_memory_places(Note& note);
  uint32_t moved(uint32_t reg, bool reads, bool writes);
  void copy(const Moved& each, bool back);
  static int32_t offset_of(const Span& span);
  void encode(const Note& note);
  void encode_vex(const Note& note);
  void encode_word(const Note& note);
  void encode_mov(const Note& note);
  void jump(const Note& note);
  void save(bool back);
  void ret();
  void make_room();
  void rex(const Note& note, uint32_t r, uint32_t m, bool wide, bool always);
  void modify(const Note& note, uint32_t r, uint32_t m);
  void put(uint32_t byte) { *at_++ = static_cast<uint8_t>(byte); }
  void put4(uint32_t bits);

  NotesX64* notes_ = nullptr;
  Span* spans_ = nullptr;
  std::vector<uint32_t> global_of_;  // by value
  std::vector<Global> globals_;
  uint32_t first_global_ = 0;   // span
  std::vector<uint64_t> live_;  // by block: read, written, live before and behind
  Grown<Range> ranges_;
  std::vector<int16_t> changes_;
  struct Keys {
    Grown<Key> all;
    std::array<uint32_t, 321> counts;
    uint32_t least, most;  // of the keys
  };
  std::array<Keys, 2> keys_;              // words, vectors
  std::array<Grown<uint32_t>, 2> order_;  // words, vectors
  std::vector<uint64_t> used_;
  struct Moment {
    uint64_t bits;
    uint32_t word;
  };
  Grown<Moment> moments_;       // of find_moments()
  std::vector<uint32_t> ends_;  // by slot of find_memory(): the last one's
  size_t words_ = 0;            // of a set of values
  size_t time_words_ = 0;       // of a set of places in time
  uint32_t saved_ = 0;          // registers of the caller, by bit

  Grown<uint8_t> bytes_;
  uint8_t *at_ = nullptr, *end_ = nullptr;
  struct Link {
    uint32_t at;      // of four bytes, in `bytes_`
    uint32_t block;   // kNone: the constants
    uint32_t behind;  // bytes from there to the next instruction
  };
  std::vector<Link> links_;
  bool has_link_ = false;           // the instruction that is being written: the last one of those
  std::vector<uint32_t> block_at_;  // in `bytes_`
  uint32_t block_ = 0;              // that is being written
  std::array<Moved, 8> moved_{};
  uint32_t moved_count_ = 0;
  bool fails_ = false;
};

}  // namespace kiln::engine
