// SPDX-License-Identifier: Apache-2.0
// How are instructions of x86-64 recorded, and how do they become machine code? (x64/notes.cpp,
// x64/registers.cpp, x64/encode.cpp)
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

// An instruction that the compiler knows: how it is encoded, and what it does with its operands.
struct alignas(16) EncodingX64 {
  // Where the operands go: r is a register field, m is a register or memory, v is the third
  // register of VEX, i is an immediate of 8 bits.
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
    Rmv,   // like the next one, sized like its general registers
    VmE,   // the field r is part of the opcode
    VmiE,  // the same, on vectors
    ME,    // only memory
    Gather,
    // On general registers.
    Alu,  // in the form with an immediate, the field r is `extra`
    Test,
    Mov,
    WordRm,
    Widen,  // from memory
    SetByte,
    OneE,   // one operand
    OneEi,  // and an immediate
    Ask,    // for a line of the cache
    Jump,
    Call,
    Push,
    Pop,
    Ret,
  };
  uint16_t id = 0;  // asmjit's
  Form form = Form::Unknown;
  uint8_t opcode = 0;
  uint8_t prefix = 0;  // 1: 66, 2: F3, 3: F2
  uint8_t map = 1;     // 1: 0F, 2: 0F 38, 3: 0F 3A
  bool wide = false;   // W
  uint8_t extra = 0;   // part of the opcode, or the opcode of another form, such as a store
  uint8_t reads = 0, writes = 0;  // operands, by bit
  int8_t folds = -1;              // the operand that may be in memory instead; -1: none
  // may_be_constant: with one register as both operands, the result is a constant. pure: does
  // nothing except write its first operand.
  bool may_be_constant : 1 = false, copies : 1 = false, pure : 1 = false;
  bool commutes : 1 = false;      // the second operand and the third
  bool mask_chooses : 1 = false;  // between these two: writes all lanes of the first operand
  // With EVEX: the unit of 8-bit offsets is the size of the operand in memory. This is a whole
  // vector, a part of one, or a number of bytes, as a power of two (kUnitBytes and up). 0: with
  // VEX.
  uint8_t unit = 0;
  static constexpr uint8_t kUnitVector = 1, kUnitHalf = 2, kUnitQuarter = 3, kUnitBytes = 4;
};
// The instructions of one level of x86-64 by code, and the codes by asmjit's instruction id. Code 0
// is an unknown instruction. Vector instructions have VEX on x86-64-v3 (x64/codes_v3.cpp) and EVEX
// on x86-64-v4 (x64/codes_v4.cpp).
struct CodesX64 {
  std::array<EncodingX64, 256> encodings{};
  std::array<uint8_t, asmjit::x86::Inst::_kIdCount> by_id{};
  uint32_t vector_bytes = 0;
  uint32_t vector_count = 0;
};
extern const CodesX64 kCodesV3, kCodesV4;

// The instructions, as they are recorded.
class NotesX64 : public Spans, public asmjit::x86::EmitterExplicitT<NotesX64> {
 public:
  static constexpr uint8_t kNoMemory = 0xff;
  static constexpr uint32_t kConstants = kNone - 1;  // a base: the constants after the code
  struct Note {
    uint8_t code = 0;            // 0: the result is never read
    uint8_t count = 0;           // of operands
    uint8_t memory = kNoMemory;  // the operand that is in memory
    uint8_t size = 0;            // of a general register, or of memory
    uint8_t memory_size = 0, scale = 0;
    uint8_t length = 0;  // 1: 256 bits, 2: 512 bits
    bool has_number : 1 = false;
    bool broadcasts : 1 = false;     // one number from memory to all lanes
    bool begins_with_k : 1 = false;  // the first operand is a mask register
    bool zeroes : 1 = false;         // the lanes that are not in the mask
    uint8_t mask : 3 = 0;            // a mask register; 0: all lanes
    uint32_t reg[4] = {kNone, kNone, kNone, kNone};
    uint32_t base = kNone, index = kNone;
    int32_t offset = 0;
    int32_t number = 0;            // or a label
    int64_t wide_number() const {  // for notes without memory
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
  // Return the address of a constant after the code.
  asmjit::x86::Mem in_memory(const Constant& bits);
  asmjit::x86::Mem in_memory(const WideConstant& bits);
  // k(): the next instruction writes only the lanes in this mask. z(): it sets the others to zero.
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
  // The operands that it reads, by bit. Lanes that are not in the mask keep their value.
  uint32_t reads_of(const Note& note) const {
    const EncodingX64& how = encoding(note.code);
    const bool keeps = note.mask && !note.zeroes && !how.mask_chooses;
    return how.reads | (keeps ? how.writes & 1u : 0u);
  }
  // Its result is never read.
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
  std::vector<uint32_t> next_constant_;          // with the same hash: index + 1, or 0
  std::array<uint32_t, 64> constant_by_hash_{};  // index + 1, or 0
};

// RSP and RDI are in use. Registers that a call preserves come last.
inline constexpr std::array<uint8_t, 14> kWordRegisters = {0,  1, 2, 6,  8,  9,  10,
                                                           11, 3, 5, 12, 13, 14, 15};
inline constexpr std::array<uint8_t, 32> kVectorRegisters = {
    0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
constexpr uint32_t kOfTheCaller = 1u << 3 | 1u << 5 | 0xf000u;
constexpr uint32_t kForMemory = 3;  // registers reserved for spilled values, if there are any

// Writes the notes as machine code, with registers of the CPU. RDI is the Pass, which also has the
// memory for spilled values. Keeps its memory from one piece of code to the next.
class RegistersX64 {
 public:
  // Returns false if there are too few spill slots or if an instruction is unknown.
  bool run(NotesX64& notes, std::vector<std::byte>* bytes);

 private:
  using Note = NotesX64::Note;
  using Span = NotesX64::Span;
  using Form = EncodingX64::Form;
  static constexpr uint32_t kNone = NotesX64::kNone;
  struct Moved {  // a spilled value in a reserved register, for one instruction
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
  uint32_t saved_ = 0;  // registers that belong to the caller, by bit

  Grown<uint8_t, 1 << 20> bytes_;
  uint8_t *at_ = nullptr, *end_ = nullptr;
  struct Link {
    uint32_t at;      // the 4-byte distance, in `bytes_`
    uint32_t block;   // kNone: the constants
    uint32_t behind;  // bytes from `at` to the next instruction
  };
  std::vector<Link> links_;
  bool has_link_ = false;           // the instruction that is being written has the last link
  std::vector<uint32_t> block_at_;  // in `bytes_`
  uint32_t block_ = 0;              // the block that is being written
  std::array<Moved, 8> moved_{};
  uint32_t moved_count_ = 0;
  bool fails_ = false;
};

}  // namespace kiln::engine
