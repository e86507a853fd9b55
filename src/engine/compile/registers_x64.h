// SPDX-License-Identifier: Apache-2.0
// Which register of x86-64 does each value of a piece of code get? (registers_x64.cpp,
// notes_x64.cpp)
#pragma once

#include <asmjit/x86.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace kiln::engine {

// Instructions on registers without a limit to their number, noted one after the other. asmjit has
// a list for this whose nodes are ten times as long, and a compiler that runs once is as slow as
// its memory is long.
class NotesX64 : public asmjit::x86::EmitterExplicitT<NotesX64> {
 public:
  using Operand = asmjit::Operand_;
  struct Note {
    uint16_t id, count;  // of the operands
    uint32_t first;
  };
  using Constant = std::array<uint64_t, 4>;

  void clear();
  asmjit::x86::Ymm new_vector() { return asmjit::x86::Ymm(new_register(true)); }
  asmjit::x86::Gp new_word() { return asmjit::x86::gpq(new_register(false)); }
  asmjit::Label newLabel() { return asmjit::Label(labels_++); }
  void bind(const asmjit::Label& label) { bound_.push_back({size(), label.id()}); }
  // Behind the code.
  asmjit::x86::Mem in_memory(const Constant& bits);

  template <class... Operands>
  asmjit::Error _emitI(uint32_t id, const Operands&... operands) {
    constexpr size_t kCount = sizeof...(Operands);
    if (used_ + kCount > operands_.size()) operands_.resize(operands_.size() * 2 + 1024);
    notes_.push_back({static_cast<uint16_t>(id), kCount, static_cast<uint32_t>(used_)});
    (operands_[used_++].copyFrom(operands), ...);
    return asmjit::kErrorOk;
  }

  uint32_t size() const { return static_cast<uint32_t>(notes_.size()); }
  const Note& at(uint32_t index) const { return notes_[index]; }
  const Operand* operands(const Note& note) const { return operands_.data() + note.first; }
  Operand* operands(const Note& note) { return operands_.data() + note.first; }
  struct Bound {
    uint32_t index, label;
  };
  const std::vector<Bound>& bound() const { return bound_; }
  const std::vector<uint8_t>& is_vector() const { return is_vector_; }
  const std::vector<Constant>& constants() const { return constants_; }
  asmjit::Label label_of_constants() const { return asmjit::Label(constants_label_); }
  uint32_t label_count() const { return labels_; }

 private:
  uint32_t new_register(bool is_vector) {
    is_vector_.push_back(is_vector);
    return asmjit::Operand::indexToVirtId(static_cast<uint32_t>(is_vector_.size()) - 1);
  }

  static constexpr uint32_t kNone = ~uint32_t{0};
  std::vector<Note> notes_;
  std::vector<asmjit::Operand> operands_;  // more than are used
  size_t used_ = 0;
  std::vector<Bound> bound_;
  std::vector<uint8_t> is_vector_;  // by register
  std::vector<Constant> constants_;
  std::vector<uint32_t> next_constant_;          // of those with the same hash
  std::array<uint32_t, 64> constant_by_hash_{};  // its index and 1
  uint32_t labels_ = 0, constants_label_ = kNone;
};

// RSP and RDI are taken. Those that a caller wants back come last.
inline const std::vector<uint32_t> kWords = {0, 1, 2, 6, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15};
inline const std::vector<uint32_t> kVectors = {0, 1, 2,  3,  4,  5,  6,  7,
                                               8, 9, 10, 11, 12, 13, 14, 15};
constexpr uint32_t kOfTheCaller = 1u << 3 | 1u << 5 | 0xf000u;
constexpr uint32_t kForMemory = 3;  // registers for what comes from memory, where there is any

// Replaces the registers of what was noted by those of the CPU, and writes it as machine code. RDI
// is the Pass, which also has memory for values that get none. What it needs for one piece of code
// it keeps for the next.
class RegistersX64 {
 public:
  // False: the memory for such values is too small, or the code cannot be written.
  bool run(NotesX64& notes, asmjit::x86::Assembler& to);

