// SPDX-License-Identifier: Apache-2.0
// asmjit's allocator moves values between registers and memory as it goes, which takes most of the
// time of compiling. This one decides once for each value: where it lives is found block by block,
// and the values that are used most where they live shortest choose first. What gets no register is
// in memory all the time, and most instructions read it from there. All of it takes a few hundred
// instructions for one of the code: there is a warp that waits for it.
#if defined(__x86_64__)
#include "engine/compile/registers_x64.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "engine/compile/target.h"

namespace kiln::engine {
namespace {

namespace x86 = asmjit::x86;
using asmjit::Operand_;
namespace Inst = x86::Inst;

constexpr uint32_t kNowhere = ~uint32_t{0};
bool is_gather(uint32_t id) {
  return id == Inst::kIdVpgatherdd || id == Inst::kIdVpgatherqd || id == Inst::kIdVpgatherqq;
}

// Of one register with itself: the result does not depend on it.
bool may_be_constant(uint32_t id) {
  return id == Inst::kIdVpxor || id == Inst::kIdVxorps || id == Inst::kIdVpcmpeqd;
}

// By a number of bits that it names: from memory only with AVX-512.
bool moves_bits(uint32_t id) {
  return id == Inst::kIdVpslld || id == Inst::kIdVpsrld || id == Inst::kIdVpsrad ||
         id == Inst::kIdVpsllq || id == Inst::kIdVpsrlq;
}

// Does it do nothing but write its first operand?
bool is_pure(uint32_t id) {
  switch (id) {
    case Inst::kIdMov:
    case Inst::kIdLea:
    case Inst::kIdMovsxd:
    case Inst::kIdVmovaps:
    case Inst::kIdVmovups:
    case Inst::kIdVbroadcastss:
    case Inst::kIdVbroadcastsd:
    case Inst::kIdVpxor:
      return true;
    default:
      return false;
  }
}

bool is_jump(const NotesX64::Note& note, const Operand_* operands) {
  return note.count == 1 && operands[0].isLabel();
}

}  // namespace

RegistersX64::Accesses RegistersX64::look_up(const NotesX64::Note& note, const Operand* operands,
                                             uint64_t key) {
  Accesses out;
  out.key = key;
  asmjit::InstRWInfo all;
  asmjit::InstAPI::queryRWInfo(asmjit::Arch::kX64, asmjit::BaseInst(note.id), operands, note.count,
                               &all);
  bool has_memory = moves_bits(note.id), registers = true;
  for (uint32_t i = 0; i < note.count; ++i) {
    has_memory |= operands[i].isMem();
    registers &= operands[i].isReg();
    if (!operands[i].isReg()) continue;
    const asmjit::OpRWInfo& how = all.operand(i);
    const auto& reg = operands[i].as<asmjit::BaseReg>();
    const auto bit = static_cast<uint8_t>(1u << i);
    // Of one byte of a register the others stay.
    if (how.isRead() || (how.isWrite() && reg.size() < 4)) out.reads |= bit;
    if (how.isWrite()) out.writes |= bit;
    const bool whole = reg.isVec() ? reg.size() == 32 : reg.size() >= 4;
    if (i > 0 && how.isRm() && how.rmSize() == reg.size() && whole && !how.isWrite())
      out.folds |= bit;
  }
  // Of what one instruction reads, one operand may be in memory.
  if (has_memory) out.folds = 0;
  out.may_be_constant = may_be_constant(note.id);
  out.gathers = is_gather(note.id);
  out.copies = (note.id == Inst::kIdMov || note.id == Inst::kIdVmovaps) && registers;
  out.pure = is_pure(note.id) && operands[0].isReg();
  return out;
}

const RegistersX64::Accesses& RegistersX64::accesses_of(const NotesX64::Note& note,
                                                        const Operand* operands) {
  uint64_t key = uint64_t{note.id} + 1;
  // What kind of an operand it is, and of a register.
  for (uint32_t i = 0; i < note.count; ++i)
    key = key << 8 | static_cast<uint8_t>(operands[i].signature().bits());
  constexpr size_t kKnown = 512;
  if (known_.empty()) known_.resize(kKnown);
  Accesses& place = known_[(key * 0x9e3779b97f4a7c15u) >> 55];
  if (place.key != key) place = look_up(note, operands, key);
  return place;
}

void RegistersX64::note_uses(const NotesX64::Note& note) {
  const Operand* const operands = notes_->operands(note);
  const Accesses& how = accesses_of(note, operands);
  const uint32_t first = use_count_;
  if (first + note.count * 2 > uses_.size()) uses_.resize(uses_.size() * 2 + 1024);
  Use* use = &uses_[first];
  const bool constant = how.may_be_constant && operands[1] == operands[2];
  bool begins = false;
  const auto add = [&](uint32_t id, uint32_t operand, Part part, bool reads, bool writes,
                       bool folds) {
    if (!asmjit::Operand::isVirtId(id)) return;
    *use++ = {asmjit::Operand::virtIdToIndex(id),
              0,
              static_cast<uint8_t>(operand),
              part,
              reads,
              writes,
              writes && !reads,
              how.gathers,
              folds};
    begins |= writes && !reads;
  };
  for (uint32_t i = 0; i < note.count; ++i) {
    const Operand& op = operands[i];
    if (op.isReg()) {
      add(op.id(), i, Part::Register, (how.reads >> i & 1) && !constant, how.writes >> i & 1,
          how.folds >> i & 1);
    } else if (op.isMem()) {
      const auto& mem = op.as<x86::Mem>();
      if (mem.hasBaseReg()) add(mem.baseId(), i, Part::Base, true, false, false);
      if (mem.hasIndexReg()) add(mem.indexId(), i, Part::Index, true, false, false);
    }
  }
  for (Use* w = &uses_[first]; begins && w != use; ++w) {
    if (!w->begins) continue;
    for (const Use* r = &uses_[first]; r != use; ++r)
      w->begins &= !(r->reads && r->value == w->value);
  }
  const auto count = static_cast<uint32_t>(use - &uses_[first]);
  use_count_ += count;
  instructions_.push_back({first, static_cast<uint16_t>(count), how.copies, how.pure, false});
}

bool RegistersX64::collect() {
  const uint32_t count = notes_->size();
  instructions_.clear();
  use_count_ = 0;
  blocks_.clear();
  calls_.clear();
  leads_.assign(count + 1, 0);
  labels_.assign(notes_->label_count(), kNowhere);
  if (count == 0) return false;
  leads_[0] = 1;
  for (const NotesX64::Bound& bound : notes_->bound()) {
    labels_[bound.label] = bound.index;
    leads_[bound.index] = 1;
  }
  block_of_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    const NotesX64::Note& note = notes_->at(i);
    note_uses(note);
    if (note.id == Inst::kIdCall) calls_.push_back(i);
    if (is_jump(note, notes_->operands(note))) leads_[i + 1] = 1;
    if (leads_[i]) {
      if (i) blocks_.back().end = i;
      blocks_.push_back({i, count});
    }
    block_of_[i] = static_cast<uint32_t>(blocks_.size()) - 1;
  }
  link_blocks(count);
  return true;
}

