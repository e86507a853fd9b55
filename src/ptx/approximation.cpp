// SPDX-License-Identifier: Apache-2.0
#include "ptx/approximation.h"

namespace kiln::ptx {
namespace {

constexpr Approximation kApproximations[] = {
#define PTX_FORM(lowering, mnemonic, modifiers, types, other_types, operands, words)
#define PTX_BOUND(mnemonic, modifier, type, bound) {mnemonic, modifier, type, bound},
#include "ptx/instructions.def"
#undef PTX_BOUND
#undef PTX_FORM
};

}  // namespace

const Approximation* approximation_of(const Instruction& instruction) {
  for (const Approximation& row : kApproximations) {
    if (row.mnemonic != instruction.mnemonic || !instruction.has(row.modifier)) continue;
    if (!row.type.empty() && instruction.modifiers.back() != row.type) continue;
    return row.bound.empty() ? nullptr : &row;
  }
  return nullptr;
}

}  // namespace kiln::ptx
