// SPDX-License-Identifier: Apache-2.0
// asmjit's allocator moves values between registers and memory as it goes, which takes most of the
// time of compiling. This one decides once for each value: where it lives is found block by block,
// and the values that are used most where they live shortest choose first. What gets no register is
// in memory all the time, and most instructions read it from there.
#if defined(__x86_64__)
#include "engine/compile/registers_x64.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "engine/compile/target.h"

namespace kiln::engine {
namespace {

namespace x86 = asmjit::x86;
using asmjit::Operand;
using asmjit::Operand_;
namespace Inst = x86::Inst;

constexpr uint32_t kNowhere = ~uint32_t{0};
// RSP and RDI are taken. Those that a caller wants back come last.
const std::vector<uint32_t> kWords = {0, 1, 2, 6, 8, 9, 10, 11, 3, 5, 12, 13, 14, 15};
const std::vector<uint32_t> kVectors = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
constexpr uint32_t kOfTheCaller = 1u << 3 | 1u << 5 | 0xf000u;
constexpr uint32_t kForMemory = 3;  // registers for what comes from memory, where there is any

bool is_gather(uint32_t id) {
  return id == Inst::kIdVpgatherdd || id == Inst::kIdVpgatherqd || id == Inst::kIdVpgatherqq;
}

// Of one register with itself: the result does not depend on it.
bool is_constant(const asmjit::InstNode& node) {
  const uint32_t id = node.id();
  if (id != Inst::kIdVpxor && id != Inst::kIdVxorps && id != Inst::kIdVpcmpeqd) return false;
  return node.op(1) == node.op(2);
}

bool is_copy(const asmjit::InstNode& node) {
  return (node.id() == Inst::kIdMov || node.id() == Inst::kIdVmovaps) && node.op(0).isReg() &&
         node.op(1).isReg();
}

// By a number of bits that it names: from memory only with AVX-512.
bool moves_bits(uint32_t id) {
  return id == Inst::kIdVpslld || id == Inst::kIdVpsrld || id == Inst::kIdVpsrad ||
         id == Inst::kIdVpsllq || id == Inst::kIdVpsrlq;
}

// Does it do nothing but write its first operand?
bool is_pure(const asmjit::InstNode& node) {
  switch (node.id()) {
    case Inst::kIdMov:
    case Inst::kIdLea:
    case Inst::kIdMovsxd:
    case Inst::kIdVmovaps:
    case Inst::kIdVmovups:
    case Inst::kIdVbroadcastss:
    case Inst::kIdVbroadcastsd:
    case Inst::kIdVpxor:
      return node.op(0).isReg();
    default:
      return false;
  }
}

void set(Operand_& operand, bool is_register, bool is_base, uint32_t id) {
  if (is_register)
    operand.as<asmjit::BaseReg>().setId(id);
  else if (is_base)
    operand.as<x86::Mem>().setBaseId(id);
  else
    operand.as<x86::Mem>().setIndexId(id);
}

bool is_jump(const asmjit::InstNode& node) { return node.opCount() == 1 && node.op(0).isLabel(); }

}  // namespace

RegistersX64::Accesses RegistersX64::look_up(const asmjit::InstNode& node, uint64_t key) const {
  Accesses out;
  out.key = key;
  asmjit::InstRWInfo all;
  asmjit::InstAPI::queryRWInfo(asmjit::Arch::kX64, node.baseInst(), node.operands(), node.opCount(),
                               &all);
  bool has_memory = moves_bits(node.id());
  for (uint32_t i = 0; i < node.opCount(); ++i) {
    has_memory |= node.op(i).isMem();
    if (!node.op(i).isReg()) continue;
    const asmjit::OpRWInfo& how = all.operand(i);
    const auto& reg = node.op(i).as<asmjit::BaseReg>();
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
  return out;
}

const RegistersX64::Accesses& RegistersX64::accesses_of(const asmjit::InstNode& node) {
  uint64_t key = uint64_t{node.id()} + 1;
  for (uint32_t i = 0; i < node.opCount(); ++i) {
    const Operand_& op = node.op(i);
    const auto type = op.isReg() ? static_cast<uint32_t>(op.as<asmjit::BaseReg>().type()) : 0;
    key = key << 9 | static_cast<uint64_t>(op.opType()) << 6 | (type & 63);
  }
  constexpr size_t kKnown = 512;
  if (known_.empty()) known_.resize(kKnown);
  Accesses& place = known_[(key * 0x9e3779b97f4a7c15u) >> 55];
  if (place.key != key) place = look_up(node, key);
  return place;
}

void RegistersX64::note_uses(asmjit::InstNode& node) {
  const Accesses& how = accesses_of(node);
  const bool constant = is_constant(node), gathers = is_gather(node.id());
  const auto add = [&](uint32_t id, uint32_t operand, Part part, bool reads, bool writes,
                       bool folds) {
    if (!Operand::isVirtId(id)) return;
    uses_.push_back({Operand::virtIdToIndex(id), static_cast<uint8_t>(operand), part, reads, writes,
                     gathers, folds});
  };
  for (uint32_t i = 0; i < node.opCount(); ++i) {
    const Operand_& op = node.op(i);
    if (op.isReg()) {
      add(op.id(), i, Part::Register, (how.reads >> i & 1) && !constant, how.writes >> i & 1,
          how.folds >> i & 1);
    } else if (op.isMem()) {
      const auto& mem = op.as<x86::Mem>();
      if (mem.hasBaseReg()) add(mem.baseId(), i, Part::Base, true, false, false);
      if (mem.hasIndexReg()) add(mem.indexId(), i, Part::Index, true, false, false);
    }
  }
}

bool RegistersX64::collect(asmjit::BaseNode* begin) {
  instructions_.clear();
  uses_.clear();
  blocks_.clear();
  calls_.clear();
  leads_.assign(1, 1);
  labels_.assign(cc_->code()->labelCount(), kNowhere);
  for (asmjit::BaseNode* node = begin->next(); node; node = node->next()) {
    const auto index = static_cast<uint32_t>(instructions_.size());
    if (node->isLabel()) {
      labels_[node->as<asmjit::LabelNode>()->labelId()] = index;
      leads_[index] = 1;
    }
    if (!node->isInst()) continue;
    auto& inst = *node->as<asmjit::InstNode>();
    const auto first = static_cast<uint32_t>(uses_.size());
    note_uses(inst);
    if (inst.id() == Inst::kIdCall) calls_.push_back(index);
    instructions_.push_back({&inst, first, static_cast<uint32_t>(uses_.size()) - first});
    leads_.push_back(is_jump(inst));
  }
  const auto count = static_cast<uint32_t>(instructions_.size());
  block_of_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    if (leads_[i]) {
      if (i) blocks_.back().end = i;
      blocks_.push_back({i, count});
    }
    block_of_[i] = static_cast<uint32_t>(blocks_.size()) - 1;
  }
  if (count == 0) return false;
  link_blocks(count);
  return true;
}

void RegistersX64::link_blocks(uint32_t count) {
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    Block& block = blocks_[b];
    const asmjit::InstNode& last = *instructions_[block.end - 1].node;
    const bool jumps = is_jump(last);
    const bool ends = last.id() == Inst::kIdRet || (jumps && last.id() == Inst::kIdJmp);
    if (!ends && b + 1 < blocks_.size()) block.next[block.next_count++] = b + 1;
    if (!jumps) continue;
    const uint32_t to = labels_[last.op(0).id()];
    if (to >= count) continue;  // nowhere
    block.next[block.next_count++] = block_of_[to];
    for (uint32_t inside = block_of_[to]; inside <= b; ++inside) ++blocks_[inside].depth;
  }
}

