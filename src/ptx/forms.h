// SPDX-License-Identifier: Apache-2.0
// Which instructions of PTX does kiln know? The rows of instructions.def, and how an instruction is
// matched to its row.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ptx/module.h"
#include "ptx/types.h"

namespace kiln::ptx {

// The words of the last column.
enum Trait : uint16_t {
  kStraight = 1,
  kParks = 2,
  kGuarded = 4,
  kPolls = 8,
  kPollsIfStrong = 16,
  kWaits = 32,
  kVariant = 64,
  kAnyOrder = 128,
  kFlop = 256,
  kFma = 512,
};

struct Form {
  std::string_view lowering;  // the function of the engine that decodes it, for the reference page
  std::string_view mnemonic;
  std::string_view modifiers;
  std::string_view types;
  std::string_view other_types;
  std::string_view operands;
  uint16_t traits;  // of Trait

  bool has(Trait trait) const { return traits & trait; }
};

std::span<const Form> forms();

struct FormMatch {
  uint32_t form = 0;               // index into forms()
  std::optional<Type> type;        // what matched T
  std::optional<Type> other_type;  // what matched U
};

// The first row that fits, or nothing.
std::optional<FormMatch> match_form(const Instruction& instruction);

// Does it read what another thread writes, in a way that asks for the newest value?
bool polls(const Form& form, const Instruction& instruction);

// Calls with each operand that the instruction may write.
template <class Then>
void each_written(const Form& form, const Instruction& instruction, Then then) {
  // What follows a star is written for all that is known of it.
  if (form.operands == "*") {
    for (const Operand& operand : instruction.operands) then(operand);
    return;
  }
  // Every operand that a form may write stands first; a second one (d|p) may follow.
  constexpr std::string_view kWritten = "dDpv";
  if (instruction.operands.empty() || kWritten.find(form.operands[0]) == kWritten.npos) return;
  then(instruction.operands[0]);
  if (instruction.operands.size() > 1 && instruction.operands[1].kind == OperandKind::Predicate)
    then(instruction.operands[1]);
}

// Why no row fits: "'mma' is not known", "'mul.hi.u8' is not known: no form of 'mul' has these
// modifiers".
std::string why_unknown(const Instruction& instruction);

}  // namespace kiln::ptx
