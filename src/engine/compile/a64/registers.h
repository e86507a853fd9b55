// SPDX-License-Identifier: Apache-2.0
// How are instructions of aarch64 noted, and how do they become machine code? (a64/codes.cpp,
// a64/notes.cpp, a64/registers.cpp)
//
// Every instruction is a word of 32 bits, with registers in four fields at most that are always at
// the same place. So a note is that word without the registers, and these. asmjit gives names to
// instructions and operands; a test compares each word with asmjit's.
#pragma once

#include <asmjit/arm/a64emitter.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/compile/places.h"
#include "engine/compile/spans.h"

namespace kiln::engine {

// An instruction that is known: a line of a64/codes.cpp.
struct EncodingA64 {
  // What its operands are, and where the sizes of their elements go: Q says that a vector is whole,
  // the size counts from bytes at 22, of numbers with a point only f64 is marked there.
  enum class Form : uint8_t {
    Unknown,
    // Vectors.
    Three,      // the last one may be the number 0: `other`
    ThreeReal,  // as above
    ThreeBits,  // no size
    Wider,      // size and Q of the last one
    Narrower,   // three, or two: size and Q of the first
    Two,        // size and Q of the second
    TwoReal,    // the same
    TwoBits,    // Q of the second
    RealWider,  // two: the second one's size is a half of the first one's
    RealNarrower,
    ShiftLeft,  // by a number, size and Q of the second
    ShiftRight,
    ShiftNarrow,  // to the right, size and Q of the first
    ShiftFull,    // SHLL: by as many bits as an element has
    Extract,      // EXT
    Duplicate,    // `other`: from an element
    ToWord,       // an element
    Insert,       // from a word; `other`: from an element
    Move,         // MOV of vectors
    RealMove,     // FMOV: a number, or between a word and a vector
    Bytes,        // MOVI and MVNI
    // Memory.
    LoadLane,  // LD1 and ST1; `other`: all of a vector
    LoadAll,   // LD1R
    Memory,    // `word` has the size and what is done; `other` the bytes as a power of two
    MemoryVector,
    // Words.
    Sum,      // of a register, perhaps shifted, or a number: `other`
    Bits,     // the same
    Compare,  // as Sum, without a result
    Test,     // as Bits, without a result
    Flip,     // as Sum, with one operand
    MoveWord,
    WordThree,
    WordTwo,
    Multiply,  // and add
    Shift,     // by a register; `other`: a number
    Field,     // UBFX and SBFX
    Extend,    // `other`: the bits that count
    Choose,
    Set,
    Status,       // MRS
    WriteStatus,  // MSR
    // Elsewhere.
    Branch,
    BranchIf,   // a word is zero, or not
    BranchBit,  // the same of a bit
    Call,
    Return,
  };
  uint16_t id = 0;  // asmjit's
  Form form = Form::Unknown;
  bool reads_to = false;  // the register that it writes
  bool stores = false;    // reads that register and writes none
  uint32_t word = 0, other = 0;
};
// By asmjit's number.
const EncodingA64& encoding_a64(uint32_t id);

// The fields of a number that AND, ORR and EOR can hold, of words of 32 or 64 bits; kNotBits: there
// are none.
constexpr uint32_t kNotBits = ~uint32_t{0};
uint32_t bits_field_a64(uint64_t number, bool wide);

// Instructions as they are noted.
class NotesA64 : public Spans, public asmjit::a64::EmitterExplicitT<NotesA64> {
 public:
  enum class Kind : uint8_t { None, Plain, Number, Constant, Jump, Call, Return };
  enum Field : uint32_t { kTo, kFirst, kSecond, kThird };  // Rd, Rn, Rm, Ra
  struct Note {
    uint32_t word = 0;
    Kind kind = Kind::Plain;  // None: nobody reads what it writes
    uint8_t reads = 0;        // fields, by bit
    bool writes = true;       // the field kTo
    bool copies = false;      // kSecond, as it is
    // By field; where there is none, 0 leaves the word as it is. The last two are the number of a
    // Number, the offset of a Constant, or a label.
    uint32_t reg[4] = {};
    uint64_t number() const { return uint64_t{reg[kThird]} << 32 | reg[kSecond]; }
    void set_number(uint64_t to) {
      reg[kSecond] = static_cast<uint32_t>(to);
      reg[kThird] = static_cast<uint32_t>(to >> 32);
    }
  };
  using Constant = std::array<uint64_t, 2>;

  void clear();
  size_t size() const { return notes_.size(); }
  asmjit::a64::Vec new_vector() { return asmjit::a64::VecV(new_register(true)); }
  asmjit::a64::Gp new_word() { return asmjit::a64::GpX(new_register(false)); }

