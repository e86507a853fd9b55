// SPDX-License-Identifier: Apache-2.0
// How are bfe, bfi and prmt lowered if the numbers that select bits and bytes are constants?
#pragma once

#include "engine/decode/lowering.h"

namespace kiln::engine {

// These return false and emit nothing if the general function of the instruction must be used.
bool extract_constant_field(Lowering& l);
bool insert_constant_field(Lowering& l);
bool permute_by_constant(Lowering& l);

}  // namespace kiln::engine
