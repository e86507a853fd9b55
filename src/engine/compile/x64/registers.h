// SPDX-License-Identifier: Apache-2.0
// Which register of x86-64 does each value of a piece of code get, and which bytes are it?
// (x64/notes.cpp)
#pragma once

#include <asmjit/x86.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/compile/places.h"
#include "engine/compile/spans.h"

namespace kiln::engine {

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

// Instructions as they are noted.
class NotesX64 : public Spans, public asmjit::x86::EmitterExplicitT<NotesX64> {
 public:
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

  void clear();
  size_t size() const { return notes_.size(); }
  asmjit::x86::Ymm new_vector() { return asmjit::x86::Ymm(new_register(true)); }
  asmjit::x86::Gp new_word() { return asmjit::x86::gpq(new_register(false)); }
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
  friend class Places;
  // Nobody reads what it writes.
  template <class Forget>
  void drop(uint32_t index, const Forget& forget) {
    Note& note = notes_[index];
    const uint8_t reads = encoding_x64(note.code).reads;
    note.code = 0;
    for (uint32_t i = 1; i < 4; ++i) {
      if (reads >> i & 1) forget(note.reg[i]);
    }
    forget(note.base);
    forget(note.index);
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

  Grown<Note, kLong> notes_;
  bool fails_ = false;
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
  void find_saved();
  void save(bool back);
  void ret();
  void make_room();
  void rex(const Note& note, uint32_t r, uint32_t m, bool wide, bool always);
  void modify(const Note& note, uint32_t r, uint32_t m);
  void put(uint32_t byte) { *at_++ = static_cast<uint8_t>(byte); }
  void put4(uint32_t bits);

  NotesX64* notes_ = nullptr;
  Span* spans_ = nullptr;
  Places places_;
  uint32_t saved_ = 0;  // registers of the caller, by bit

  Grown<uint8_t, 1 << 20> bytes_;
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