void RegistersX64::link_blocks(uint32_t count) {
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    const NotesX64::Note& last = notes_->at(block.end - 1);
    const Operand* const operands = notes_->operands(last);
    const bool jumps = is_jump(last, operands);
    const bool ends = last.id == Inst::kIdRet || (jumps && last.id == Inst::kIdJmp);
    if (!ends && b + 1 < blocks_.size()) block.next[block.next_count++] = b + 1;
    if (!jumps) continue;
    const uint32_t to = labels_[operands[0].id()];
    if (to >= count) continue;  // nowhere
    block.next[block.next_count++] = block_of_[to];
    for (uint32_t inside = block_of_[to]; inside <= b; ++inside) ++blocks_[inside].depth;
  }
}

void RegistersX64::find_live() {
  words_ = (notes_->is_vector().size() + 63) / 64;
  live_.assign(blocks_.size() * 4 * words_, 0);
  const auto bit = [](uint32_t value) { return uint64_t{1} << value % 64; };
  for (size_t b = 0; b < blocks_.size(); ++b) {
    uint64_t *reads = live(b, 0), *writes = live(b, 1);
    for (uint32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
      const Instruction& at = instructions_[i];
      for (uint32_t u = at.first; u < at.first + at.count; ++u) {
        const uint32_t v = uses_[u].value;
        if (uses_[u].reads && !(writes[v / 64] & bit(v))) reads[v / 64] |= bit(v);
      }
      for (uint32_t u = at.first; u < at.first + at.count; ++u) {
        if (uses_[u].writes) writes[uses_[u].value / 64] |= bit(uses_[u].value);
      }
    }
    std::copy(reads, reads + words_, live(b, 2));
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t b = blocks_.size(); b-- > 0;) {
      const Block& block = blocks_[b];
      for (size_t w = 0; w < words_; ++w) {
        uint64_t out = 0;
        for (uint32_t n = 0; n < block.next_count; ++n) out |= live(block.next[n], 2)[w];
        live(b, 3)[w] = out;
        const uint64_t in = live(b, 0)[w] | (out & ~live(b, 1)[w]);
        changed |= in != live(b, 2)[w];
        live(b, 2)[w] = in;
      }
    }
  }
}

