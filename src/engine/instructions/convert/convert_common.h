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
  bool saturate, flush;
};

// False: there is none, and nothing was emitted.
bool convert_common(Lowering& l, const CommonConversion& how);

class Meanings;
void describe_common(Meanings& to);

}  // namespace kiln::engine
