// SPDX-License-Identifier: Apache-2.0
// Which conversions have fast handlers although they round, or their registers are wider than their
// types?
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

// Returns false and emits nothing if there is no such handler.
bool convert_common(Lowering& l, const CommonConversion& how);

// For conversions that read or write a 16-bit float, or convert a float to an integer. Null: none.
Handler float_handler_for(const CommonConversion& how);

class Meanings;
void describe_common(Meanings& to);
void describe_floats(Meanings& to);
void describe_pairs(Meanings& to);  // convert_small.cpp

// Extends 32 lanes of 32 bits to 64.
Handler widening_of_lanes(bool is_signed);

}  // namespace kiln::engine
