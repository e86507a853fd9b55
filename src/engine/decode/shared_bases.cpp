// SPDX-License-Identifier: Apache-2.0
#include "engine/decode/shared_bases.h"

#include <utility>

namespace kiln::engine {

SharedBases::SharedBases(const ptx::Body& body, std::span<const ptx::FormMatch> matches,
                         IsShared is_shared)
    : is_shared_(std::move(is_shared)), registers_(body.registers.size()) {
  bool changed = true;
  const auto add = [&](uint32_t reg, const Base& made) {
    const Base all = either(registers_[reg], made);
    changed |= all != registers_[reg];
    registers_[reg] = all;
  };
  while (changed) {
    changed = false;
    for (size_t i = 0; i < body.instructions.size(); ++i) {
      const ptx::Instruction& instruction = body.instructions[i];
      const ptx::Form& form = ptx::forms()[matches[i].form];
      const Base made = made_by(form, instruction);
      if (made.state == State::Unset) continue;
      ptx::each_written(form, instruction, [&](const ptx::Operand& operand) {
        if (operand.kind == ptx::OperandKind::Register) add(operand.reg, made);
        for (const ptx::Operand& element : operand.elements) {
          if (operand.kind == ptx::OperandKind::Vector &&
              element.kind == ptx::OperandKind::Register)
            add(element.reg, made);
        }
      });
    }
  }
}

std::string_view SharedBases::of(const ptx::Instruction& instruction) const {
  for (const ptx::Operand& operand : instruction.operands) {
    if (operand.kind != ptx::OperandKind::Address) continue;
    if (operand.base_is_register) return registers_[operand.reg].name;
    return is_shared_(operand.name) ? operand.name : std::string_view();
  }
  return {};
}

SharedBases::Base SharedBases::of_operand(const ptx::Operand& operand) const {
  if (operand.kind == ptx::OperandKind::Register) return registers_[operand.reg];
  if (operand.kind == ptx::OperandKind::Symbol && is_shared_(operand.name))
    return {State::One, operand.name};
  Base all{State::None, {}};
  if (operand.kind != ptx::OperandKind::Vector) return all;
  for (const ptx::Operand& element : operand.elements) {
    const Base one = of_operand(element);
    if (one.state == State::One || one.state == State::Mixed) all.state = State::Mixed;
  }
  return all;
}

// One of the two, but which one is unknown.
SharedBases::Base SharedBases::either(const Base& a, const Base& b) {
  if (a.state == State::Unset) return b;
  if (b.state == State::Unset || a == b) return a;
  return {State::Mixed, {}};
}

// The sum of an address and a distance.
SharedBases::Base SharedBases::sum(const Base& a, const Base& b) {
  if (a.state == State::Unset || b.state == State::Unset) return {};
  if (a.state == State::None) return b;
  if (b.state == State::None) return a;
  return {State::Mixed, {}};
}

SharedBases::Base SharedBases::made_by(const ptx::Form& form,
                                       const ptx::Instruction& instruction) const {
  const auto& operands = instruction.operands;
  const std::string_view does = form.lowering;
  // Values from memory or from a function count as numbers: addresses from there are not followed.
  for (const ptx::Operand& operand : operands) {
    if (operand.kind == ptx::OperandKind::Address) return {State::None, {}};
  }
  if (form.operands == "*" || operands.size() < 2) return {State::None, {}};
  const auto base = [&](size_t i) { return of_operand(operands[i]); };
  if (does == "move" || does == "convert_address" || does == "convert") return base(1);
  if (does == "binary<Add>" || does == "binary<Or>" || does == "binary<Xor>" ||
      does == "binary<And>")
    return sum(base(1), base(2));
  if (does == "select") return either(base(1), base(2));
  Base others{State::None, {}};
  const auto mixes = [&](size_t i) {
    const Base one = base(i);
    if (one.state == State::Unset && others.state == State::None) others = {};
    if (one.state == State::One || one.state == State::Mixed) others = {State::Mixed, {}};
  };
  if (does == "binary<Sub>") {
    mixes(2);
    return sum(base(1), others);
  }
  if (does == "ternary<MadLow>" || does == "mad_wide") {
    mixes(1), mixes(2);
    return sum(base(3), others);
  }
  for (size_t i = 1; i < operands.size(); ++i) mixes(i);
  return others;
}

}  // namespace kiln::engine