 private:
  using Operand = asmjit::Operand_;
  // What an instruction does with its operands, a bit for each.
  struct Accesses {
    uint64_t key = 0;
    uint8_t reads = 0, writes = 0;
    uint8_t folds = 0;  // may as well be in memory
    // Of one register with itself it gives a constant; it is a gather, a copy; it does nothing but
    // write its first operand.
    bool may_be_constant = false, gathers = false, copies = false, pure = false;
  };
  enum class Part : uint8_t { Register, Base, Index };
  struct Use {  // of a register, by an operand
    uint32_t value;
    uint32_t span;
    uint8_t operand;
    Part part;
    bool reads, writes;
    bool begins;  // it is written, and not read by the same instruction
    bool late;    // no result may have its place
    bool folds;
  };
  struct Instruction {
    uint32_t first;  // of the uses
    uint16_t count;
    bool copies, pure;  // as of Accesses
    bool unread;        // nobody reads what it writes
  };
  struct Block {
    uint32_t begin = 0, end = 0;  // instructions
    uint32_t next[2] = {}, next_count = 0;
    uint32_t depth = 0;  // loops around it
  };
  struct Range {
    uint32_t begin, end;  // an instruction has two: it reads at the first and writes at the second
    uint32_t next;        // of the same span
  };
  // Where a value lives, with gaps; the same value may live in several places one after the other.
  struct Span {
    uint32_t value;
    uint32_t joined;  // another span that it is a part of, or itself
    uint32_t like;    // one that it is copied from or to, or itself
    uint32_t ranges;  // the first one
    float weight = 0;
    int place = -1;  // a register; below it, memory
    uint32_t first_piece = 0, piece_count = 0;
  };
  struct Piece {  // of a span
    uint32_t word;
    uint64_t mask;
  };

  static Accesses look_up(const NotesX64::Note& note, const Operand* operands, uint64_t key);
  const Accesses& accesses_of(const NotesX64::Note& note, const Operand* operands);
  void note_uses(const NotesX64::Note& note);
  bool collect();
  void link_blocks(uint32_t count);
  uint64_t* live(size_t block, uint32_t which) { return &live_[(block * 4 + which) * words_]; }
  void find_live();
  void find_spans();
  void find_spans_of(size_t block);
  void find_spans_of(Instruction& at, uint32_t index, float weight);
  void open(uint32_t value, uint32_t span, uint32_t end);
  void close(uint32_t value, uint32_t span, uint32_t begin);
  void add_range(Span& span, uint32_t begin, uint32_t end);
  uint32_t new_span(uint32_t value);
  bool assign(bool vectors);
  void find_order(bool vectors);
  uint32_t cut(Span& span);
  void take_for_calls(bool vectors, size_t words);
  bool is_free(const Span& span, const uint64_t* used) const;
  bool place_all(const std::vector<uint32_t>& registers, bool vectors);
  bool find_memory();
  void find_saved();
  bool write(asmjit::x86::Assembler& to);
  void write(uint32_t index, asmjit::x86::Assembler& to);
  struct Moved {  // from memory to a register, for one instruction
    uint32_t span, reg;
    bool back;
  };
  bool fold(const Instruction& at, const Use& use, Operand* operands);
  void move_from_memory(const Instruction& at, const Use& use, Operand* operands);
  void copy(asmjit::x86::Assembler& to, const Moved& moved, bool back);
  asmjit::x86::Mem memory_of(const Span& span) const;

  NotesX64* notes_ = nullptr;
  const uint8_t* is_vector_ = nullptr;  // by value
  std::vector<Accesses> known_;         // by hash
  std::vector<Instruction> instructions_;
  std::vector<Use> uses_;  // more than are used
  uint32_t use_count_ = 0;
  std::vector<Block> blocks_;
  std::vector<uint32_t> calls_;              // instructions
  std::vector<uint8_t> leads_;               // by instruction
  std::vector<uint32_t> labels_, block_of_;  // by id: the instruction behind it
  std::vector<uint64_t> live_;               // by block: read, written, live before and behind
  std::vector<Span> spans_;                  // first those that live from block to block
  std::vector<Range> ranges_;
  std::vector<uint32_t> current_, end_, opened_;     // by value: its span, and where a range ends
  std::array<uint32_t, 2> alive_{}, most_alive_{};   // words, vectors: at once
  std::vector<std::pair<uint32_t, uint32_t>> keys_;  // spans and what they are sorted by
  std::vector<uint32_t> order_;
  std::vector<Piece> pieces_;
  std::vector<uint64_t> used_;
  std::vector<Moved> moved_, read_;
  size_t words_ = 0;    // of a set of values
  uint32_t saved_ = 0;  // registers of the caller, by bit
  asmjit::Error error_ = asmjit::kErrorOk;
};

}  // namespace kiln::engine
