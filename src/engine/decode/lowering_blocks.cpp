// SPDX-License-Identifier: Apache-2.0
// Which registers live inside one stretch of a basic block, and which are read only once?
//
// Between two places at which a split of the warp may stop, no other split runs. So a value that
// the active lanes share there (a load from one address) needs only a scalar if everything that
// reads it is in the same stretch.
#include <algorithm>

#include "engine/decode/lowering.h"
#include "engine/machine/watching.h"

namespace kiln::engine {
namespace {

template <class Then>
void each_register(const ptx::Operand& o, Then then) {
  if (o.kind == ptx::OperandKind::Register ||
      (o.kind == ptx::OperandKind::Address && o.base_is_register))
    then(o.reg);
  for (const ptx::Operand& e : o.elements) each_register(e, then);
}

}  // namespace

void Lowering::find_stretches() {
  const auto& code = body_.instructions;
  std::vector<bool> is_label(code.size() + 1, false);
  for (const auto& [name, at] : body_.labels) is_label[at] = true;
  constexpr uint32_t kNone = ~0u, kMany = ~0u - 1;
  std::vector<uint32_t> defined(body_.registers.size(), kNone);  // the stretch
  uses_.assign(body_.registers.size(), 0);
  in_stretch_.assign(body_.registers.size(), false);
  last_read_.assign(body_.registers.size(), 0);
  stretch_of_.assign(code.size(), 0);
  uint32_t stretch = 0;
  for (uint32_t i = 0; i < code.size(); ++i) {
    const ptx::Instruction& ins = code[i];
    const bool straight = ins.guard == ptx::kNoRegister && form(i).has(ptx::kStraight);
    if (is_label[i] || !straight) ++stretch;
    stretch_of_[i] = stretch;
    bool writes = false;
    if (straight) ptx::each_written(form(i), ins, [&](const ptx::Operand&) { writes = true; });
    for (size_t k = writes ? 1 : 0; k < ins.operands.size(); ++k) {
      each_register(ins.operands[k], [&](uint32_t reg) {
        ++uses_[reg];
        last_read_[reg] = i;
        if (defined[reg] != stretch)
          defined[reg] = kMany;  // read elsewhere, or before it is written
      });
    }
    if (writes && !ins.operands.empty()) {
      each_register(ins.operands[0],
                    [&](uint32_t reg) { defined[reg] = defined[reg] == kNone ? stretch : kMany; });
    }
    if (!straight) ++stretch;
  }
  for (uint32_t reg = 0; reg < defined.size(); ++reg) {
    in_stretch_[reg] = definitions_[reg] == 1 && defined[reg] != kNone && defined[reg] != kMany;
  }
}

// Stretches as events count them. An instruction that is not straight may be the last one, because
// the lanes that began the stretch also reach it.
void Lowering::measure_stretches() {
  const auto& code = body_.instructions;
  std::vector<bool> is_label(code.size() + 1, false);
  for (const auto& [name, at] : body_.labels) is_label[at] = true;
  stretch_length_.assign(code.size(), 0);
  uint32_t first = 0;
  bool ended = true;
  for (uint32_t i = 0; i < code.size(); ++i) {
    const bool alone = code[i].guard != ptx::kNoRegister && !form(i).has(ptx::kGuarded);
    if (ended || alone || is_label[i]) first = i;
    ++stretch_length_[first];
    ended = alone || !form(i).has(ptx::kStraight);
  }
}

// Keeps the frame small enough for the L1 cache: a matmul with its inner loop unrolled has a
// hundred registers that live for two instructions. A slot becomes free only when the whole
// instruction has been lowered, so that no Op overwrites what the next Op of the same instruction
// reads.
void Lowering::free_slots_after(uint32_t index) {
  for (const ptx::Operand& o : body_.instructions[index].operands) {
    each_register(o, [&](uint32_t reg) {
      const Place& p = places_[reg];
      if (!in_stretch_[reg] || last_read_[reg] != index || !p.known || p.uniform || p.affine)
        return;
      last_read_[reg] = ~0u;  // it may be listed twice
      free_slots_[ptx::bytes_of(body_.registers[reg].type)].push_back(p.offset);
    });
  }
}

// An unrolled loop loads from one register with increasing offsets. A watcher that only asks which
// lanes read what, and between which barriers, gets all of these loads as one event.
bool Lowering::joins_group(const Op& op, uint32_t bytes) {
  for (AccessGroup& group : groups_) {
    const bool same_register = operand(1).base_is_register && operand(1).reg == group.reg;
    const Op& first = group.first;
    if (!same_register || op.a != first.a || op.x != first.x || op.z != first.z ||
        bytes != group.site->bytes || !(ins_->source == group.source))
      continue;
    const int64_t behind = op.imm - first.imm;
    if (behind == 0) continue;
    if (group.site->repeats == 1) group.site->repeat_step = behind;
    if (behind != group.site->repeat_step * group.site->repeats) continue;
    ++group.site->repeats;
    return true;
  }
  return false;
}

// From here on, the register of an address has another value.
void Lowering::close_groups(uint32_t index) {
  ptx::each_written(form(index), body_.instructions[index], [&](const ptx::Operand& written) {
    each_register(written, [&](uint32_t reg) {
      std::erase_if(groups_, [&](const AccessGroup& group) { return group.reg == reg; });
    });
  });
}

bool Lowering::dest_in_stretch(const ptx::Operand& operand) const {
  return operand.kind == ptx::OperandKind::Register && in_stretch_[operand.reg] &&
         ins_->guard == ptx::kNoRegister && !places_[operand.reg].known;
}

bool Lowering::read_once(const ptx::Operand& operand) const {
  return operand.kind == ptx::OperandKind::Register && in_stretch_[operand.reg] &&
         uses_[operand.reg] == 1;
}

bool Lowering::dest_of_stretch(const ptx::Operand& operand, uint32_t bytes, Dest* out) {
  reads_stretch_value_ = true;
  return dest(operand, bytes, true, out);
}

}  // namespace kiln::engine
