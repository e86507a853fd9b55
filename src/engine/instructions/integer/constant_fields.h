// SPDX-License-Identifier: Apache-2.0
// bfe, bfi and prmt with constants for the numbers that choose bits and bytes.
#pragma once

#include "engine/decode/lowering.h"

namespace kiln::engine {

// False: nothing was emitted, and the general function of the instruction has to serve.
bool extract_constant_field(Lowering& l);
bool insert_constant_field(Lowering& l);
bool permute_by_constant(Lowering& l);

}  // namespace kiln::engine
