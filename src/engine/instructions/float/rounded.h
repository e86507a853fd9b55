// SPDX-License-Identifier: Apache-2.0
// Which floating-point instructions round otherwise than to the nearest, and how are they lowered?
#pragma once

#include "engine/decode/lowering.h"

namespace kiln::engine {

// FE_TONEAREST, or what .rz, .rm and .rp ask for.
int rounding_of(Lowering& l);

// add, sub, mul, div, rcp, sqrt, fma and mad of f32 and f64.
bool lower_rounded(Lowering& l, int rounding);

}  // namespace kiln::engine
