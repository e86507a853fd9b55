// SPDX-License-Identifier: Apache-2.0
// How are instructions of x86-64 encoded, once each value has its place?
#if defined(__x86_64__)
#include <cstring>

#include "engine/compile/x64/registers.h"

namespace kiln::engine {
namespace {

namespace x86 = asmjit::x86;
namespace Inst = x86::Inst;
using How = EncodingX64;
using Form = EncodingX64::Form;

}  // namespace

inline void RegistersX64::put4(uint32_t bits) {
  std::memcpy(at_, &bits, 4);
  at_ += 4;
}

// Writes the ModRM byte and what follows it: a register, and another register or memory.
inline void RegistersX64::modify(const Note& note, uint32_t r, uint32_t m, uint32_t unit_bits) {
  const uint32_t field = (r & 7) << 3;
  if (note.memory == NotesX64::kNoMemory) return put(0xc0 | field | (m & 7));
  if (note.base == NotesX64::kConstants) {
    put(field | 5);
    links_.push_back({static_cast<uint32_t>(at_ - bytes_.data()), kNone, 0});
    has_link_ = true;
    return put4(static_cast<uint32_t>(note.offset));
  }
  const bool has_index = note.index != kNone;
  const uint32_t low = note.base & 7;
  const int32_t units = note.offset >> unit_bits;
  const bool is_short = units == static_cast<int8_t>(units) && units << unit_bits == note.offset;
  const uint32_t mode = note.offset == 0 && low != 5 ? 0 : is_short ? 0x40 : 0x80;
  put(mode | field | (has_index || low == 4 ? 4 : low));
  if (has_index)
    put(uint32_t{note.scale} << 6 | (note.index & 7) << 3 | low);
  else if (low == 4)
    put(0x24);
  if (mode == 0x40)
    put(static_cast<uint8_t>(units));
  else if (mode == 0x80)
    put4(static_cast<uint32_t>(note.offset));
}

namespace {

// Bit 3 of the register numbers, which goes into the prefix.
struct Upper {
  bool r, x, b;
};
Upper upper_of(const NotesX64::Note& note, uint32_t r, uint32_t m) {
  const bool in_memory = note.memory != NotesX64::kNoMemory;
  const bool has_base = in_memory && note.base != NotesX64::kConstants;
  const bool has_index = in_memory && note.index != NotesX64::kNone;
  return {(r & 8) != 0, has_index && (note.index & 8),
          in_memory ? has_base && (note.base & 8) : (m & 8) != 0};
}

}  // namespace

void RegistersX64::encode_vex(const Note& note) {
  const How& how = encoding(note);
  uint32_t r = note.reg[0], v = 0, m = note.reg[1], opcode = how.opcode;
  bool wide = how.wide;
  switch (how.form) {
    case Form::Rvm:
    case Form::RvmI:
    case Form::Rvmr:
      v = note.reg[1], m = note.reg[2];
      break;
    case Form::Rm:
      if (note.memory == 0) r = note.reg[1], opcode = how.extra;
      if (note.size && note.memory == NotesX64::kNoMemory && how.extra) opcode = how.extra;
      break;
    case Form::Mr:
    case Form::MrI:
      r = note.reg[1], m = note.reg[0];
      break;
    case Form::Kmov:
      opcode = note.begins_with_k ? how.opcode : how.extra;
      break;
    case Form::Mvr:
      v = note.reg[1], r = note.reg[2];
      break;
    case Form::Rmv:
      v = note.reg[2], wide = note.size == 8;
      break;
    case Form::VmE:
      wide = note.size == 8;
      [[fallthrough]];
    case Form::VmiE:
      v = note.reg[0], r = how.extra;
      break;
    case Form::ME:
      r = how.extra;
      break;
    case Form::Gather:
      v = note.count == 3 ? note.reg[2] : 0;  // with VEX, the mask
      break;
    case Form::None:
      r = m = 0;
      break;
    default:
      break;
  }
  if (how.unit) return encode_evex(note, r, v, m, opcode);
  const Upper upper = upper_of(note, r, m);
  const uint32_t rest = (~v & 15) << 3 | (note.length ? 4u : 0u) | how.prefix;
  if (!upper.x && !upper.b && how.map == 1 && !wide) {
    put(0xc5);
    put((upper.r ? 0 : 0x80u) | rest);
  } else {
    put(0xc4);
    put((upper.r ? 0 : 0x80u) | (upper.x ? 0 : 0x40u) | (upper.b ? 0 : 0x20u) | how.map);
    put((wide ? 0x80u : 0u) | rest);
  }
  put(opcode);
  if (how.form == Form::None) return;
  modify(note, r, m);
  if (how.form == Form::Rvmr)
    put(note.reg[3] << 4);
  else if (note.has_number)
    put(static_cast<uint8_t>(note.number));
}

// A prefix of four bytes, with one more bit per register, a mask and the vector length.
void RegistersX64::encode_evex(const Note& note, uint32_t r, uint32_t v, uint32_t m,
                               uint32_t opcode) {
  const How& how = encoding(note);
  Upper upper = upper_of(note, r, m);
  const bool in_memory = note.memory != NotesX64::kNoMemory;
  if (!in_memory) upper.x = (m & 16) != 0;
  const uint32_t index = in_memory && note.index != kNone ? note.index : 0;
  put(0x62);
  put((upper.r ? 0 : 0x80u) | (upper.x ? 0 : 0x40u) | (upper.b ? 0 : 0x20u) | (r & 16 ? 0 : 0x10u) |
      how.map);
  put((how.wide ? 0x80u : 0u) | (~v & 15) << 3 | 4u | how.prefix);
  put((note.zeroes ? 0x80u : 0u) | uint32_t{note.length} << 5 | (note.broadcasts ? 0x10u : 0u) |
      ((v | index) & 16 ? 0 : 8u) | note.mask);
  put(opcode);
  uint32_t unit = how.unit - EncodingX64::kUnitBytes;
  if (note.broadcasts)
    unit = how.wide ? 3 : 2;
  else if (how.unit < EncodingX64::kUnitBytes)
    unit = 4u + note.length - (how.unit - EncodingX64::kUnitVector);
  modify(note, r, m, unit);
  if (note.has_number) put(static_cast<uint8_t>(note.number));
}

inline void RegistersX64::rex(const Note& note, uint32_t r, uint32_t m, bool wide, bool always) {
  const Upper upper = upper_of(note, r, m);
  const uint32_t bits =
      (wide ? 8u : 0u) | (upper.r ? 4u : 0u) | (upper.x ? 2u : 0u) | (upper.b ? 1u : 0u);
  if (bits || always) put(0x40 | bits);
}

void RegistersX64::encode_mov(const Note& note) {
  const uint32_t r = note.reg[0];
  if (note.has_number) {
    fails_ |= note.memory != NotesX64::kNoMemory;
    const int64_t number = note.wide_number();
    const bool fits = number == static_cast<uint32_t>(number) || note.size == 4;
    const bool fits_sign = number == static_cast<int32_t>(number);
    rex(note, 0, r, note.size == 8 && !fits, false);
    if (!fits && fits_sign) {
      put(0xc7);
      modify(note, 0, r);
    } else {
      put(0xb8 | (r & 7));
    }
    put4(static_cast<uint32_t>(number));
    if (!fits && !fits_sign) put4(static_cast<uint32_t>(number >> 32));
    return;
  }
  if (note.memory == 1) {
    rex(note, r, 0, note.size == 8, false);
    put(0x8b);
    return modify(note, r, 0);
  }
  const uint32_t from = note.reg[1];
  if (note.size == 2) put(0x66);
  rex(note, from, r, note.size == 8, note.size == 1 && from >= 4);
  put(note.size == 1 ? 0x88 : 0x89);
  modify(note, from, r);
}

// To a block that has already been written, or to a later one.
void RegistersX64::jump(const Note& note) {
  const uint32_t to = notes_->block_of_label_[static_cast<size_t>(note.number)];
  const bool always = encoding(note).id == Inst::kIdJmp;
  if (to >= notes_->blocks_.size()) {
    fails_ = true;
    return;
  }
  if (always && to == block_ + 1) return;
  if (to <= block_) {
    const auto far = static_cast<int64_t>(block_at_[to]) - (at_ - bytes_.data()) - 2;
    if (far >= -128) {
      put(always ? 0xeb : 0x70u | encoding(note).opcode);
      return put(static_cast<uint8_t>(far));
    }
  }
  if (always) {
    put(0xe9);
  } else {
    put(0x0f);
    put(0x80u | encoding(note).opcode);
  }
  links_.push_back({static_cast<uint32_t>(at_ - bytes_.data()), to, 4});
  put4(0);
}

void RegistersX64::encode_word(const Note& note) {
  const How& how = encoding(note);
  const uint32_t first = note.reg[0], second = note.reg[1];
  const bool is_wide = note.size == 8;
  switch (how.form) {
    case Form::Alu:
    case Form::Test: {
      if (!note.has_number) {
        // If both operands are registers, the second one goes into the field r.
        const bool swaps = note.memory == NotesX64::kNoMemory;
        fails_ |= note.memory == 0;
        const uint32_t r = swaps ? second : first, m = swaps ? first : second;
        rex(note, r, m, is_wide, false);
        put(how.form == Form::Alu && swaps ? how.opcode ^ 2u : how.opcode);
        return modify(note, r, m);
      }
      const bool is_short =
          how.form == Form::Alu && note.number == static_cast<int8_t>(note.number);
      fails_ |= note.size < 4;
      rex(note, 0, first, is_wide, false);
      if (first == 0 && !is_short) {  // RAX has its own opcodes
        put(how.form == Form::Test ? 0xa9 : how.extra << 3 | 5u);
      } else {
        put(how.form == Form::Test ? 0xf7 : is_short ? 0x83 : 0x81);
        modify(note, how.form == Form::Test ? 0 : how.extra, first);
      }
      if (is_short)
        put(static_cast<uint8_t>(note.number));
      else
        put4(static_cast<uint32_t>(note.number));
      return;
    }
    case Form::Mov:
      return encode_mov(note);
    case Form::WordRm:
    case Form::Widen:
      if (how.prefix == 2) put(0xf3);
      rex(note, first, second, is_wide, false);
      if (how.map == 1) put(0x0f);
      fails_ |= how.form == Form::Widen && note.memory != 1;
      put(how.opcode + (how.form == Form::Widen && note.memory_size == 2 ? 1u : 0u));
      return modify(note, first, second);
    case Form::SetByte:
      rex(note, 0, first, false, first >= 4);
      put(0x0f);
      put(how.opcode);
      return modify(note, 0, first);
    case Form::OneE:
    case Form::OneEi:
      rex(note, 0, first, is_wide, false);
      put(how.opcode);
      modify(note, how.extra, first);
      if (how.form == Form::OneEi) put(static_cast<uint8_t>(note.number));
      return;
    case Form::Ask:
      fails_ |= note.memory != 0;
      rex(note, 1, 0, false, false);
      put(0x0f);
      put(how.opcode);
      return modify(note, 1, 0);
    case Form::Call:
      rex(note, 0, first, false, false);
      put(how.opcode);
      return modify(note, 2, first);
    case Form::Push:
    case Form::Pop:
      rex(note, 0, first, false, false);
      return put(how.opcode | (first & 7));
    default:
      fails_ = true;
  }
}

void RegistersX64::encode(const Note& note) {
  constexpr size_t kLongest = 64;  // at least as many bytes as one note may become
  if (static_cast<size_t>(end_ - at_) < kLongest) make_room();
  has_link_ = false;
  if (encoding(note).form <= Form::Gather)
    encode_vex(note);
  else if (encoding(note).form == Form::Jump)
    return jump(note);
  else if (encoding(note).form == Form::Ret)
    return ret();
  else
    encode_word(note);
  if (has_link_) [[unlikely]]
    links_.back().behind = static_cast<uint32_t>(at_ - bytes_.data()) - links_.back().at;
}

}  // namespace kiln::engine
#endif
