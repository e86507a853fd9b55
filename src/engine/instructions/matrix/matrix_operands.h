// SPDX-License-Identifier: Apache-2.0
// Which registers does a fragment have? Operands of matrix instructions are vectors with as many
// registers as the shape needs.
#pragma once

#include <vector>

#include "engine/decode/lowering.h"
#include "engine/decode/operand_parts.h"

namespace kiln::engine {

constexpr uint32_t kMostRegisters = 8;

inline bool read_parts(Lowering& l, const ptx::Operand& operand, ptx::Type type, uint32_t wanted,
                       uint32_t (&slots)[kMostRegisters], uint32_t* count) {
  auto list = parts(operand);
  if (list.size() != wanted || wanted > kMostRegisters)
    return l.refuse("the number of registers does not match the shape");
  for (size_t i = 0; i < list.size(); ++i) {
    if (!l.lanes(*list[i], type, &slots[i])) return false;
  }
  *count = wanted;
  return true;
}

inline bool write_parts(Lowering& l, const ptx::Operand& operand, uint32_t bytes, uint32_t wanted,
                        uint32_t (&slots)[kMostRegisters], uint32_t* count) {
  auto list = parts(operand);
  if (list.size() != wanted || wanted > kMostRegisters)
    return l.refuse("the number of registers does not match the shape");
  for (size_t i = 0; i < list.size(); ++i) {
    Dest d;
    if (!l.dest(*list[i], bytes, false, &d)) return false;
    slots[i] = d.offset;
  }
  *count = wanted;
  return true;
}

}  // namespace kiln::engine
