// SPDX-License-Identifier: Apache-2.0
// How do instructions of x86-64 become machine code once each value has its place? If possible, an
// instruction reads a spilled value from memory; otherwise the value goes through one of a few
// reserved registers.
#if defined(__x86_64__)
#include "engine/compile/x64/registers.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "engine/compile/target.h"

namespace kiln::engine {
namespace {

namespace x86 = asmjit::x86;
namespace Inst = x86::Inst;
using How = EncodingX64;
using Form = EncodingX64::Form;

bool is_span(uint32_t reg) { return Spans::is_span(reg); }

}  // namespace

bool RegistersX64::run(NotesX64& notes, std::vector<std::byte>* bytes) {
  if (notes.notes_.size() == 0 || notes.fails_) return false;
  constexpr std::span<const uint8_t> words(kWordRegisters);
  const auto vectors = std::span<const uint8_t>(kVectorRegisters).first(notes.codes_->vector_count);
  // The reserved registers are not among those that a call preserves.
  const RegistersOf of_words{words, words.subspan(kForMemory), 0xffffu & ~kOfTheCaller, kSpilled};
  const RegistersOf of_vectors{vectors, vectors.first(vectors.size() - kForMemory), ~uint32_t{0},
                               kSpilledBytes / notes.codes_->vector_bytes};
  notes_ = &notes;
  if (!places_.find(notes, notes.notes_.size(), of_words, of_vectors)) return false;
  spans_ = notes.spans_.data();
  find_saved();
  return write(bytes);
}

// Before a call, RSP must be a multiple of 16. The call itself pushes RDI, and on entry RSP is 8
// bytes off, so an even number of registers is saved.
void RegistersX64::find_saved() {
  saved_ = places_.used(false) & kOfTheCaller;
  if (!notes_->calls_.empty() && std::popcount(saved_) % 2 == 1)
    saved_ |= 1u << std::countr_zero(kOfTheCaller & ~saved_);
}

int32_t RegistersX64::offset_of(const Span& span) const {
  const auto slot = static_cast<size_t>(-1 - span.place);
  return static_cast<int32_t>(span.is_vector
                                  ? offsetof(Pass, vectors) + slot * notes_->codes_->vector_bytes
                                  : offsetof(Pass, words) + slot * 8);
}

// Moves a spilled value between memory and its register for this instruction.
void RegistersX64::copy(const Moved& each, bool back) {
  Note note = noted(each.is_vector ? Inst::kIdVmovups : Inst::kIdMov);
  note.count = 2;
  note.length = each.is_vector ? static_cast<uint8_t>(notes_->codes_->vector_bytes / 32) : 0;
  note.size = 8;
  note.memory = back ? 0 : 1;
  note.reg[back ? 1 : 0] = each.reg;
  note.base = x86::Gp::kIdDi;
  note.offset = offset_of(spans_[each.span]);
  encode(note);
}

// The register for a spilled value in this instruction.
uint32_t RegistersX64::moved(uint32_t reg, bool reads, bool writes) {
  if (!is_span(reg)) return reg;
  const uint32_t span = reg - NotesX64::kSpans;
  const bool is_vector = spans_[span].is_vector;
  uint32_t before = 0, m = 0;
  for (; m < moved_count_ && moved_[m].span != span; ++m)
    before += moved_[m].is_vector == is_vector;
  if (m == moved_count_) {
    const uint8_t own =
        is_vector ? kVectorRegisters[vector_count() - kForMemory + before] : kWordRegisters[before];
    fails_ |= before >= kForMemory;
    moved_[moved_count_++] = {span, own, is_vector, false};
  }
  if (reads && !moved_[m].reads) {
    moved_[m].reads = true;
    copy(moved_[m], false);
  }
  moved_[m].back |= writes;
  return moved_[m].reg;
}

// For notes with operands in memory.
void RegistersX64::find_memory_places(Note& note) {
  const How& how = encoding(note);
  const uint32_t reads = notes_->reads_of(note);
  const auto in_memory = [&](uint32_t operand) {
    note.memory = static_cast<uint8_t>(operand);
    note.base = x86::Gp::kIdDi;
    note.offset = offset_of(spans_[note.reg[operand] - NotesX64::kSpans]);
    note.reg[operand] = kNone;
  };
  const bool is_copy =
      how.copies && note.memory == NotesX64::kNoMemory && !note.has_number && !note.mask;
  if (is_copy && !is_span(note.reg[1]) && (how.form != Form::Mov || note.size == 8))
    return in_memory(0);
  const bool is_constant = how.may_be_constant && note.reg[1] == note.reg[2];
  if (how.folds >= 0 && note.memory == NotesX64::kNoMemory && !is_constant) {
    if (how.commutes && !is_span(note.reg[2])) std::swap(note.reg[1], note.reg[2]);
    const auto operand = static_cast<uint8_t>(how.folds);
    const uint32_t reg = note.reg[operand];
    const auto same = std::count(std::begin(note.reg), std::end(note.reg), reg);
    if (is_span(reg) && same == 1) in_memory(operand);
  }
  note.base = moved(note.base, true, false);
  note.index = moved(note.index, true, false);
  for (uint32_t i = 0; i < 4; ++i)
    note.reg[i] = moved(note.reg[i], (reads >> i & 1) && !is_constant, how.writes >> i & 1);
}

inline void RegistersX64::write(Note& note) {
  if (note.code == 0) return;
  bool all = true;
  const auto find = [&](uint32_t& reg) {
    if (!is_span(reg)) return;
    const int place = spans_[reg - NotesX64::kSpans].place;
    all &= place >= 0;
    if (place >= 0) reg = static_cast<uint32_t>(place);
  };
  for (uint32_t i = 0; i < note.count; ++i) find(note.reg[i]);
  if (note.memory != NotesX64::kNoMemory) find(note.base), find(note.index);
  moved_count_ = 0;
  if (!all) find_memory_places(note);
  // A 32-bit move also clears the upper half, so it stays.
  if (encoding(note).copies && note.memory == NotesX64::kNoMemory && !note.mask &&
      note.reg[0] == note.reg[1] && (encoding(note).form != Form::Mov || note.size == 8))
    return;
  encode(note);
  for (uint32_t m = 0; m < moved_count_; ++m) {
    if (moved_[m].back) copy(moved_[m], true);
  }
}

void RegistersX64::make_room() {
  const auto used = at_ - bytes_.data();
  bytes_.resize(bytes_.size() * 2 + 4096);
  at_ = bytes_.data() + used;
  end_ = bytes_.data() + bytes_.size();
}

void RegistersX64::save(bool back) {
  for (uint32_t i = 0; i < 16; ++i) {
    const uint32_t reg = back ? 15 - i : i;
    if (!(saved_ >> reg & 1)) continue;
    Note note = noted(back ? Inst::kIdPop : Inst::kIdPush);
    note.reg[0] = reg;
    encode(note);
  }
}

void RegistersX64::ret() {
  save(true);
  put(0xc3);
}

bool RegistersX64::write(std::vector<std::byte>* bytes) {
  const std::vector<Spans::Block>& blocks = notes_->blocks_;
  const std::vector<NotesX64::Constant>& constants = notes_->constants_;
  fails_ = false;
  links_.clear();
  block_at_.resize(blocks.size());
  at_ = bytes_.data();
  end_ = at_ + bytes_.size();
  save(false);
  for (block_ = 0; block_ < blocks.size(); ++block_) {
    block_at_[block_] = static_cast<uint32_t>(at_ - bytes_.data());
    Note* const end = notes_->notes_.data() + blocks[block_].end;
    for (Note* note = notes_->notes_.data() + blocks[block_].begin; note != end; ++note)
      write(*note);
  }
  constexpr size_t kEach = sizeof(NotesX64::Constant), kAligned = sizeof(NotesX64::WideConstant);
  const size_t code = static_cast<size_t>(at_ - bytes_.data());
  const size_t behind = (code + kAligned - 1) / kAligned * kAligned;
  for (const Link& link : links_) {
    const size_t to = link.block == kNone ? behind : block_at_[link.block];
    uint32_t distance;
    std::memcpy(&distance, &bytes_[link.at], 4);
    distance += static_cast<uint32_t>(to - link.at - link.behind);
    std::memcpy(&bytes_[link.at], &distance, 4);
  }
  bytes->resize(behind + constants.size() * kEach);
  std::memcpy(bytes->data(), bytes_.data(), code);
  if (!constants.empty())
    std::memcpy(bytes->data() + behind, constants.data(), constants.size() * kEach);
  return !fails_;
}

}  // namespace kiln::engine
#endif