inline uint32_t RegistersX64::new_span(uint32_t value) {
  const auto index = static_cast<uint32_t>(spans_.size());
  spans_.push_back({value, index, index, kNowhere});
  return index;
}

inline void RegistersX64::open(uint32_t value, uint32_t span, uint32_t end) {
  current_[value] = span;
  end_[value] = end;
  opened_.push_back(value);
  const bool is_vector = is_vector_[value];
  most_alive_[is_vector] = std::max(most_alive_[is_vector], ++alive_[is_vector]);
}

// One that ends where the last one of the span begins makes that one longer.
inline void RegistersX64::add_range(Span& span, uint32_t begin, uint32_t end) {
  if (span.ranges != kNowhere && ranges_[span.ranges].begin == end) {
    ranges_[span.ranges].begin = begin;
    return;
  }
  ranges_.push_back({begin, end, span.ranges});
  span.ranges = static_cast<uint32_t>(ranges_.size()) - 1;
}

// From here up to where it was opened.
inline void RegistersX64::close(uint32_t value, uint32_t span, uint32_t begin) {
  add_range(spans_[span], begin, end_[value]);
  current_[value] = kNowhere;
  --alive_[is_vector_[value]];
}

// Going back: what it writes begins here, what it reads has to be there.
inline void RegistersX64::find_spans_of(Instruction& at, uint32_t index, float weight) {
  Use* const first = uses_.data() + at.first;
  Use* const last = first + at.count;
  if (at.pure && at.count != 0 && first->writes && !first->reads &&
      current_[first->value] == kNowhere) {
    at.unread = true;
    return;
  }
  bool begins = false;
  for (Use* use = first; use != last; ++use) {
    if (!use->writes) continue;
    if (current_[use->value] == kNowhere) open(use->value, new_span(use->value), index * 2 + 2);
    use->span = current_[use->value];
    spans_[use->span].weight += weight;
    begins |= use->begins;
  }
  for (Use* use = first; begins && use != last; ++use) {
    // Else it goes on in its place.
    if (use->begins && current_[use->value] != kNowhere)
      close(use->value, use->span, index * 2 + 1);
  }
  for (Use* use = first; use != last; ++use) {
    if (!use->reads) {
      // What neither reads nor writes: a register with itself.
      if (!use->writes) use->span = first->span;
      continue;
    }
    if (current_[use->value] == kNowhere)
      open(use->value, new_span(use->value), index * 2 + (use->late ? 2 : 1));
    use->span = current_[use->value];
    spans_[use->span].weight += weight;
  }
}

