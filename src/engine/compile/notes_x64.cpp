// SPDX-License-Identifier: Apache-2.0
// How does what was noted become machine code, once each value has its place? Values without a
// register are read from memory by the instruction itself where it can, and else come and go by one
// of the registers that are kept for that.
#if defined(__x86_64__)
#include <algorithm>
#include <bit>
#include <cstddef>

#include "engine/compile/registers_x64.h"
#include "engine/compile/target.h"

namespace kiln::engine {
namespace {

namespace x86 = asmjit::x86;
using asmjit::Operand_;
namespace Inst = x86::Inst;

constexpr uint32_t kNoRange = ~uint32_t{0};

void set(Operand_& operand, bool is_register, bool is_base, uint32_t id) {
  if (is_register)
    operand.as<asmjit::BaseReg>().setId(id);
  else if (is_base)
    operand.as<x86::Mem>().setBaseId(id);
  else
    operand.as<x86::Mem>().setIndexId(id);
}

}  // namespace

void NotesX64::clear() {
  notes_.clear();
  used_ = 0;
  bound_.clear();
  is_vector_.clear();
  constants_.clear();
  next_constant_.clear();
  constant_by_hash_.fill(0);
  labels_ = 0;
  constants_label_ = kNone;
}

asmjit::x86::Mem NotesX64::in_memory(const Constant& bits) {
  if (constants_label_ == kNone) constants_label_ = labels_++;
  uint32_t& first = constant_by_hash_[((bits[0] ^ bits[3]) * 0x9e3779b97f4a7c15u) >> 58];
  uint32_t found = first;
  while (found && constants_[found - 1] != bits) found = next_constant_[found - 1];
  if (!found) {
    constants_.push_back(bits);
    next_constant_.push_back(first);
    first = found = static_cast<uint32_t>(constants_.size());
  }
  return x86::ptr(asmjit::Label(constants_label_),
                  static_cast<int32_t>((found - 1) * sizeof(Constant)));
}

asmjit::x86::Mem RegistersX64::memory_of(const Span& span) const {
  const auto slot = static_cast<int64_t>(-1 - span.place);
  const int64_t offset = is_vector_[span.value]
                             ? static_cast<int64_t>(offsetof(Pass, vectors)) + slot * 32
                             : static_cast<int64_t>(offsetof(Pass, words)) + slot * 8;
  return x86::ptr(x86::rdi, static_cast<int32_t>(offset));
}

void RegistersX64::copy(asmjit::x86::Assembler& to, const Moved& moved, bool back) {
  const Span& span = spans_[moved.span];
  const x86::Mem memory = memory_of(span);
  if (is_vector_[span.value])
    error_ |=
        back ? to.vmovups(memory, x86::ymm(moved.reg)) : to.vmovups(x86::ymm(moved.reg), memory);
  else
    error_ |= back ? to.mov(memory, x86::gpq(moved.reg)) : to.mov(x86::gpq(moved.reg), memory);
}

// The one operand that reads it becomes the memory.
bool RegistersX64::fold(const Instruction& at, const Use& use, Operand* operands) {
  if (!use.folds) return false;
  const Use* const first = &uses_[at.first];
  const auto same = [&](const Use& other) { return other.span == use.span; };
  if (std::count_if(first, first + at.count, same) != 1) return false;
  x86::Mem memory = memory_of(spans_[use.span]);
  memory.setSize(operands[use.operand].as<asmjit::BaseReg>().size());
  operands[use.operand].copyFrom(memory);
  return true;
}

// All uses of the value by this instruction.
void RegistersX64::move_from_memory(const Instruction& at, const Use& use, Operand* operands) {
  const auto is_it = [&](const Moved& moved) { return moved.span == use.span; };
  if (std::any_of(moved_.begin(), moved_.end(), is_it)) return;
  const bool is_vector = is_vector_[spans_[use.span].value];
  const auto before =
      static_cast<size_t>(std::count_if(moved_.begin(), moved_.end(), [&](const Moved& moved) {
        return is_vector_[spans_[moved.span].value] == is_vector;
      }));
  Moved moved{use.span,
              is_vector ? kVectors[kVectors.size() - kForMemory + before] : kWords[before], false};
  bool reads = false;
  for (uint32_t u = at.first; u < at.first + at.count; ++u) {
    const Use& other = uses_[u];
    if (other.span != use.span) continue;
    reads |= other.reads;
    moved.back |= other.writes;
    set(operands[other.operand], other.part == Part::Register, other.part == Part::Base, moved.reg);
  }
  moved_.push_back(moved);
  if (reads) read_.push_back(moved);
}

void RegistersX64::write(uint32_t index, asmjit::x86::Assembler& to) {
  const Instruction& at = instructions_[index];
  if (at.unread) return;
  const NotesX64::Note& note = notes_->at(index);
  Operand* const operands = notes_->operands(note);
  bool folded = false;
  moved_.clear();
  read_.clear();
  for (uint32_t u = at.first; u < at.first + at.count; ++u) {
    const Use& use = uses_[u];
    const Span& span = spans_[use.span];
    if (span.place >= 0)
      set(operands[use.operand], use.part == Part::Register, use.part == Part::Base,
          static_cast<uint32_t>(span.place));
    else if (folded || !(folded = fold(at, use, operands)))
      move_from_memory(at, use, operands);
  }
  // One of 32 bits clears the others.
  if (at.copies && operands[0] == operands[1] &&
      (note.id == Inst::kIdVmovaps || operands[0].as<asmjit::BaseReg>().size() == 8))
    return;
  for (const Moved& moved : read_) copy(to, moved, false);
  static const asmjit::Operand kNone[3];
  const auto operand = [&](uint32_t i) -> const Operand& {
    return i < note.count ? operands[i] : static_cast<const Operand&>(kNone[0]);
  };
  asmjit::Operand more[3];
  more[0].copyFrom(operand(3));
  error_ |= to._emit(note.id, operand(0), operand(1), operand(2), more);
  for (const Moved& moved : moved_) {
    if (moved.back) copy(to, moved, true);
  }
}

void RegistersX64::find_saved() {
  saved_ = 0;
  for (const Span& span : spans_) {
    if (span.place >= 0 && span.ranges != kNoRange && !is_vector_[span.value])
      saved_ |= 1u << span.place & kOfTheCaller;
  }
  // A call puts one more word on the stack, and a function begins with half of what it is aligned
  // to.
  if (!calls_.empty() && std::popcount(saved_) % 2 == 1)
    saved_ |= 1u << std::countr_zero(kOfTheCaller & ~saved_);
}

bool RegistersX64::write(asmjit::x86::Assembler& to) {
  error_ = asmjit::kErrorOk;
  for (uint32_t label = 0; label < notes_->label_count(); ++label) {
    if (to.newLabel().id() != label) return false;
  }
  for (uint32_t reg = 0; reg < 16; ++reg) {
    if (saved_ >> reg & 1) error_ |= to.push(x86::gpq(reg));
  }
  size_t bound = 0;
  for (uint32_t i = 0; i < instructions_.size(); ++i) {
    for (; bound < notes_->bound().size() && notes_->bound()[bound].index == i; ++bound)
      error_ |= to.bind(asmjit::Label(notes_->bound()[bound].label));
    if (notes_->at(i).id == Inst::kIdRet) {
      for (uint32_t reg = 16; reg-- > 0;) {
        if (saved_ >> reg & 1) error_ |= to.pop(x86::gpq(reg));
      }
    }
    write(i, to);
  }
  const auto& constants = notes_->constants();
  if (!constants.empty()) {
    error_ |= to.align(asmjit::AlignMode::kData, sizeof(NotesX64::Constant));
    error_ |= to.bind(notes_->label_of_constants());
    error_ |= to.embed(constants.data(), constants.size() * sizeof(NotesX64::Constant));
  }
  return error_ == asmjit::kErrorOk;
}

}  // namespace kiln::engine
#endif
