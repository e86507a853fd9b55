// SPDX-License-Identifier: Apache-2.0
// How is the index check of a kiln::View recognised? By the names of the registers it writes, not
// by its text.
#include "ptx/view_check.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace kiln::ptx {
namespace {

constexpr std::string_view kCheck = "kiln_bounds_";
constexpr std::string_view kBase = "kiln_base";

std::optional<uint32_t> dimension_of(std::string_view register_name) {
  if (!is_view_check(register_name)) return std::nullopt;
  const std::string_view digits = register_name.substr(kCheck.size());
  uint32_t dimension = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), dimension);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  return dimension;
}

// The operand must hold outside of the scope, whose registers go.
bool is_from_outside(const Operand& operand, const ScopeStart& start) {
  return operand.kind == OperandKind::Integer ||
         (operand.kind == OperandKind::Register && operand.part == 0 &&
          operand.reg < start.registers);
}

// The name of the register that it writes, when it is plain: no guard, values from outside of the
// scope.
std::string_view written(const Instruction& ins, size_t operands, const ScopeStart& start,
                         const Body& body) {
  if (ins.guard != kNoRegister || ins.operands.size() != operands) return "";
  for (size_t i = 1; i < operands; ++i) {
    if (!is_from_outside(ins.operands[i], start)) return "";
  }
  const Operand& to = ins.operands[0];
  const bool has_name = to.kind == OperandKind::Register || to.kind == OperandKind::Predicate;
  if (!has_name || to.reg < start.registers || body.registers[to.reg].index >= 0) return "";
  return body.registers[to.reg].stem;
}

Instruction check_of(const Instruction& compare, uint32_t dimension, const SourceLine& caller) {
  Instruction check = compare;
  check.mnemonic = "kiln";
  check.modifiers = {"bounds"};
  Operand number;
  number.kind = OperandKind::Integer;
  check.operands = {compare.operands[1], compare.operands[2], number, number};
  check.operands[3].bits = dimension;
  if (caller.file) check.source = {caller.file, caller.line, caller.file, caller.line, caller.call};
  return check;
}

}  // namespace

bool is_view_check(std::string_view register_name) {
  return register_name.substr(0, kCheck.size()) == kCheck;
}

void fold_view_checks(const ScopeStart& start, const SourceLine& caller, Body* body) {
  if (body->variables.size() != start.variables || body->labels.size() != start.labels) return;
  std::vector<Instruction> checks;
  std::optional<Operand> base;
  for (size_t i = start.instructions; i < body->instructions.size(); ++i) {
    const Instruction& ins = body->instructions[i];
    if (ins.mnemonic == "setp" && ins.has("ge") && ins.has("u64")) {
      const auto dimension = dimension_of(written(ins, 3, start, *body));
      if (!dimension) return;
      checks.push_back(check_of(ins, *dimension, caller));
    } else if (ins.mnemonic == "mov" && ins.has("b64") && !base &&
               written(ins, 2, start, *body) == kBase) {
      base = ins.operands[1];
    } else {
      return;
    }
  }
  if (checks.empty()) return;
  for (Instruction& check : checks) {
    if (base) check.operands[2] = *base;
  }
  body->instructions.resize(start.instructions);
  for (Instruction& check : checks) body->instructions.push_back(std::move(check));
  body->registers.resize(start.registers);
}

std::string view_check_text(std::string_view index, std::string_view size, std::string_view data,
                            uint64_t dimension) {
  return fmt::format(
      "{{ .reg .pred {0}{1}; .reg .b64 {2}; setp.ge.u64 {0}{1}, {3}, {4}; mov.b64 {2}, {5}; }}",
      kCheck, dimension, kBase, index, size, data);
}

}  // namespace kiln::ptx
