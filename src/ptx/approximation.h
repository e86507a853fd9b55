// SPDX-License-Identifier: Apache-2.0
// Which instructions may give other last bits on a GPU than on the engine, and within which bound?
// The rows PTX_BOUND of instructions.def. Everything else is exact: the same bits on both.
#pragma once

#include <string_view>

#include "ptx/module.h"

namespace kiln::ptx {

struct Approximation {
  std::string_view mnemonic, modifier;
  std::string_view type;   // the last word of the instruction; empty: any
  std::string_view bound;  // "2 ulp"; empty: exact, in spite of a row below
};

// Null: it is exact.
const Approximation* approximation_of(const Instruction& instruction);

}  // namespace kiln::ptx
