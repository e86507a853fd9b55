// SPDX-License-Identifier: Apache-2.0
#include "watch/sanitize/control_flow.h"

#include <algorithm>
#include <string_view>
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

// The lines of PTX, from the body's first, that stand below a .loc of line 0: what a compiler made
// of several lines of the source has no line of its own.
std::vector<bool> lines_without_source(std::string_view text) {
  std::vector<bool> without;
  bool zero = false;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with(".loc")) {
      const size_t file = line.find_first_of("0123456789");
      const size_t space = std::min(line.find_first_of(" \t", file), line.size());
      const size_t number = std::min(line.find_first_not_of(" \t", space), line.size());
      zero = line.substr(number).starts_with("0 ") || line.substr(number).starts_with("0\t");
    }
    without.push_back(zero);
  }
  return without;
}

// The instructions that can be reached by first(reach) and from there on, until visit says no.
template <class First, class Visit>
void walk(const ptx::Body& body, First first, Visit visit) {
  std::vector<bool> seen(body.instructions.size());
  std::vector<size_t> open;
  const auto reach = [&](size_t index) {
    if (index >= seen.size() || seen[index]) return;
    seen[index] = true;
    open.push_back(index);
  };
  first(reach);
  while (!open.empty()) {
    const size_t at = open.back();
    open.pop_back();
    if (!visit(body.instructions[at])) return;
    each_next(body, at, reach);
  }
}

bool leaves(const ptx::Instruction& instruction) {
  const auto match = ptx::match_form(instruction);
  return match && ptx::forms()[match->form].lowering.starts_with("leave");
}

}  // namespace

bool leads_to(const engine::Program& program, uint32_t from_site, uint32_t to_site) {
  if (!program.function || !program.module) return false;
  const auto body = ptx::parse_body(*program.module, *program.function);
  if (!body) return false;
  const uint32_t from = program.sites[from_site].ptx_line, to = program.sites[to_site].ptx_line;
  bool found = false;
  walk(
      *body,
      [&](const auto& reach) {
        for (size_t i = 0; i < body->instructions.size(); ++i)
          if (body->instructions[i].line == from) each_next(*body, i, reach);
      },
      [&](const ptx::Instruction& instruction) {
        found = instruction.line == to;
        return !found;
      });
  return found;
}

bool is_merged_end(const engine::Program& program, uint32_t site) {
  if (!program.function || !program.module) return false;
  const auto body = ptx::parse_body(*program.module, *program.function);
  if (!body) return false;
  const std::vector<bool> without = lines_without_source(program.function->body_text);
  bool merged_all = true;
  walk(
      *body,
      [&](const auto& reach) {
        for (size_t i = 0; i < body->instructions.size(); ++i)
          if (body->instructions[i].line == program.sites[site].ptx_line) reach(i);
      },
      [&](const ptx::Instruction& instruction) {
        const size_t line = instruction.line - program.function->body_line;
        const bool merged = line < without.size() && without[line];
        merged_all = merged || leaves(instruction);
        return merged_all;
      });
  return merged_all;
}

}  // namespace kiln::watch
