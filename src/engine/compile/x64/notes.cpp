// SPDX-License-Identifier: Apache-2.0
// How are instructions of x86-64 noted, and how do they become machine code once each value has its
// place? Values without a register are read from memory by the instruction itself where it can, and
// else come and go by one of the registers that are kept for that.
#if defined(__x86_64__)
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "engine/compile/target.h"
#include "engine/compile/x64/registers.h"

namespace kiln::engine {
namespace {

namespace x86 = asmjit::x86;
namespace Inst = x86::Inst;
using How = EncodingX64;
using Form = EncodingX64::Form;

bool is_span(uint32_t reg) { return Spans::is_span(reg); }

}  // namespace

void NotesX64::clear() {
  clear_spans();
  notes_.clear();
  fails_ = false;
  constants_.clear();
  next_constant_.clear();
  constant_by_hash_.fill(0);
}

asmjit::x86::Mem NotesX64::in_memory(const Constant& bits) {
  uint32_t& first = constant_by_hash_[((bits[0] ^ bits[3]) * 0x9e3779b97f4a7c15u) >> 58];
  uint32_t found = first;
  while (found && constants_[found - 1] != bits) found = next_constant_[found - 1];
  if (!found) {
    constants_.push_back(bits);
    next_constant_.push_back(first);
    first = found = static_cast<uint32_t>(constants_.size());
  }
  return x86::ptr(asmjit::Label(0), static_cast<int32_t>((found - 1) * sizeof(Constant)));
}

void NotesX64::operand(Note& note, const asmjit::x86::Mem& mem) {
  note.memory = note.count++;
  note.memory_size = static_cast<uint8_t>(mem.size());
  note.base = mem.hasBaseLabel() ? kConstants : mem.baseId();
  note.offset = mem.offsetLo32();
  if (!mem.hasIndexReg()) return;
  note.index = mem.indexId();
  note.scale = static_cast<uint8_t>(mem.shift());
  note.is_long |= mem.indexType() == asmjit::RegType::kX86_Ymm;
}

void NotesX64::note_uses(Note& note) {
  begin_note(notes_.size());
  const EncodingX64& how = encoding_x64(note.code);
  const uint32_t at = notes_.size() * 2;
  // Of a gather no result may have the place of what it reads.
  const uint32_t until = how.form == Form::Gather ? at + 2 : at + 1;
  const uint32_t to = note.reg[0], second = note.reg[1], third = note.reg[2];
  const bool is_constant = how.may_be_constant && second == third;
  const uint32_t reads = is_constant ? 0 : how.reads;
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
    if (how.copies) note_copy(note.reg[0], note.reg[1]);
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
  // From the instruction on that is the third one before it (X64::call).
  if (how.form == Form::Call) calls_.push_back({at - 6, at + 2});
}

bool RegistersX64::run(NotesX64& notes, std::vector<std::byte>* bytes) {
  if (notes.notes_.size() == 0 || notes.fails_) return false;
  constexpr std::span<const uint8_t> words(kWordRegisters), vectors(kVectorRegisters);
  // Those that are for what comes from memory are none of a caller's.
  const RegistersOf of_words{words, words.subspan(kForMemory), 0xffffu & ~kOfTheCaller, kSpilled};
  const RegistersOf of_vectors{vectors, vectors.first(vectors.size() - kForMemory), 0xffffu,
                               kSpilledBytes / 32};
  notes_ = &notes;
  if (!places_.find(notes, notes.notes_.size(), of_words, of_vectors)) return false;
  spans_ = notes.spans_.data();
  find_saved();
  return write(bytes);
}

// A call puts one more word on the stack, and a function begins with half of what it is aligned to.
void RegistersX64::find_saved() {
  saved_ = places_.used(false) & kOfTheCaller;
  if (!notes_->calls_.empty() && std::popcount(saved_) % 2 == 1)
    saved_ |= 1u << std::countr_zero(kOfTheCaller & ~saved_);
}

int32_t RegistersX64::offset_of(const Span& span) {
  const auto slot = static_cast<size_t>(-1 - span.place);
  return static_cast<int32_t>(span.is_vector ? offsetof(Pass, vectors) + slot * 32
                                             : offsetof(Pass, words) + slot * 8);
}

// Between memory and the register that it has for this instruction.
void RegistersX64::copy(const Moved& each, bool back) {
  Note note{code_x64(each.is_vector ? Inst::kIdVmovups : Inst::kIdMov)};
  note.count = 2;
  note.is_long = each.is_vector;
  note.size = 8;
  note.memory = back ? 0 : 1;
  note.reg[back ? 1 : 0] = each.reg;
  note.base = x86::Gp::kIdDi;
  note.offset = offset_of(spans_[each.span]);
  encode(note);
}

// The register for a value in memory, in this instruction.
uint32_t RegistersX64::moved(uint32_t reg, bool reads, bool writes) {
  if (!is_span(reg)) return reg;
  const uint32_t span = reg - NotesX64::kSpans;
  const bool is_vector = spans_[span].is_vector;
  uint32_t before = 0, m = 0;
  for (; m < moved_count_ && moved_[m].span != span; ++m)
    before += moved_[m].is_vector == is_vector;
  if (m == moved_count_) {
    const uint8_t own = is_vector ? kVectorRegisters[kVectorRegisters.size() - kForMemory + before]
                                  : kWordRegisters[before];
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

// Some operands are in memory.
void RegistersX64::find_memory_places(Note& note) {
  const How& how = encoding_x64(note.code);
  const auto in_memory = [&](uint32_t operand) {
    note.memory = static_cast<uint8_t>(operand);
    note.base = x86::Gp::kIdDi;
    note.offset = offset_of(spans_[note.reg[operand] - NotesX64::kSpans]);
    note.reg[operand] = kNone;
  };
  const bool is_copy = how.copies && note.memory == NotesX64::kNoMemory && !note.has_number;
  if (is_copy && !is_span(note.reg[1]) && (how.form != Form::Mov || note.size == 8))
    return in_memory(0);
  const bool is_constant = how.may_be_constant && note.reg[1] == note.reg[2];
  if (how.folds >= 0 && note.memory == NotesX64::kNoMemory && !is_constant) {
    if (how.commutes && !is_span(note.reg[2])) std::swap(note.reg[1], note.reg[2]);
    const auto operand = static_cast<uint32_t>(how.folds);
    const uint32_t reg = note.reg[operand];
    const auto same = std::count(std::begin(note.reg), std::end(note.reg), reg);
    if (is_span(reg) && same == 1) in_memory(operand);
  }
  note.base = moved(note.base, true, false);
  note.index = moved(note.index, true, false);
  for (uint32_t i = 0; i < 4; ++i)
    note.reg[i] = moved(note.reg[i], (how.reads >> i & 1) && !is_constant, how.writes >> i & 1);
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
  // One of 32 bits clears the others.
  if (encoding_x64(note.code).copies && note.memory == NotesX64::kNoMemory &&
      note.reg[0] == note.reg[1] && (encoding_x64(note.code).form != Form::Mov || note.size == 8))
    return;
  encode(note);
  for (uint32_t m = 0; m < moved_count_; ++m) {
    if (moved_[m].back) copy(moved_[m], true);
  }
}

inline void RegistersX64::put4(uint32_t bits) {
  std::memcpy(at_, &bits, 4);
  at_ += 4;
}

// The fields behind an opcode: a register, and another one or memory.
inline void RegistersX64::modify(const Note& note, uint32_t r, uint32_t m) {
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
  const bool is_short = note.offset == static_cast<int8_t>(note.offset);
  const uint32_t mode = note.offset == 0 && low != 5 ? 0 : is_short ? 0x40 : 0x80;
  put(mode | field | (has_index || low == 4 ? 4 : low));
  if (has_index)
    put(uint32_t{note.scale} << 6 | (note.index & 7) << 3 | low);
  else if (low == 4)
    put(0x24);
  if (mode == 0x40)
    put(static_cast<uint8_t>(note.offset));
  else if (mode == 0x80)
    put4(static_cast<uint32_t>(note.offset));
}

namespace {

// The upper bits of what the fields name.
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
  const How& how = encoding_x64(note.code);
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
      break;
    case Form::MrI:
      r = note.reg[1], m = note.reg[0];
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
      v = note.reg[2];
      break;
    case Form::None:
      r = m = 0;
      break;
    default:
      break;
  }
  const Upper upper = upper_of(note, r, m);
  const uint32_t rest = (~v & 15) << 3 | (note.is_long ? 4u : 0u) | how.prefix;
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

// To a block that is written already, or further on.
void RegistersX64::jump(const Note& note) {
  const uint32_t to = notes_->block_of_label_[static_cast<size_t>(note.number)];
  const bool always = encoding_x64(note.code).id == Inst::kIdJmp;
  if (to >= notes_->blocks_.size()) {
    fails_ = true;
    return;
  }
  if (always && to == block_ + 1) return;
  if (to <= block_) {
    const auto far = static_cast<int64_t>(block_at_[to]) - (at_ - bytes_.data()) - 2;
    if (far >= -128) {
      put(always ? 0xeb : 0x70u | encoding_x64(note.code).opcode);
      return put(static_cast<uint8_t>(far));
    }
  }
  if (always) {
    put(0xe9);
  } else {
    put(0x0f);
    put(0x80u | encoding_x64(note.code).opcode);
  }
  links_.push_back({static_cast<uint32_t>(at_ - bytes_.data()), to, 4});
  put4(0);
}

void RegistersX64::encode_word(const Note& note) {
  const How& how = encoding_x64(note.code);
  const uint32_t first = note.reg[0], second = note.reg[1];
  const bool is_wide = note.size == 8;
  switch (how.form) {
    case Form::Alu:
    case Form::Test: {
      if (!note.has_number) {
        // Of two registers the second may as well be in the first field.
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
      if (first == 0 && !is_short) {  // RAX has opcodes of its own
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

inline void RegistersX64::encode(const Note& note) {
  constexpr size_t kLongest = 64;  // what one note may become, and more
  if (static_cast<size_t>(end_ - at_) < kLongest) make_room();
  has_link_ = false;
  if (encoding_x64(note.code).form <= Form::Gather)
    encode_vex(note);
  else if (encoding_x64(note.code).form == Form::Jump)
    return jump(note);
  else if (encoding_x64(note.code).form == Form::Ret)
    return ret();
  else
    encode_word(note);
  if (has_link_) [[unlikely]]
    links_.back().behind = static_cast<uint32_t>(at_ - bytes_.data()) - links_.back().at;
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
    Note note{code_x64(back ? Inst::kIdPop : Inst::kIdPush)};
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
  constexpr size_t kEach = sizeof(NotesX64::Constant);
  const size_t code = static_cast<size_t>(at_ - bytes_.data());
  const size_t behind = (code + kEach - 1) / kEach * kEach;
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