void RegistersX64::find_live() {
  words_ = (is_vector_.size() + 63) / 64;
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

uint32_t RegistersX64::new_span(uint32_t value) {
  const auto index = static_cast<uint32_t>(spans_.size());
  spans_.push_back({value, index, index, kNowhere});
  return index;
}

void RegistersX64::add_range(uint32_t span, uint32_t begin, uint32_t end) {
  ranges_.push_back({begin, end, spans_[span].ranges});
  spans_[span].ranges = static_cast<uint32_t>(ranges_.size()) - 1;
}

void RegistersX64::open(uint32_t value, uint32_t span, uint32_t end) {
  current_[value] = span;
  end_[value] = end;
  opened_.push_back(value);
}

// Going back: what it writes begins here, what it reads has to be there.
void RegistersX64::find_spans_of(Instruction& at, uint32_t index, float weight) {
  Use* const first = uses_.data() + at.first;
  Use* const last = first + at.count;
  if (at.count != 0 && first->writes && !first->reads && current_[first->value] == kNowhere &&
      is_pure(*at.node)) {
    at.unread = true;
    return;
  }
  for (Use* use = first; use != last; ++use) {
    if (!use->writes) continue;
    if (current_[use->value] == kNowhere) open(use->value, new_span(use->value), index * 2 + 2);
    use->span = current_[use->value];
    spans_[use->span].weight += weight;
  }
  for (Use* use = first; use != last; ++use) {
    if (!use->writes || use->reads || current_[use->value] == kNowhere) continue;
    const bool is_read = std::any_of(
        first, last, [&](const Use& other) { return other.value == use->value && other.reads; });
    if (is_read) continue;  // it goes on in its place
    add_range(use->span, index * 2 + 1, end_[use->value]);
    current_[use->value] = kNowhere;
  }
  for (Use* use = first; use != last; ++use) {
    if (!use->reads) continue;
    if (current_[use->value] == kNowhere)
      open(use->value, new_span(use->value), index * 2 + (use->late ? 2 : 1));
    use->span = current_[use->value];
    spans_[use->span].weight += weight;
  }
  // What neither reads nor writes: a register with itself.
  for (Use* use = first; use != last; ++use) {
    if (!use->reads && !use->writes) use->span = first->span;
  }
}

void RegistersX64::find_spans_of(size_t b) {
  const Block& block = blocks_[b];
  constexpr float kWeights[] = {1, 10, 100, 1000, 10000};
  opened_.clear();
  for (size_t w = 0; w < words_; ++w) {
    for (uint64_t left = live(b, 3)[w]; left; left &= left - 1) {
      const auto v = static_cast<uint32_t>(w * 64 + static_cast<size_t>(std::countr_zero(left)));
      open(v, v, block.end * 2);
    }
  }
  for (uint32_t i = block.end; i-- > block.begin;)
    find_spans_of(instructions_[i], i, kWeights[std::min(block.depth, 4u)]);
  for (uint32_t v : opened_) {
    const uint32_t span = current_[v];
    if (span == kNowhere) continue;
    current_[v] = kNowhere;
    add_range(v, block.begin * 2, end_[v]);
    if (span == v) continue;
    spans_[span].joined = v;  // it comes from another block
    spans_[v].weight += spans_[span].weight;
  }
}

void RegistersX64::find_spans() {
  const auto count = static_cast<uint32_t>(is_vector_.size());
  spans_.clear();
  ranges_.clear();
  for (uint32_t v = 0; v < count; ++v) new_span(v);
  current_.assign(count, kNowhere);
  end_.assign(count, 0);
  for (size_t b = blocks_.size(); b-- > 0;) find_spans_of(b);
  for (Use& use : uses_) use.span = spans_[use.span].joined;
  for (const Instruction& at : instructions_) {
    if (at.count != 2 || at.unread || !is_copy(*at.node)) continue;
    const uint32_t a = uses_[at.first].span, b = uses_[at.first + 1].span;
    spans_[a].like = b;
    spans_[b].like = a;
  }
}

// As words of a set of places in time.
void RegistersX64::cut(const Span& span) {
  pieces_.clear();
  for (uint32_t r = span.ranges; r != kNowhere; r = ranges_[r].next) {
    const uint32_t begin = ranges_[r].begin, last = ranges_[r].end - 1;
    for (uint32_t w = begin / 64; w <= last / 64; ++w) {
      uint64_t mask = ~uint64_t{0};
      if (w == begin / 64) mask &= ~uint64_t{0} << begin % 64;
      if (w == last / 64) mask &= ~uint64_t{0} >> (63 - last % 64);
      pieces_.push_back({w, mask});
    }
  }
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

// False: some get none.
bool RegistersX64::place_all(const std::vector<uint32_t>& registers, bool vectors) {
  const size_t words = instructions_.size() * 2 / 64 + 1;
  used_.assign(16 * words, 0);
  take_for_calls(vectors, words);
  const auto is_free = [&](uint32_t reg) {
    const uint64_t* used = &used_[reg * words];
    return std::none_of(pieces_.begin(), pieces_.end(),
                        [&](const Piece& piece) { return used[piece.word] & piece.mask; });
  };
  bool all = true;
  for (const auto& [density, index] : order_) {
    Span& span = spans_[index];
    span.place = -1;
    cut(span);
    // A register that it is copied from or to saves the copy.
    const int like = span.like == index ? -1 : spans_[span.like].place;
    auto found = like < 0
                     ? registers.end()
                     : std::find(registers.begin(), registers.end(), static_cast<uint32_t>(like));
    if (found == registers.end() || !is_free(*found))
      found = std::find_if(registers.begin(), registers.end(), is_free);
    if (found == registers.end()) {
      all = false;
      continue;
    }
    span.place = static_cast<int>(*found);
    for (const Piece& piece : pieces_) used_[*found * words + piece.word] |= piece.mask;
  }
  return all;
}

bool RegistersX64::find_memory() {
  const size_t words = instructions_.size() * 2 / 64 + 1;
  used_.clear();
  for (const auto& [density, index] : order_) {
    Span& span = spans_[index];
    if (span.place >= 0) continue;
    cut(span);
    size_t slot = 0;
    const auto is_free = [&] {
      return std::none_of(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
        return used_[slot * words + piece.word] & piece.mask;
      });
    };
    while (slot * words < used_.size() && !is_free()) ++slot;
    if (slot * words == used_.size()) used_.resize(used_.size() + words, 0);
    for (const Piece& piece : pieces_) used_[slot * words + piece.word] |= piece.mask;
    span.place = -1 - static_cast<int>(slot);
  }
  return used_.size() <= kSpilled * words;
}

bool RegistersX64::assign(bool vectors) {
  order_.clear();
  for (uint32_t i = 0; i < spans_.size(); ++i) {
    const Span& span = spans_[i];
    if (span.ranges == kNowhere || is_vector_[span.value] != vectors) continue;
    uint32_t length = 0;
    for (uint32_t r = span.ranges; r != kNowhere; r = ranges_[r].next)
      length += ranges_[r].end - ranges_[r].begin;
    order_.push_back({-span.weight / static_cast<float>(length), i});
  }
  std::sort(order_.begin(), order_.end());
  std::vector<uint32_t> registers = vectors ? kVectors : kWords;
  if (place_all(registers, vectors)) return true;
  // Some are for what comes from memory, none of them a caller's.
  if (vectors)
    registers.resize(registers.size() - kForMemory);
  else
    registers.erase(registers.begin(), registers.begin() + kForMemory);
  place_all(registers, vectors);
  return find_memory();
}

asmjit::x86::Mem RegistersX64::memory_of(const Span& span) const {
  const auto slot = static_cast<int64_t>(-1 - span.place);
  const int64_t offset = is_vector_[span.value]
                             ? static_cast<int64_t>(offsetof(Pass, vectors)) + slot * 32
                             : static_cast<int64_t>(offsetof(Pass, words)) + slot * 8;
  return x86::ptr(x86::rdi, static_cast<int32_t>(offset));
}

void RegistersX64::copy(asmjit::BaseNode* behind, const Span& span, uint32_t reg, bool back) {
  const x86::Mem memory = memory_of(span);
  cc_->setCursor(behind);
  if (is_vector_[span.value])
    back ? cc_->vmovups(memory, x86::ymm(reg)) : cc_->vmovups(x86::ymm(reg), memory);
  else
    back ? cc_->mov(memory, x86::gpq(reg)) : cc_->mov(x86::gpq(reg), memory);
}

// All uses of the value by this instruction.
void RegistersX64::move_from_memory(Instruction& at, const Use& use, uint32_t reg) {
  const Span& span = spans_[use.span];
  bool reads = false, writes = false;
  for (uint32_t u = at.first; u < at.first + at.count; ++u) {
    const Use& other = uses_[u];
    if (other.span != use.span) continue;
    reads |= other.reads;
    writes |= other.writes;
    set(at.node->op(other.operand), other.part == Part::Register, other.part == Part::Base, reg);
  }
  if (reads) copy(at.node->prev(), span, reg, false);
  if (writes) copy(at.node, span, reg, true);
}

void RegistersX64::rewrite(Instruction& at) {
  asmjit::InstNode& node = *at.node;
  if (at.unread) {
    cc_->removeNode(&node);
    return;
  }
  uint32_t words = 0, vectors = 0;
  bool folded = false;
  for (uint32_t u = at.first; u < at.first + at.count; ++u) {
    const Use& use = uses_[u];
    const Span& span = spans_[use.span];
    if (span.place >= 0) {
      if (!is_vector_[span.value]) saved_ |= 1u << span.place & kOfTheCaller;
      set(node.op(use.operand), use.part == Part::Register, use.part == Part::Base,
          static_cast<uint32_t>(span.place));
      continue;
    }
    const auto same = [&](const Use& other) { return other.span == use.span; };
    const auto first = uses_.begin() + at.first, last = first + at.count;
    if (std::any_of(first, uses_.begin() + u, same)) continue;  // it has been moved
    if (use.folds && !folded && std::count_if(first, last, same) == 1) {
      x86::Mem memory = memory_of(span);
      memory.setSize(node.op(use.operand).as<asmjit::BaseReg>().size());
      node.op(use.operand) = memory;
      folded = true;
      continue;
    }
    move_from_memory(at, use,
                     is_vector_[span.value] ? kVectors[kVectors.size() - kForMemory + vectors++]
                                            : kWords[words++]);
  }
  if (!is_copy(node) || !(node.op(0) == node.op(1))) return;
  // One of 32 bits clears the others.
  if (node.id() == Inst::kIdVmovaps || node.op(0).as<asmjit::BaseReg>().size() == 8)
    cc_->removeNode(&node);
}

void RegistersX64::save_registers(asmjit::BaseNode* begin) {
  // A call puts one more word on the stack, and a function begins with half of what it is aligned
  // to.
  if (!calls_.empty() && std::popcount(saved_) % 2 == 1)
    saved_ |= 1u << std::countr_zero(kOfTheCaller & ~saved_);
  cc_->setCursor(begin);
  for (uint32_t reg = 0; reg < 16; ++reg) {
    if (saved_ >> reg & 1) cc_->push(x86::gpq(reg));
  }
  cc_->setCursor(instructions_.back().node->prev());  // before RET
  for (uint32_t reg = 16; reg-- > 0;) {
    if (saved_ >> reg & 1) cc_->pop(x86::gpq(reg));
  }
}

bool RegistersX64::run(asmjit::x86::Compiler& compiler, asmjit::BaseNode* begin) {
  cc_ = &compiler;
  saved_ = 0;
  const auto& values = cc_->virtRegs();
  is_vector_.resize(values.size());
  for (uint32_t v = 0; v < is_vector_.size(); ++v)
    is_vector_[v] = values[v]->group() == asmjit::RegGroup::kVec;
  if (!collect(begin)) return false;
  find_live();
  find_spans();
  if (!assign(false) || !assign(true)) return false;
  for (Instruction& each : instructions_) rewrite(each);
  save_registers(begin);
  return true;
}

}  // namespace kiln::engine
#endif
