// SPDX-License-Identifier: Apache-2.0
// How are instructions of aarch64 recorded? This makes the whole word except the registers.
#if defined(__aarch64__)
#include <bit>

#include "engine/compile/a64/registers.h"

namespace kiln::engine {
namespace {

using asmjit::Imm;
using asmjit::a64::Gp;
using asmjit::a64::Inst;
using asmjit::a64::Mem;
using asmjit::a64::Vec;
using Form = EncodingA64::Form;
using Field = NotesA64::Field;

const Vec& vector_at(const asmjit::Operand_* operand) { return operand->as<Vec>(); }
const Gp& word_at(const asmjit::Operand_* operand) { return operand->as<Gp>(); }
uint64_t number_at(const asmjit::Operand_* operand) {
  return static_cast<uint64_t>(operand->as<Imm>().value());
}
bool is_vector(const asmjit::Operand_* operand) { return operand->as<asmjit::BaseReg>().isVec(); }

uint32_t q_of(const Vec& v) { return v.isVecQ() ? 1u << 30 : 0; }
// 0 for bytes to 3 for 64 bits; larger if the register has no elements.
uint32_t size_of(const Vec& v) { return v.elementType() - 1; }
uint32_t wide_bit(const Gp& word) { return word.isGpX() ? 1u << 31 : 0; }
// The field with the number and the size of an element.
uint32_t element_of(const Vec& v) { return (v.elementIndex() * 2 + 1) << size_of(v); }
// asmjit counts conditions from 2; 0 is `always`.
uint32_t condition_of(uint64_t code) { return static_cast<uint32_t>(code - 2) & 15; }

// The operand goes into the field, and is read.
void reads(NotesA64::Note& note, Field field, const asmjit::Operand_* operand) {
  note.reg[field] = operand->id();
  note.reads = static_cast<uint8_t>(note.reads | 1u << field);
}
void writes(NotesA64::Note& note, const asmjit::Operand_* operand) {
  note.reg[Field::kTo] = operand->id();
}

// The fields of an immediate of 8 bits, as MOVI, MVNI and FMOV have it.
uint32_t byte_fields(uint64_t byte) {
  return static_cast<uint32_t>((byte & 0xe0) << 11 | (byte & 0x1f) << 5);
}

// The fields of MOVI for elements of 16 or 32 bits with one byte, and zeros elsewhere or ones
// below it. 0 if the element is different, or zero.
uint32_t one_byte(uint64_t element, uint32_t size) {
  for (uint32_t at = 0; at < 8u << size; at += 8) {
    if (element >> at << at == element && element >> at < 256)
      return (size == 1 ? 0x8000u : 0u) | at / 8 << 13 | byte_fields(element >> at);
  }
  for (uint32_t at = 8; size == 2 && at < 24; at += 8) {
    const uint64_t ones = (uint64_t{1} << at) - 1;
    if ((element & ones) == ones && element >> at < 256)
      return (at == 8 ? 0xc000u : 0xd000u) | byte_fields(element >> at);
  }
  return 0;
}

// One bit per byte, if each byte is all ones or zero; otherwise 256.
uint32_t whole_bytes(uint64_t bits) {
  uint32_t all = 0;
  for (uint32_t at = 0; at < 64; at += 8) {
    const uint64_t byte = bits >> at & 0xff;
    if (byte != 0 && byte != 0xff) return 256;
    all |= byte ? 1u << at / 8 : 0u;
  }
  return all;
}

// The immediate of FMOV for this f64; 256 if it has none.
uint32_t real_byte(uint64_t bits) {
  const uint64_t exponent = bits >> 54 & 0x1ff;
  if ((bits & 0xffffffffffff) || (exponent != 0x100 && exponent != 0xff)) return 256;
  return static_cast<uint32_t>((bits >> 56 & 0x80) | (exponent == 0xff ? 0x40 : 0) |
                               (bits >> 48 & 0x3f));
}

}  // namespace

uint32_t bits_field_a64(uint64_t number, bool wide) {
  if (!wide) number = (number & 0xffffffff) * 0x100000001;
  if (number == 0 || ~number == 0) return kNotBits;
  uint32_t size = 64;
  while (size > 2 && number == std::rotr(number, static_cast<int>(size / 2))) size /= 2;
  const uint64_t mask = ~uint64_t{0} >> (64 - size), element = number & mask;
  // The ones must be consecutive. If they wrap around the end, the zeros are.
  const bool around = (element & 1) && (element >> (size - 1) & 1);
  const uint64_t row = around ? ~element & mask : element;
  const auto first = static_cast<uint32_t>(std::countr_zero(row));
  const auto length = static_cast<uint32_t>(std::popcount(row));
  if (row >> first != ~uint64_t{0} >> (64 - length)) return kNotBits;
  const uint32_t begin = around ? first + length : first, ones = around ? size - length : length;
  return (size == 64 ? 1u << 22 : 0u) | (size - begin) % size << 16 |
         ((0u - size * 2) & 0x3f) << 10 | (ones - 1) << 10;
}

void NotesA64::clear() {
  clear_spans();
  notes_.clear();
  fails_ = false;
  constants_.clear();
  next_constant_.clear();
  constant_by_hash_.fill(0);
}

[[gnu::always_inline]] inline void NotesA64::note_uses(Note& note, bool copies) {
  begin_note(notes_.size());
  const uint32_t at = notes_.size() * 2, until = at + 1, to = note.reg[kTo];
  bool begins = (note.reads & 1) == 0;
  for (uint32_t i = 1; i < 4; ++i) {
    if (!(note.reads >> i & 1)) continue;
    begins &= note.reg[i] != to;
    note.reg[i] = read(note.reg[i], until);
  }
  if (note.reads & 1) note.reg[kTo] = read(to, until);
  if (note.writes) {
    note.reg[kTo] = write(to, at, begins, true);
    if (copies && note.kind == Kind::Plain) note_copy(note.reg[kTo], note.reg[kSecond]);
  }
  if (note.kind < Kind::Jump) [[likely]]
    return;
  if (note.kind == Kind::Return) end_block(kNone, false);
  if (note.kind == Kind::Jump) {
    const auto label = static_cast<uint32_t>(note.number());
    const bool always = note.word == 0x14000000;
    if (always || !is_bare(label)) end_block(label, !always);
  }
  // The call and the two instructions before it (A64::call) overwrite registers.
  if (note.kind == Kind::Call) calls_.push_back({at - 4, at + 2});
}

void NotesA64::note(uint32_t id, Operands operands, size_t count) {
  const How& how = encoding_a64(id & static_cast<uint32_t>(asmjit::InstIdParts::kRealId));
  const bool with_bits = how.form == Form::Bits || how.form == Form::Test;
  if (with_bits && operands[count - 1]->isImm() && operands[count - 2]->isReg()) {
    const Gp& first = word_at(operands[0]);
    const uint64_t number = number_at(operands[count - 1]);
    const bool is_shift = count == (how.form == Form::Test ? 3 : 4);
    if (!is_shift && (how.other == 0 || bits_field_a64(number, first.isGpX()) == kNotBits)) {
      const Gp word = new_word();
      mov(word, number);
      const asmjit::Operand_* const all[] = {operands[0], count == 3 ? operands[1] : &word, &word};
      return note(id, all, count);
    }
  }
  Note& note = notes_.next();
  note = {.word = how.word};
  bool known = false;
  if (how.form <= Form::RealNarrower)
    known = how.form != Form::Unknown && note_vectors(note, how, operands, count);
  else if (how.form <= Form::ShiftFull)
    known = note_shift(note, how, operands, count);
  else if (how.form <= Form::Move)
    known = note_elements(note, how, operands);
  else if (how.form <= Form::Bytes)
    known = how.form == Form::RealMove ? note_real(note, operands)
                                       : note_bytes(note, how, operands, count);
  else if (how.form <= Form::MemoryVector)
    known = note_memory(note, how, operands);
  else if (how.form <= Form::MoveWord)
    known = note_sum(note, how, operands, count);
  else if (how.form <= Form::WriteStatus)
    known = note_words(note, how, operands, count);
  else
    known = note_jump(note, how, id, operands);
  fails_ |= !known;
  note_uses(note, how.form == Form::Move || how.form == Form::MoveWord);
  notes_.add();
}

bool NotesA64::note_vectors(Note& note, const How& how, Operands operands, size_t count) {
  const bool with_number = count == 3 && operands[2]->isImm();
  const bool first_counts = how.form == Form::Narrower || how.form == Form::RealNarrower;
  const Vec& sized = vector_at(operands[first_counts ? 0 : with_number ? 1 : count - 1]);
  const uint32_t size = size_of(sized);
  // Indexed elements and scalars in a vector register would be other instructions.
  if (size > 3 || sized.hasElementIndex()) return false;
  if (with_number) {
    if (how.other == 0 || number_at(operands[2]) != 0) return false;
    note.word = how.other;
  }
  note.word |= q_of(sized);
  switch (how.form) {
    case Form::ThreeReal:
    case Form::TwoReal:
      if (size < 2 || !is_vector(operands[0])) return false;
      note.word |= (size & 1) << 22;
      break;
    case Form::RealWider:
    case Form::RealNarrower:
      if (size != 1 && size != 2) return false;
      note.word |= (size - 1) << 22;
      break;
    case Form::ThreeBits:
    case Form::TwoBits:
      break;
    default:
      note.word |= size << 22;
  }
  writes(note, operands[0]);
  if (how.reads_to) note.reads = 1;
  reads(note, kFirst, operands[1]);
  if (count == 3 && !with_number) reads(note, kSecond, operands[2]);
  return count == 2 || count == 3;
}

bool NotesA64::note_shift(Note& note, const How& how, Operands operands, size_t count) {
  const Vec& sized = vector_at(operands[how.form == Form::ShiftNarrow ? 0 : 1]);
  const uint32_t size = size_of(sized), bits = 8u << (size & 3);
  const uint64_t by = count == 3 ? number_at(operands[2]) : 0;
  if (size > 3) return false;
  note.word |= q_of(sized);
  if (how.form == Form::ShiftFull) {
    if (by != bits) return false;
    note.word |= size << 22;
  } else {
    const bool left = how.form == Form::ShiftLeft;
    if (left ? by >= bits : by == 0 || by > bits) return false;
    note.word |= static_cast<uint32_t>(left ? bits + by : 2 * bits - by) << 16;
  }
  writes(note, operands[0]);
  if (how.reads_to) note.reads = 1;
  reads(note, kFirst, operands[1]);
  return true;
}

bool NotesA64::note_elements(Note& note, const How& how, Operands operands) {
  writes(note, operands[0]);
  switch (how.form) {
    case Form::Extract:
      note.word |= q_of(vector_at(operands[0])) | (number_at(operands[3]) & 15) << 11;
      reads(note, kFirst, operands[1]);
      reads(note, kSecond, operands[2]);
      return true;
    case Form::Duplicate: {
      const bool is_element = is_vector(operands[1]);
      const Vec& to = vector_at(operands[0]);
      if (is_element) note.word = how.other;
      note.word |= q_of(to);
      note.word |= (is_element ? element_of(vector_at(operands[1])) : 1u << size_of(to)) << 16;
      reads(note, kFirst, operands[1]);
      return to.hasElementType();
    }
    case Form::ToWord: {
      const Vec& from = vector_at(operands[1]);
      if (!from.hasElementIndex()) return false;
      note.word |= element_of(from) << 16 | wide_bit(word_at(operands[0])) >> 1;
      reads(note, kFirst, operands[1]);
      return true;
    }
    case Form::Insert: {
      const Vec& to = vector_at(operands[0]);
      if (!to.hasElementIndex()) return false;
      if (is_vector(operands[1])) {
        const Vec& from = vector_at(operands[1]);
        note.word = how.other | from.elementIndex() << size_of(from) << 11;
      }
      note.word |= element_of(to) << 16;
      note.reads = 1;
      reads(note, kFirst, operands[1]);
      return true;
    }
    case Form::Move: {
      const Vec& from = vector_at(operands[1]);
      if (!is_vector(operands[0]) || !is_vector(operands[1]) || from.hasElementIndex())
        return false;
      note.word |= q_of(from);
      note.copies = from.isVecQ();
      reads(note, kFirst, operands[1]);
      reads(note, kSecond, operands[1]);
      return true;
    }
    default:
      return false;
  }
}

// FMOV: a number, or between a word and a vector.
bool NotesA64::note_real(Note& note, Operands operands) {
  writes(note, operands[0]);
  if (!operands[1]->isImm()) {
    const bool to_word = !is_vector(operands[0]), from_word = !is_vector(operands[1]);
    if (to_word == from_word) return false;
    const Vec& v = vector_at(operands[to_word ? 1 : 0]);
    if (!v.isVecS() && !v.isVecD()) return false;
    note.word = (v.isVecD() ? 0x9e660000u : 0x1e260000u) | (from_word ? 1u << 16 : 0);
    reads(note, kFirst, operands[1]);
    return true;
  }
  const Vec& to = vector_at(operands[0]);
  const uint32_t byte =
      real_byte(std::bit_cast<uint64_t>(operands[1]->as<Imm>().valueAs<double>()));
  if (size_of(to) < 2 || size_of(to) > 3 || byte > 255) return false;
  note.word |= q_of(to) | (size_of(to) - 2) << 29 | byte_fields(byte);
  return true;
}

// MOVI and MVNI.
bool NotesA64::note_bytes(Note& note, const How& how, Operands operands, size_t count) {
  writes(note, operands[0]);
  const Vec& to = vector_at(operands[0]);
  const bool inverted = how.id == Inst::kIdMvni_v;
  const uint32_t size = size_of(to);
  uint64_t number = number_at(operands[1]);
  if (count == 3) {
    const auto& by = operands[2]->as<Imm>();
    const bool ones = by.predicate() == static_cast<uint32_t>(asmjit::arm::ShiftOp::kMSL);
    number = number << by.value() | (ones ? (uint64_t{1} << by.value()) - 1 : 0);
  }
  if (size > 3) return false;
  note.word |= q_of(to);
  if (size == 1 || size == 2) {
    const uint32_t fields = one_byte(number, size);
    note.word |= fields;
    return fields != 0 || number == 0;
  }
  const uint64_t byte = size == 0 ? number : whole_bytes(number);
  note.word |= (size == 3 ? 0x2000e000u : 0xe000u) | byte_fields(byte);
  return byte < 256 && !inverted;
}

bool NotesA64::note_memory(Note& note, const How& how, Operands operands) {
  const Mem& mem = operands[1]->as<Mem>();
  writes(note, operands[0]);
  if (how.stores) {
    note.writes = false;
    note.reads = 1;
  }
  note.reg[kFirst] = mem.baseId();
  note.reads |= 1u << kFirst;
  if (!mem.hasBaseReg() || !mem.isFixedOffset()) return false;
  const int64_t offset = mem.offset();
  if (how.form == Form::LoadLane || how.form == Form::LoadAll) {
    const Vec& v = vector_at(operands[0]);
    const uint32_t size = size_of(v);
    if (size > 3 || offset != 0 || mem.hasIndexReg()) return false;
    if (!v.hasElementIndex()) {
      if (how.form == Form::LoadLane) note.word = how.other;
      note.word |= q_of(v) | size << 10;
      return true;
    }
    // The index is in Q and in the bits from 12 down.
    constexpr uint32_t kSizes[] = {0, 0x4000, 0x8000, 0x8400};
    const uint32_t index = v.elementIndex() << size;
    note.word |= kSizes[size] | (index >> 3) << 30 | (index & 7) << 10;
    if (!how.stores) note.reads |= 1;
    return how.form == Form::LoadLane;
  }
  uint32_t power = how.other;
  if (how.form == Form::MemoryVector) {
    power = static_cast<uint32_t>(std::countr_zero(vector_at(operands[0]).size()));
    note.word |= (power & 3) << 30 | (power == 4 ? 1u << 23 : 0);
  } else if (word_at(operands[0]).isGpX()) {
    if (how.id == Inst::kIdLdr || how.id == Inst::kIdStr) note.word |= 1u << 30, power = 3;
  } else if (note.word & 1u << 23) {
    note.word |= 1u << 22;
  }
  if (mem.hasIndexReg()) {
    note.reg[kSecond] = mem.indexId();
    note.reads |= 1u << kSecond;
    note.word |= 0x38206800 | (mem.shift() ? 1u << 12 : 0);
    return mem.predicate() == 0 && (mem.shift() == 0 || mem.shift() == power) && offset == 0;
  }
  if (offset >= 0 && offset >> power < 4096 && (offset >> power << power) == offset) {
    note.word |= 0x39000000 | static_cast<uint32_t>(offset >> power) << 10;
    return true;
  }
  note.word |= 0x38000000 | (static_cast<uint32_t>(offset) & 511) << 12;
  return offset >= -256 && offset < 256;
}

// With a register that may be shifted, or with a number.
bool NotesA64::note_sum(Note& note, const How& how, Operands operands, size_t count) {
  const bool has_result = how.form != Form::Compare && how.form != Form::Test;
  const uint32_t wide = wide_bit(word_at(operands[0]));
  size_t next = 0;
  note.writes = has_result;
  if (has_result) writes(note, operands[next++]);
  if (how.form == Form::MoveWord && operands[next]->isImm()) {
    note.kind = Kind::Number;
    const uint64_t number = number_at(operands[next]);
    note.set_number(wide ? number : number & 0xffffffff);
    return true;
  }
  note.word |= wide;
  if (how.form == Form::MoveWord) note.copies = wide != 0;
  if (how.form != Form::Flip && how.form != Form::MoveWord) reads(note, kFirst, operands[next++]);
  if (operands[next]->isReg()) {
    reads(note, kSecond, operands[next++]);
    if (next == count) return true;
    const auto& by = operands[next]->as<Imm>();
    note.word |= by.predicate() << 22 | static_cast<uint32_t>(by.value() & 63) << 10;
    return by.predicate() < 4;
  }
  uint64_t number = number_at(operands[next++]);
  note.word = how.other | wide;
  if (how.form == Form::Bits || how.form == Form::Test) {
    note.word |= bits_field_a64(number, wide != 0);  // note() has checked that it fits
    return how.other != 0;
  }
  if (next < count) number <<= number_at(operands[next]);
  const bool is_high = number >= 4096;
  note.word |= (is_high ? 1u << 22 : 0) | static_cast<uint32_t>(is_high ? number >> 12 : number)
                                              << 10;
  return how.other != 0 && number < 1u << 24 && (!is_high || number % 4096 == 0);
}

bool NotesA64::note_words(Note& note, const How& how, Operands operands, size_t count) {
  const asmjit::Operand_* const first = operands[how.form == Form::WriteStatus ? 1 : 0];
  const bool is_wide = word_at(first).isGpX();
  const uint32_t wide = wide_bit(word_at(first)), bits = is_wide ? 64 : 32;
  // Moves bits `from` to `last` down to bit 0. If `last` is less, moves the low bits up instead.
  const auto field = [&](uint32_t word, uint64_t from, uint64_t last) {
    note.word = word | wide | (is_wide ? 1u << 22 : 0) |
                static_cast<uint32_t>((from & (bits - 1)) << 16 | (last & (bits - 1)) << 10);
  };
  writes(note, first);
  note.word |= wide;
  if (how.form == Form::Status || how.form == Form::WriteStatus) {
    const bool is_read = how.form == Form::Status;
    note.word = how.word | static_cast<uint32_t>(number_at(operands[is_read ? 1 : 0])) << 5;
    note.writes = is_read;
    note.reads = is_read ? 0 : 1;
    return is_wide;
  }
  if (how.form == Form::Set) {
    note.word |= (condition_of(number_at(operands[1])) ^ 1) << 12;
    return true;
  }
  reads(note, kFirst, operands[1]);
  switch (how.form) {
    case Form::WordTwo:
      return true;
    case Form::Multiply:
      reads(note, kThird, operands[3]);
      [[fallthrough]];
    case Form::WordThree:
      reads(note, kSecond, operands[2]);
      return true;
    case Form::Choose:
      note.word |= condition_of(number_at(operands[3])) << 12;
      reads(note, kSecond, operands[2]);
      return true;
    case Form::Shift: {
      if (operands[2]->isReg()) {
        reads(note, kSecond, operands[2]);
        return true;
      }
      const uint64_t by = number_at(operands[2]);
      how.id == Inst::kIdLsl ? field(how.other, 0 - by, bits - 1 - by)
                             : field(how.other, by, bits - 1);
      return by < bits;
    }
    case Form::Field: {
      const uint64_t from = number_at(operands[2]), length = number_at(operands[3]);
      field(how.word, from, from + length - 1);
      return count == 4 && length > 0 && from + length <= bits;
    }
    case Form::Extend:
      field(how.word, 0, how.other - 1);
      return true;
    default:
      return false;
  }
}

bool NotesA64::note_jump(Note& note, const How& how, uint32_t id, Operands operands) {
  note.writes = false;
  note.kind = how.form == Form::Call ? Kind::Call : Kind::Jump;
  if (how.form == Form::Return) note.kind = Kind::Return;
  if (how.form == Form::Call || how.form == Form::Return) {
    reads(note, kFirst, operands[0]);
    return true;
  }
  const asmjit::Operand_* label = operands[0];
  if (how.form == Form::Branch) {
    const auto when = static_cast<uint32_t>(asmjit::BaseInst::extractARMCondCode(id));
    if (when != static_cast<uint32_t>(asmjit::a64::CondCode::kAL))
      note.word = how.other | condition_of(when);
  } else {
    reads(note, kTo, operands[0]);
    note.word |= wide_bit(word_at(operands[0]));
    label = operands[1];
  }
  if (how.form == Form::BranchBit) {
    const uint64_t bit = number_at(operands[1]);
    note.word = how.word | static_cast<uint32_t>((bit >> 5) << 31 | (bit & 31) << 19);
    label = operands[2];
  }
  note.set_number(label->id());
  return label->isLabel();
}

void NotesA64::add_constant(const Vec& to, const Constant& bits) {
  uint32_t& first = constant_by_hash_[((bits[0] ^ bits[1] * 3) * 0x9e3779b97f4a7c15u) >> 58];
  uint32_t found = first;
  while (found && constants_[found - 1] != bits) found = next_constant_[found - 1];
  if (!found) {
    constants_.push_back(bits);
    next_constant_.push_back(first);
    first = found = static_cast<uint32_t>(constants_.size());
  }
  Note& note = notes_.next();
  note = {.word = 0x9c000000, .kind = Kind::Constant};
  note.set_number((found - 1) * sizeof(Constant));
  note.reg[kTo] = to.id();
  note_uses(note, false);
  notes_.add();
}

void NotesA64::constant(const Vec& to, const Constant& bits) {
  const uint64_t all = bits[0];
  const auto word = static_cast<uint32_t>(all);
  if (bits[1] != all) return add_constant(to, bits);
  if (whole_bytes(all) < 256) return static_cast<void>(movi(to.d2(), all));
  if (std::rotr(all, 8) == all) return static_cast<void>(movi(to.b16(), all & 0xff));
  if (std::rotr(all, 16) == all) {
    if (one_byte(all & 0xffff, 1)) return static_cast<void>(movi(to.h8(), all & 0xffff));
    if (one_byte(~all & 0xffff, 1)) return static_cast<void>(mvni(to.h8(), ~all & 0xffff));
  }
  if (std::rotr(all, 32) == all) {
    if (one_byte(word, 2)) return static_cast<void>(movi(to.s4(), uint64_t{word}));
    if (one_byte(~word, 2)) return static_cast<void>(mvni(to.s4(), uint64_t{~word}));
    const auto real = static_cast<double>(std::bit_cast<float>(word));
    if (real_byte(std::bit_cast<uint64_t>(real)) < 256)
      return static_cast<void>(fmov(to.s4(), real));
  }
  if (real_byte(all) < 256) return static_cast<void>(fmov(to.d2(), std::bit_cast<double>(all)));
  add_constant(to, bits);
}

}  // namespace kiln::engine
#endif
