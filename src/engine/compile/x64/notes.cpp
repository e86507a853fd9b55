// SPDX-License-Identifier: Apache-2.0
// How are instructions of x86-64 recorded, and the constants that they read?
#if defined(__x86_64__)
#include <algorithm>

#include "engine/compile/x64/registers.h"

namespace kiln::engine {
namespace {

namespace x86 = asmjit::x86;
namespace Inst = x86::Inst;
using Form = EncodingX64::Form;

}  // namespace

void NotesX64::clear(const CodesX64& codes) {
  codes_ = &codes;
  next_mask_ = 0, next_zeroes_ = false;
  clear_spans();
  notes_.clear();
  fails_ = false;
  constants_.clear();
  next_constant_.clear();
  constant_by_hash_.fill(0);
}

namespace {

size_t hash_of(const NotesX64::Constant& bits) {
  return ((bits[0] ^ bits[3]) * 0x9e3779b97f4a7c15u) >> 58;
}

x86::Mem constant_at(uint32_t index) {
  return x86::ptr(asmjit::Label(0), static_cast<int32_t>(index * sizeof(NotesX64::Constant)));
}

}  // namespace

// Returns its index + 1.
uint32_t NotesX64::add_constant(const Constant& bits) {
  uint32_t& first = constant_by_hash_[hash_of(bits)];
  constants_.push_back(bits);
  next_constant_.push_back(first);
  return first = static_cast<uint32_t>(constants_.size());
}

asmjit::x86::Mem NotesX64::in_memory(const Constant& bits) {
  uint32_t found = constant_by_hash_[hash_of(bits)];
  while (found && constants_[found - 1] != bits) found = next_constant_[found - 1];
  if (!found) found = add_constant(bits);
  return constant_at(found - 1);
}

// Two consecutive entries, aligned so that no load crosses a cache line.
asmjit::x86::Mem NotesX64::in_memory(const WideConstant& bits) {
  Constant low, high;
  std::copy_n(bits.begin(), 4, low.begin());
  std::copy_n(bits.begin() + 4, 4, high.begin());
  const auto is_it = [&](uint32_t at) {
    return at % 2 == 0 && at + 1 < constants_.size() && constants_[at] == low &&
           constants_[at + 1] == high;
  };
  uint32_t found = constant_by_hash_[hash_of(low)];
  while (found && !is_it(found - 1)) found = next_constant_[found - 1];
  if (!found) {
    if (constants_.size() % 2) add_constant({});
    found = add_constant(low);
    add_constant(high);
  }
  return constant_at(found - 1);
}

void NotesX64::operand(Note& note, const asmjit::x86::Mem& mem) {
  note.memory = note.count++;
  note.memory_size = static_cast<uint8_t>(mem.size());
  note.base = mem.hasBaseLabel() ? kConstants : mem.baseId();
  note.offset = mem.offsetLo32();
  note.broadcasts = mem.hasBroadcast();
  if (!mem.hasIndexReg()) return;
  note.index = mem.indexId();
  note.scale = static_cast<uint8_t>(mem.shift());
  const asmjit::RegType index = mem.indexType();
  const uint8_t length =
      index == asmjit::RegType::kX86_Zmm ? 2 : index == asmjit::RegType::kX86_Ymm;
  note.length = std::max(note.length, length);
}

void NotesX64::note_uses(Note& note) {
  begin_note(notes_.size());
  const EncodingX64& how = encoding(note.code);
  const uint32_t at = notes_.size() * 2;
  // The result of a gather must not share a register with its operands.
  const uint32_t until = how.form == Form::Gather ? at + 2 : at + 1;
  const uint32_t to = note.reg[0], second = note.reg[1], third = note.reg[2];
  const bool is_constant = how.may_be_constant && second == third;
  const uint32_t reads = is_constant ? 0 : reads_of(note);
  bool begins = (reads & 1) == 0 && to != second && to != third && to != note.reg[3];
  if (reads & 1) note.reg[0] = read(to, until);
  if (reads & 2) note.reg[1] = read(second, until);
  if (reads & 4) note.reg[2] = read(third, until);
  if (reads & 8) note.reg[3] = read(note.reg[3], until);
  if (note.memory != kNoMemory && note.base != kConstants) {
    begins = begins && to != note.base && to != note.index;
    note.base = read(note.base, until);
    if (note.index != kNone) note.index = read(note.index, until);
  }
  if ((how.writes & 1) && is_virtual(to)) {
    note.reg[0] = write(to, at, begins || is_constant, how.pure);
    if (how.copies && !note.mask) note_copy(note.reg[0], note.reg[1]);
  }
  if (is_constant) note.reg[1] = note.reg[2] = note.reg[0];
  if (note.size == 0) note.size = note.memory_size;
  if (how.form < Form::Jump && how.form != Form::Unknown) [[likely]]
    return;
  if (how.form == Form::Unknown) fails_ = true;
  if (how.form == Form::Ret) end_block(kNone, false);
  if (how.form == Form::Jump) {
    const auto label = static_cast<uint32_t>(note.number);
    const bool always = how.id == Inst::kIdJmp;
    if (always || !is_bare(label)) end_block(label, !always);
  }
  // The call and the three instructions before it (X64Words::call) overwrite registers.
  if (how.form == Form::Call) calls_.push_back({at - 6, at + 2});
}

}  // namespace kiln::engine
#endif
