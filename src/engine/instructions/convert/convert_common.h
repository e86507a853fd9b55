// SPDX-License-Identifier: Apache-2.0
// Which conversions have fast handlers though their registers are wider than their types, or they
// round?
#pragma once

#include "engine/decode/lowering.h"
#include "engine/numbers/small_formats.h"

namespace kiln::engine {

struct CommonConversion {
  ptx::Type from, to;
  uint32_t from_register, to_register;  // bytes; 0: not a register
  Rounding rounding;
  bool integral, saturate, flush;
};

// False: there is none, and nothing was emitted.
bool convert_common(Lowering& l, const CommonConversion& how);

// Of conversions that read or write a float of 16 bits, or make an integer of a float; null: there
// is none.
Handler float_handler_for(const CommonConversion& how);

class Meanings;
void describe_common(Meanings& to);
void describe_floats(Meanings& to);
void describe_pairs(Meanings& to);  // convert_small.cpp

// 32 lanes of 32 bits to 64.
Handler widening_of_lanes(bool is_signed);

}  // namespace kiln::engine
