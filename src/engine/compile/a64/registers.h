// SPDX-License-Identifier: Apache-2.0
// How are instructions of aarch64 recorded, and how do they become machine code? (a64/codes.cpp,
// a64/notes.cpp, a64/registers.cpp)
//
// Every instruction is a word of 32 bits, with registers in at most four fields at fixed
// positions. So a note is that word without registers, plus the registers. asmjit provides the
// names of instructions and operands; a test compares each word with asmjit's.
#pragma once

#include <asmjit/arm/a64emitter.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/compile/places.h"
#include "engine/compile/spans.h"

namespace kiln::engine {

// An instruction that the compiler knows: a line of a64/codes.cpp.
struct EncodingA64 {
  // The operands, and the one whose element size goes into the word. Q (bit 30): the vector has
  // 128 bits. Size (bits 23 and 22): 0 for bytes to 3 for 64 bits; of floats, bit 22 is set for
  // f64.
  enum class Form : uint8_t {
    Unknown,
    // Vectors.
    Three,      // the last one may be the number 0: the word is `other`
    ThreeReal,  // the same
    ThreeBits,  // no size
    Wider,      // size and Q of the last operand
    Narrower,   // three or two operands: size and Q of the first
    Two,        // size and Q of the second
    TwoReal,    // the same
    TwoBits,    // Q of the second
    RealWider,  // two operands: size and Q of the second, half as wide as the first
    RealNarrower,
    ShiftLeft,  // by a number: size and Q of the second operand
    ShiftRight,
    ShiftNarrow,  // to the right: size and Q of the first operand
    ShiftFull,    // SHLL: by the number of bits of an element
    Extract,      // EXT
    Duplicate,    // `other`: from an element
    ToWord,       // an element
    Insert,       // from a word; `other`: from an element
    Move,         // MOV of vectors
    RealMove,     // FMOV: a number, or between a word and a vector
    Bytes,        // MOVI and MVNI
    // Memory.
    LoadLane,  // LD1 and ST1; `other`: of a whole vector
    LoadAll,   // LD1R
    Memory,    // `word` has the size and the operation, `other` the bytes as a power of two
    MemoryVector,
    // Words.
    Sum,      // with a register that may be shifted; `other`: with a number
    Bits,     // the same
    Compare,  // like Sum, without a result
    Test,     // like Bits, without a result
    Flip,     // like Sum, with one operand
    MoveWord,
    WordThree,
    WordTwo,
    Multiply,  // and add
    Shift,     // by a register; `other`: a number
    Field,     // UBFX and SBFX
    Extend,    // `other`: number of bits that are extended
    Choose,
    Set,
    Status,       // MRS
    WriteStatus,  // MSR
    // Elsewhere.
    Branch,
    BranchIf,   // a word is zero, or not
    BranchBit,  // the same for one bit
    Call,
    Return,
  };
  uint16_t id = 0;  // asmjit's instruction id
  Form form = Form::Unknown;
  bool reads_to = false;  // also reads the register that it writes
  bool stores = false;    // reads that register and does not write it
  uint32_t word = 0, other = 0;
};
// By asmjit's instruction id.
const EncodingA64& encoding_a64(uint32_t id);

// The fields of a number that AND, ORR and EOR can encode (a bitmask immediate), for words of 64
// or 32 bits; kNotBits if they cannot.
constexpr uint32_t kNotBits = ~uint32_t{0};
uint32_t bits_field_a64(uint64_t number, bool wide);

// The instructions, as they are recorded.
class NotesA64 : public Spans, public asmjit::a64::EmitterExplicitT<NotesA64> {
 public:
  enum class Kind : uint8_t { None, Plain, Number, Constant, Jump, Call, Return };
  enum Field : uint32_t { kTo, kFirst, kSecond, kThird };  // Rd, Rn, Rm, Ra
  struct Note {
    uint32_t word = 0;
    Kind kind = Kind::Plain;  // None: the result is never read
    uint8_t reads = 0;        // fields, by bit
    bool writes = true;       // the field kTo
    bool copies = false;      // copies the whole register kSecond
    // Registers by field; 0 for fields without a register, which leaves the word as it is. The
    // last two also hold the number of a Number, the offset of a Constant, or a label.
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

  // Records one instruction, or a load from the constants after the code.
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
  // Its result is never read.
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
  std::vector<uint32_t> next_constant_;          // with the same hash: index + 1, or 0
  std::array<uint32_t, 64> constant_by_hash_{};  // index + 1, or 0
};

// Writes the notes as machine code, with registers of the CPU. X0 is the Pass, which also has the
// memory for spilled values. Keeps its memory from one piece of code to the next.
class RegistersA64 {
 public:
  // Returns false if there are too few spill slots, if the code is too long, or if an instruction
  // is unknown.
  bool run(NotesA64& notes, std::vector<std::byte>* bytes);

 private:
  using Note = NotesA64::Note;
  using Kind = NotesA64::Kind;
  using Span = Spans::Span;
  static constexpr uint32_t kNone = Spans::kNone;
  // The spilled value in a register that is reserved for them. It stays there until the block ends
  // or another value needs the register.
  struct Held {
    uint32_t span = kNone;
    uint32_t used = 0;  // the last instruction that used it
  };
  bool write(std::vector<std::byte>* bytes);
  void write(const Note& note);
  void write_moved(const Note& note);
  uint32_t moved(uint32_t reg, bool reads);
  Held* held(uint32_t span);
  void forget_held() { held_ = {}; }
  // Negative: in memory.
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
  uint32_t saved_words_ = 0, saved_vectors_ = 0;  // that belong to the caller, by bit
  bool calls_ = false;

  Grown<uint32_t, 1 << 20> words_;
  uint32_t *at_ = nullptr, *end_ = nullptr;
  struct Link {
    uint32_t at;      // in `words_`
    uint32_t block;   // kNone: a constant
    uint32_t behind;  // offset of the constant
  };
  std::vector<Link> links_;
  std::vector<uint32_t> block_at_;             // in `words_`
  uint32_t block_ = 0;                         // the block that is being written
  std::array<std::array<Held, 4>, 2> held_{};  // words, vectors
  uint32_t now_ = 0;                           // number of instructions with spilled values so far
  // Which conditional jumps are inverted and skip an unconditional one, which reaches farther:
  // none, those on one bit (they reach 32 KB), or all (they reach 1 MB).
  enum class Far : uint8_t { None, Bits, All };
  Far far_ = Far::None;
  bool fails_ = false;
};

}  // namespace kiln::engine
