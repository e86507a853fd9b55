// SPDX-License-Identifier: Apache-2.0
// Which operands are the parts of an operand? The elements of a vector, or the operand itself.
#pragma once

#include <vector>

#include "ptx/module.h"

namespace kiln::engine {

inline std::vector<const ptx::Operand*> parts(const ptx::Operand& operand) {
  std::vector<const ptx::Operand*> out;
  if (operand.kind == ptx::OperandKind::Vector) {
    for (const ptx::Operand& e : operand.elements) out.push_back(&e);
  } else {
    out.push_back(&operand);
  }
  return out;
}

}  // namespace kiln::engine
