// SPDX-License-Identifier: Apache-2.0
// How are predicates combined and copied by the instructions that compute them?
#pragma once

#include "engine/decode/lowering.h"

namespace kiln::engine {

enum Logic : uint8_t { kAnd, kOr, kXor };

// By the modifier .and, .or or .xor.
Logic logic_of(Lowering& l);
void emit_logic(Lowering& l, Logic logic, uint32_t a, bool invert_a, uint32_t b, uint32_t d);
void emit_copy_predicate(Lowering& l, uint32_t from, uint32_t to, bool invert);

}  // namespace kiln::engine