void RegistersX64::find_spans_of(size_t b) {
  const Block& block = blocks_[b];
  constexpr float kWeights[] = {1, 10, 100, 1000, 10000};
  opened_.clear();
  alive_ = {};
  const auto for_each = [](size_t word, uint64_t bits, const auto& body) {
    for (; bits; bits &= bits - 1)
      body(static_cast<uint32_t>(word * 64 + static_cast<size_t>(std::countr_zero(bits))));
  };
  const uint64_t *reads = live(b, 0), *writes = live(b, 1), *behind = live(b, 3);
  for (size_t w = 0; w < words_; ++w) {
    const uint64_t touched = behind[w] & (reads[w] | writes[w]);
    for_each(w, touched, [&](uint32_t v) { open(v, v, block.end * 2); });
    // The others live on before it.
    for_each(w, behind[w] & ~touched, [&](uint32_t v) {
      add_range(spans_[v], block.begin * 2, block.end * 2);
      const bool is_vector = is_vector_[v];
      most_alive_[is_vector] = std::max(most_alive_[is_vector], ++alive_[is_vector]);
    });
  }
  for (uint32_t i = block.end; i-- > block.begin;)
    find_spans_of(instructions_[i], i, kWeights[std::min(block.depth, 4u)]);
  for (uint32_t v : opened_) {
    const uint32_t span = current_[v];
    if (span == kNowhere) continue;
    close(v, v, block.begin * 2);
    if (span == v) continue;
    spans_[span].joined = v;  // it comes from another block
    spans_[v].weight += spans_[span].weight;
  }
}

void RegistersX64::find_spans() {
  const auto count = static_cast<uint32_t>(notes_->is_vector().size());
  spans_.clear();
  ranges_.clear();
  most_alive_ = {};
  for (uint32_t v = 0; v < count; ++v) new_span(v);
  current_.assign(count, kNowhere);
  end_.assign(count, 0);
  for (size_t b = blocks_.size(); b-- > 0;) find_spans_of(b);
  for (const Instruction& at : instructions_) {
    for (uint32_t u = at.first; u < at.first + at.count; ++u)
      uses_[u].span = spans_[uses_[u].span].joined;
    if (at.count != 2 || !at.copies || at.unread) continue;
    const uint32_t a = uses_[at.first].span, b = uses_[at.first + 1].span;
    spans_[a].like = b;
    spans_[b].like = a;
  }
}

// As words of a set of places in time. Returns how many there are.
uint32_t RegistersX64::cut(Span& span) {
  uint32_t length = 0;
  span.first_piece = static_cast<uint32_t>(pieces_.size());
  for (uint32_t r = span.ranges; r != kNowhere; r = ranges_[r].next) {
    const uint32_t begin = ranges_[r].begin, last = ranges_[r].end - 1;
    length += last + 1 - begin;
    uint64_t mask = ~uint64_t{0} << begin % 64;
    for (uint32_t w = begin / 64; w < last / 64; ++w) {
      pieces_.push_back({w, mask});
      mask = ~uint64_t{0};
    }
    pieces_.push_back({last / 64, mask & ~uint64_t{0} >> (63 - last % 64)});
  }
  span.piece_count = static_cast<uint32_t>(pieces_.size()) - span.first_piece;
  return length;
}

// What a function that is called may change is taken while that happens (X64::call): a value that
// is needed behind it is in a register of the caller, or in memory.
void RegistersX64::take_for_calls(bool vectors, size_t words) {
  for (uint32_t call : calls_) {
    for (uint32_t at = call * 2 - 6; at < call * 2 + 2; ++at) {
      for (uint32_t reg = 0; reg < 16; ++reg) {
        if (vectors || !(kOfTheCaller >> reg & 1))
          used_[reg * words + at / 64] |= uint64_t{1} << at % 64;
      }
    }
  }
}

inline bool RegistersX64::is_free(const Span& span, const uint64_t* used) const {
  const Piece* piece = &pieces_[span.first_piece];
  for (const Piece* const last = piece + span.piece_count; piece != last; ++piece) {
    if (used[piece->word] & piece->mask) return false;
  }
  return true;
}