  // One instruction, or a load from behind the code.
  void constant(const asmjit::a64::Vec& to, const Constant& bits);
  template <class... Operands>
  asmjit::Error _emitI(uint32_t id, const Operands&... operands) {
    const asmjit::Operand_* const all[] = {&operands..., nullptr};
    note(id, all, sizeof...(operands));
    return asmjit::kErrorOk;
  }

 private:
  friend class RegistersA64;
  friend class Places;
  using How = EncodingA64;
  using Operands = const asmjit::Operand_* const*;
  // Nobody reads what it writes.
  template <class Forget>
  void drop(uint32_t index, const Forget& forget) {
    Note& note = notes_[index];
    note.kind = Kind::None;
    for (uint32_t i = 1; i < 4; ++i) {
      if (note.reads >> i & 1) forget(note.reg[i]);
    }
  }
  void note(uint32_t id, Operands operands, size_t count);
  static bool note_vectors(Note& note, const How& how, Operands operands, size_t count);
  static bool note_shift(Note& note, const How& how, Operands operands, size_t count);
  static bool note_elements(Note& note, const How& how, Operands operands);
  static bool note_real(Note& note, Operands operands);
  static bool note_bytes(Note& note, const How& how, Operands operands, size_t count);
  static bool note_words(Note& note, const How& how, Operands operands, size_t count);
  static bool note_sum(Note& note, const How& how, Operands operands, size_t count);
  static bool note_memory(Note& note, const How& how, Operands operands);
  static bool note_jump(Note& note, const How& how, uint32_t id, Operands operands);
  void note_uses(Note& note, bool copies);
  void add_constant(const asmjit::a64::Vec& to, const Constant& bits);

  Grown<Note, kLong> notes_;
  bool fails_ = false;
  std::vector<Constant> constants_;
  std::vector<uint32_t> next_constant_;          // of those with the same hash
  std::array<uint32_t, 64> constant_by_hash_{};  // its index and 1
};

// Writes what was noted as machine code, with registers of the CPU. X0 is the Pass, which also has
// memory for values that get none. What it needs for one piece of code it keeps for the next.
class RegistersA64 {
 public:
  // False: the memory for such values is too small, the code is too long, or an instruction is not
  // known.
  bool run(NotesA64& notes, std::vector<std::byte>* bytes);

 private:
  using Note = NotesA64::Note;
  using Kind = NotesA64::Kind;
  using Span = Spans::Span;
  static constexpr uint32_t kNone = Spans::kNone;
  // What the registers for values from memory hold: until the block ends or it makes room for
  // another one.
  struct Held {
    uint32_t span = kNone;
    uint32_t used = 0;  // the last instruction that did
  };
  bool write(std::vector<std::byte>* bytes);
  void write(const Note& note);
  void write_moved(const Note& note);
  uint32_t moved(uint32_t reg, bool reads);
  Held* held(uint32_t span);
  void forget_held() { held_ = {}; }
  // Below 0: memory.
  int place(uint32_t reg) const {
    if (reg < Spans::kSpans) return static_cast<int>(reg & 31);
    return spans_[reg - Spans::kSpans].place;
  }
  bool in_memory(uint32_t reg) const { return place(reg) < 0; }
  void copy(uint32_t span, uint32_t reg, bool back);
  void put_number(uint32_t reg, uint64_t number);
  void jump(uint32_t word, const Note& note);
  bool link(size_t behind);
  void find_saved();
  void save(bool back);
  void encode(const Note& note, uint32_t word, uint32_t to);
  void put(uint32_t word) { *at_++ = word; }
  void make_room();
  uint32_t here() const { return static_cast<uint32_t>(at_ - words_.data()); }

  NotesA64* notes_ = nullptr;
  const Span* spans_ = nullptr;
  Places places_;
  uint32_t saved_words_ = 0, saved_vectors_ = 0;  // registers of the caller, by bit
  bool calls_ = false;

  Grown<uint32_t, 1 << 20> words_;
  uint32_t *at_ = nullptr, *end_ = nullptr;
  struct Link {
    uint32_t at;      // in `words_`
    uint32_t block;   // kNone: a constant
    uint32_t behind;  // and its offset
  };
  std::vector<Link> links_;
  std::vector<uint32_t> block_at_;             // in `words_`
  uint32_t block_ = 0;                         // that is being written
  std::array<std::array<Held, 4>, 2> held_{};  // words, vectors
  uint32_t now_ = 0;                           // instructions with such values
  // Jumps on a condition lead around one that goes anywhere: those on a bit, which reach least, or
  // all of them.
  enum class Far : uint8_t { None, Bits, All };
  Far far_ = Far::None;
  bool fails_ = false;
};

}  // namespace kiln::engine
