// SPDX-License-Identifier: Apache-2.0
#include "watch/race/partial_order.h"

#include <algorithm>
#include <vector>

#include "ptx/forms.h"
#include "ptx/parser.h"

namespace kiln::watch::race {

using engine::Program;

namespace {

// `bar.sync 0`, of all threads.
bool is_of_the_block(const ptx::Form& form, const ptx::Instruction& instruction) {
  const bool reduces = form.operands[0] != 'a';
  const size_t id = reduces ? 1 : 0, alone = reduces ? 3 : 1;
  if (instruction.operands.size() != alone) return false;
  const ptx::Operand& barrier = instruction.operands[id];
  return barrier.kind == ptx::OperandKind::Integer && barrier.bits == 0;
}

bool orders_some(const ptx::Instruction& instruction) {
  if (instruction.has("acquire") || instruction.has("release") || instruction.has("acq_rel"))
    return true;
  const auto match = ptx::match_form(instruction);
  if (!match) return false;
  const ptx::Form& form = ptx::forms()[match->form];
  const bool fence = form.has(ptx::kWaits) && !form.has(ptx::kParks);
  if (fence || form.lowering.starts_with("mbarrier")) return true;
  return form.lowering.starts_with("barrier") && !is_of_the_block(form, instruction);
}

bool calls_by_pointer(const ptx::Instruction& instruction) {
  const size_t target = instruction.call_results;
  return instruction.mnemonic == "call" && target < instruction.operands.size() &&
         instruction.operands[target].kind == ptx::OperandKind::Register;
}

// What is called by its address is not known: any function of the module.
bool any_function_orders(const ptx::Module& module) {
  return std::ranges::any_of(module.functions, [&](const ptx::Function& function) {
    if (function.is_entry || function.body_text.empty()) return false;
    const auto body = ptx::parse_body(module, function);
    return body && std::ranges::any_of(body->instructions, orders_some);
  });
}

}  // namespace

bool orders_in_part(const Program& program) {
  std::vector<const Program*> open{&program}, seen;
  while (!open.empty()) {
    const Program* one = open.back();
    open.pop_back();
    if (std::ranges::find(seen, one) != seen.end()) continue;
    seen.push_back(one);
    if (!one->function || !one->module) continue;
    const auto body = ptx::parse_body(*one->module, *one->function);
    if (body && std::ranges::any_of(body->instructions, orders_some)) return true;
    if (body && std::ranges::any_of(body->instructions, calls_by_pointer) &&
        any_function_orders(*one->module))
      return true;
    open.insert(open.end(), one->callees.begin(), one->callees.end());
  }
  return false;
}

}  // namespace kiln::watch::race
