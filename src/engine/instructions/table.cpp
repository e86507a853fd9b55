// SPDX-License-Identifier: Apache-2.0
// Which function decodes which row of instructions.def?
#include "engine/instructions/lowerings.h"
#include "engine/instructions/lowerings_async.h"
#include "engine/instructions/lowerings_matrix.h"
#include "engine/instructions/lowerings_more.h"
#include "engine/instructions/lowerings_texture.h"

namespace kiln::engine {
namespace {

constexpr LowerFunction kLowerFunctions[] = {
#define PTX_FORM(lowering, mnemonic, modifiers, types, other_types, operands, traits) &lowering,
#include "ptx/instructions.def"
#undef PTX_FORM
};

}  // namespace

LowerFunction lower_function(uint32_t form) { return kLowerFunctions[form]; }

}  // namespace kiln::engine
