// SPDX-License-Identifier: Apache-2.0
// Which register of x86-64 does each value of a piece of code get, and which bytes are it?
// (x64/notes.cpp, x64/encode.cpp)
#pragma once

#include <asmjit/x86.h>

#include <algorithm>
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
    Kmov,  // between a mask register and a general one
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
  bool may_be_constant : 1 = false, copies : 1 = false, pure : 1 = false;
  bool commutes : 1 = false;      // the second operand and the third
  bool mask_chooses : 1 = false;  // between these two: nothing of the first operand stays
  // With EVEX: an offset of 8 bits counts as many bytes as the operand in memory has. A vector, a
  // part of one, or from kUnitBytes on a number of bytes, as a power of two. 0: with VEX.
  uint8_t unit = 0;
  static constexpr uint8_t kUnitVector = 1, kUnitHalf = 2, kUnitQuarter = 3, kUnitBytes = 4;
};
// The instructions of one level of CPU, by a code, and the codes by asmjit's numbers; the first
// code stands for an instruction that is not known. Instructions of vectors have VEX at x86-64-v3
// (x64/codes_v3.cpp), and EVEX at x86-64-v4 (x64/codes_v4.cpp).
struct CodesX64 {
  std::array<EncodingX64, 256> encodings{};
  std::array<uint8_t, asmjit::x86::Inst::_kIdCount> by_id{};
  uint32_t vector_bytes = 0;
  uint32_t vector_count = 0;
};
extern const CodesX64 kCodesV3, kCodesV4;

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
    uint8_t length = 0;  // 1: 256 bits, 2: 512 bits
    bool has_number : 1 = false;
    bool broadcasts : 1 = false;     // one number of memory to all lanes
    bool begins_with_k : 1 = false;  // the first operand is a mask register
    bool zeroes : 1 = false;         // the lanes that the mask leaves out
    uint8_t mask : 3 = 0;            // a mask register; 0: all lanes
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
  using WideConstant = std::array<uint64_t, 8>;

  void clear(const CodesX64& codes);
  size_t size() const { return notes_.size(); }
  template <class Vector>  // Ymm or Zmm
  Vector new_vector() {
    return Vector(new_register(true));
  }
  asmjit::x86::Gp new_word() { return asmjit::x86::gpq(new_register(false)); }
  // Behind the code.
  asmjit::x86::Mem in_memory(const Constant& bits);
  asmjit::x86::Mem in_memory(const WideConstant& bits);
  // The next instruction writes the lanes of this mask alone; and zeros to the others.
  NotesX64& k(const asmjit::x86::KReg& mask) {
    next_mask_ = static_cast<uint8_t>(mask.id());
    return *this;
  }
  NotesX64& z() {
    next_zeroes_ = true;
    return *this;
  }

  template <class... Operands>
  asmjit::Error _emitI(uint32_t id, const Operands&... operands) {
    Note& note = notes_.next();
    note = {codes_->by_id[id]};
    (operand(note, operands), ...);
    note.mask = next_mask_, note.zeroes = next_zeroes_;
    next_mask_ = 0, next_zeroes_ = false;
    note_uses(note);
    notes_.add();
    return asmjit::kErrorOk;
  }

 private:
  friend class RegistersX64;
  friend class Places;
  const EncodingX64& encoding(uint8_t code) const { return codes_->encodings[code]; }
  // Operands that it reads, by bit: what a mask leaves out stays.
  uint32_t reads_of(const Note& note) const {
    const EncodingX64& how = encoding(note.code);
    const bool keeps = note.mask && !note.zeroes && !how.mask_chooses;
    return how.reads | (keeps ? how.writes & 1u : 0u);
  }
  // Nobody reads what it writes.
  template <class Forget>
  void drop(uint32_t index, const Forget& forget) {
    Note& note = notes_[index];
    const uint8_t reads = encoding(note.code).reads;
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
      note.length = std::max(note.length, static_cast<uint8_t>(reg.size() / 32));
    else if (note.size == 0)
      note.size = static_cast<uint8_t>(reg.size());
  }
  static void operand(Note& note, const asmjit::x86::KReg& reg) {
    note.begins_with_k |= note.count == 0;
    note.reg[note.count++] = reg.id();
  }
  static void operand(Note& note, const asmjit::x86::Mem& mem);
  static void operand(Note& note, const asmjit::Imm& number) {
    note.number = number.int32Lo();
    if (note.memory == kNoMemory) note.offset = number.int32Hi();
    note.has_number = true;
    ++note.count;
  }
  static void operand(Note& note, const asmjit::Label& label) {
    note.number = static_cast<int32_t>(label.id());
    ++note.count;
  }
  void note_uses(Note& note);

  const CodesX64* codes_ = nullptr;
  uint8_t next_mask_ = 0;
  bool next_zeroes_ = false;
  Grown<Note, kLong> notes_;
  bool fails_ = false;
  uint32_t add_constant(const Constant& bits);
  std::vector<Constant> constants_;
  std::vector<uint32_t> next_constant_;          // of those with the same hash
  std::array<uint32_t, 64> constant_by_hash_{};  // its index and 1
};

// RSP and RDI are taken. Those that a caller wants back come last.
inline constexpr std::array<uint8_t, 14> kWordRegisters = {0,  1, 2, 6,  8,  9,  10,
                                                           11, 3, 5, 12, 13, 14, 15};
inline constexpr std::array<uint8_t, 32> kVectorRegisters = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
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
  int32_t offset_of(const Span& span) const;
  Note noted(uint32_t id) const { return {notes_->codes_->by_id[id]}; }
  const EncodingX64& encoding(const Note& note) const { return notes_->encoding(note.code); }
  uint32_t vector_count() const { return notes_->codes_->vector_count; }
  void encode(const Note& note);
  void encode_vex(const Note& note);
  void encode_evex(const Note& note, uint32_t r, uint32_t v, uint32_t m, uint32_t opcode);
  void encode_word(const Note& note);
  void encode_mov(const Note& note);
  void jump(const Note& note);
  void find_saved();
  void save(bool back);
  void ret();
  void make_room();
  void rex(const Note& note, uint32_t r, uint32_t m, bool wide, bool always);
  void modify(const Note& note, uint32_t r, uint32_t m, uint32_t unit_bits = 0);
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
