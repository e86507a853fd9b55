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

struct Form {
  std::string_view lowering;  // the function of the engine that decodes it, for the reference page
  std::string_view mnemonic;
  std::string_view modifiers;
  std::string_view types;
  std::string_view other_types;
  std::string_view operands;
};

std::span<const Form> forms();

struct FormMatch {
  uint32_t form = 0;               // index into forms()
  std::optional<Type> type;        // what matched T
  std::optional<Type> other_type;  // what matched U
};

// The first row that fits, or nothing.
std::optional<FormMatch> match_form(const Instruction& instruction);

// Why no row fits: "'mma' is not known", "'mul.hi.u8' is not known: no form of 'mul' has these
// modifiers".
std::string why_unknown(const Instruction& instruction);

}  // namespace kiln::ptx