// False: some get none.
bool RegistersX64::place_all(const std::vector<uint32_t>& registers, bool vectors) {
  const size_t words = instructions_.size() * 2 / 64 + 1;
  used_.assign(16 * words, 0);
  take_for_calls(vectors, words);
  bool all = true;
  for (uint32_t index : order_) {
    Span& span = spans_[index];
    span.place = -1;
    // A register that it is copied from or to saves the copy.
    const int like = span.like == index ? -1 : spans_[span.like].place;
    auto found = like < 0
                     ? registers.end()
                     : std::find(registers.begin(), registers.end(), static_cast<uint32_t>(like));
    if (found == registers.end() || !is_free(span, &used_[*found * words])) {
      found = registers.begin();
      while (found != registers.end() && !is_free(span, &used_[*found * words])) ++found;
    }
    if (found == registers.end()) {
      all = false;
      continue;
    }
    span.place = static_cast<int>(*found);
    uint64_t* const used = &used_[*found * words];
    for (uint32_t p = 0; p < span.piece_count; ++p) {
      const Piece& piece = pieces_[span.first_piece + p];
      used[piece.word] |= piece.mask;
    }
  }
  return all;
}

bool RegistersX64::find_memory() {
  const size_t words = instructions_.size() * 2 / 64 + 1;
  used_.clear();
  for (uint32_t index : order_) {
    Span& span = spans_[index];
    if (span.place >= 0) continue;
    size_t slot = 0;
    while (slot * words < used_.size() && !is_free(span, &used_[slot * words])) ++slot;
    if (slot * words == used_.size()) used_.resize(used_.size() + words, 0);
    for (uint32_t p = 0; p < span.piece_count; ++p) {
      const Piece& piece = pieces_[span.first_piece + p];
      used_[slot * words + piece.word] |= piece.mask;
    }
    span.place = -1 - static_cast<int>(slot);
  }
  return used_.size() <= kSpilled * words;
}

// What is used most where it lives shortest comes first: by the exponent of that number, from 2^-24
// to 2^16, and three more bits of it, of which there are so few that each has a place in a list.
void RegistersX64::find_order(bool vectors) {
  constexpr uint32_t kKept = 20, kLeast = (127 - 24) << 3, kKeys = 40 << 3;
  std::array<uint32_t, kKeys + 1> counts{};
  keys_.clear();
  pieces_.clear();
  for (uint32_t i = 0; i < spans_.size(); ++i) {
    Span& span = spans_[i];
    if (span.ranges == kNowhere || is_vector_[span.value] != vectors) continue;
    const float density = span.weight / static_cast<float>(cut(span));
    const uint32_t above = std::max(std::bit_cast<uint32_t>(density) >> kKept, kLeast) - kLeast;
    const uint32_t key = kKeys - 1 - std::min(above, kKeys - 1);
    keys_.push_back({key, i});
    ++counts[key + 1];
  }
  for (uint32_t k = 0; k < kKeys; ++k) counts[k + 1] += counts[k];
  order_.resize(keys_.size());
  for (const auto& [key, index] : keys_) order_[counts[key]++] = index;
}

bool RegistersX64::assign(bool vectors) {
  find_order(vectors);
  std::vector<uint32_t> registers = vectors ? kVectors : kWords;
  if (most_alive_[vectors] <= registers.size() && place_all(registers, vectors)) return true;
  // Some are for what comes from memory, none of them a caller's.
  if (vectors)
    registers.resize(registers.size() - kForMemory);
  else
    registers.erase(registers.begin(), registers.begin() + kForMemory);
  place_all(registers, vectors);
  return find_memory();
}

bool RegistersX64::run(NotesX64& notes, asmjit::x86::Assembler& to) {
  notes_ = &notes;
  is_vector_ = notes.is_vector().data();
  if (!collect()) return false;
  find_live();
  find_spans();
  if (!assign(false) || !assign(true)) return false;
  find_saved();
  return write(to);
}

}  // namespace kiln::engine
#endif
