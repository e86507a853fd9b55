// SPDX-License-Identifier: Apache-2.0
#include "watch/fidelity.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "engine/compile/facts.h"
#include "engine/cudart/environment.h"
#include "engine/decode/watch_ops.h"
#include "engine/machine/fault.h"
#include "engine/program/meaning.h"
#include "ptx/forms.h"
#include "ptx/parser.h"
#include "report/fidelity.h"

namespace kiln::watch {

using namespace engine;

namespace {

// Calls with each register that an operand names.
template <class Then>
void each_register(const ptx::Operand& operand, Then then) {
  switch (operand.kind) {
    case ptx::OperandKind::Register:
    case ptx::OperandKind::Predicate:
      then(operand.reg);
      break;
    case ptx::OperandKind::Address:
      if (operand.base_is_register) then(operand.reg);
      break;
    default:
      break;
  }
  for (const ptx::Operand& element : operand.elements) each_register(element, then);
}

bool reads_one_of(const ptx::Instruction& instruction, const std::vector<bool>& registers) {
  if (instruction.guard != ptx::kNoRegister && registers[instruction.guard]) return true;
  bool found = false;
  for (const ptx::Operand& operand : instruction.operands)
    each_register(operand, [&](uint32_t reg) { found |= registers[reg]; });
  return found;
}

// Registers whose value may come from an approximation. Without an order of the instructions: a
// register that is used again for something exact counts too, which errs on the side of "yes".
std::vector<bool> approximate_registers(const ptx::Body& body) {
  std::vector<bool> registers(body.registers.size());
  for (bool more = true; more;) {
    more = false;
    for (const ptx::Instruction& instruction : body.instructions) {
      const auto match = ptx::match_form(instruction);
      if (!match) continue;
      const ptx::Form& form = ptx::forms()[match->form];
      // A load gives what memory has; its address does not make the value an approximation.
      const bool loads = form.operands.find('m') != std::string_view::npos;
      if (!ptx::approximation_of(instruction) && (loads || !reads_one_of(instruction, registers)))
        continue;
      ptx::each_written(form, instruction, [&](const ptx::Operand& operand) {
        each_register(operand, [&](uint32_t reg) {
          more |= !registers[reg];
          registers[reg] = true;
        });
      });
    }
  }
  return registers;
}

bool delivers(Handler handler) {
  return handler == &run_instruction_event || handler == &run_stretch_event ||
         handler == &run_access_event || handler == &run_value_event || handler == &run_guard_chain;
}

// By site: has it Ops on lanes, and machine code for none of them?
std::vector<bool> without_machine_code(const Program& program) {
  std::vector<bool> without(program.sites.size()), with(program.sites.size());
  for (const Op& op : program.ops) {
    if (meaning_of(op.run))
      with[op.site] = true;
    else if (op.effect != Effect::Scalar && !delivers(op.run))
      without[op.site] = true;
  }
  for (size_t i = 0; i < without.size(); ++i) without[i] = without[i] && !with[i];
  return without;
}

}  // namespace

FunctionFidelity fidelity_of(const ptx::Body& body) {
  FunctionFidelity out;
  for (const ptx::Instruction& instruction : body.instructions) {
    if (const auto* row = ptx::approximation_of(instruction))
      out.approximate.emplace(std::pair(instruction.line, instruction.text()), row);
  }
  if (out.approximate.empty()) return out;
  const std::vector<bool> registers = approximate_registers(body);
  for (const ptx::Instruction& instruction : body.instructions) {
    const auto match = ptx::match_form(instruction);
    const bool guarded = instruction.guard != ptx::kNoRegister && registers[instruction.guard];
    if (guarded && match && ptx::forms()[match->form].has(ptx::kGuarded))
      out.branches.emplace_back(instruction.line, instruction.text());
  }
  return out;
}

void FidelityWatch::on(const InstructionEvent& event) {
  if (event.by.program != last_) {
    last_ = event.by.program;
    counts_ = &running_[last_];
    counts_->resize(last_->sites.size());
  }
  ++(*counts_)[event.by.site];
}

void FidelityWatch::on(const LaunchEvent& event) {
  if (!event.ended) return;
  for (const auto& [program, counts] : running_) add(*program, counts);
  running_.clear();
  last_ = nullptr;
}

const FunctionFidelity& FidelityWatch::of(const Program& program) {
  const auto [at, is_new] = known_.try_emplace(program.serial);
  if (is_new && program.function) {
    if (const auto body = ptx::parse_body(*program.module, *program.function))
      at->second = fidelity_of(*body);
  }
  return at->second;
}

void FidelityWatch::add(const Program& program, const std::vector<uint64_t>& counts) {
  const FunctionFidelity& function = of(program);
  const std::vector<bool> interprets = without_machine_code(program);
  for (uint32_t site = 0; site < counts.size(); ++site) {
    if (counts[site] == 0) continue;
    const auto count = static_cast<int64_t>(counts[site]);
    instructions_ += count;
    if (interprets[site]) interpreted_[std::string(program.sites[site].opcode)] += count;
    const FunctionFidelity::Place place{program.sites[site].ptx_line,
                                        std::string(program.sites[site].opcode)};
    if (const auto found = function.approximate.find(place); found != function.approximate.end()) {
      results::Approximated& row = approximate_[place.second];
      row.opcode = place.second;
      row.bound = found->second->bound;
      row.warps += count;
    }
    if (std::ranges::find(function.branches, place) == function.branches.end()) continue;
    Op op;
    op.site = site;
    branches_[place_of(program, op)] += count;
  }
}

results::Fidelity FidelityWatch::result() const {
  results::Fidelity out;
  out.instructions = instructions_;
  for (const auto& [opcode, row] : approximate_) out.approximate.push_back(row);
  std::ranges::stable_sort(out.approximate, std::ranges::greater(), &results::Approximated::warps);
  for (const auto& [place, count] : branches_) out.branches.push_back(place);
  for (const auto& [opcode, count] : interpreted_) out.interpreted.push_back({opcode, count});
  std::ranges::stable_sort(out.interpreted, std::ranges::greater(),
                           &results::InterpretedKind::count);
  return out;
}

std::unique_ptr<Sink> make_fidelity() {
  auto made = std::make_unique<FidelityWatch>();
  // Watchers live as long as the process, and there is one set of them.
  static FidelityWatch* last = nullptr;
  static pid_t process = 0;
  last = made.get();
  process = getpid();
  std::atexit([] {
    const results::Fidelity fidelity = last->result();
    if (process != getpid() || fidelity.instructions == 0) return;
    std::fflush(stdout);
    std::fputs(report::fidelity_text(fidelity).c_str(), stderr);
    if (!engine::compiles()) return;
    const std::string text = engine::environment().compile == "0"
                                 ? std::string(report::kNoMachineCode)
                                 : report::machine_code_text(fidelity);
    std::fputs(text.c_str(), stderr);
  });
  return made;
}

}  // namespace kiln::watch
