// SPDX-License-Identifier: Apache-2.0
#include "watch/sanitize/control_flow.h"

#include <vector>

#include "ptx/forms.h"
#include "ptx/parser.h"

namespace kiln::watch {

namespace {

// Calls with the index of each instruction that may be next.
template <class Then>
void each_next(const ptx::Body& body, size_t at, Then then) {
  const ptx::Instruction& instruction = body.instructions[at];
  const auto match = ptx::match_form(instruction);
  const std::string_view lowering = match ? ptx::forms()[match->form].lowering : "";
  const bool jumps = lowering.starts_with("branch"), ends = lowering.starts_with("leave");
  if ((!jumps && !ends) || instruction.guard != ptx::kNoRegister) then(at + 1);
  if (!jumps) return;
  const auto go_to = [&](std::string_view label) {
    if (const auto found = body.labels.find(label); found != body.labels.end()) then(found->second);
  };
  for (const ptx::Operand& operand : instruction.operands) {
    if (operand.kind != ptx::OperandKind::Symbol) continue;
    go_to(operand.name);
    if (const auto list = body.branch_targets.find(operand.name); list != body.branch_targets.end())
      for (const std::string_view label : list->second) go_to(label);
  }
}

}  // namespace

bool leads_to(const engine::Program& program, uint32_t from_site, uint32_t to_site) {
  if (!program.function || !program.module) return false;
  const auto body = ptx::parse_body(*program.module, *program.function);
  if (!body) return false;
  const uint32_t from = program.sites[from_site].ptx_line, to = program.sites[to_site].ptx_line;
  std::vector<bool> seen(body->instructions.size());
  std::vector<size_t> open;
  const auto reach = [&](size_t index) {
    if (index >= seen.size() || seen[index]) return;
    seen[index] = true;
    open.push_back(index);
  };
  for (size_t i = 0; i < body->instructions.size(); ++i) {
    if (body->instructions[i].line == from) each_next(*body, i, reach);
  }
  while (!open.empty()) {
    const size_t at = open.back();
    open.pop_back();
    if (body->instructions[at].line == to) return true;
    each_next(*body, at, reach);
  }
  return false;
}

}  // namespace kiln::watch
