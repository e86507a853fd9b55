// SPDX-License-Identifier: Apache-2.0
// Which functions decode the texture and surface forms of instructions.def?
#pragma once

#include "engine/decode/lowering.h"

namespace kiln::engine {

bool texture_fetch(Lowering&);
bool surface_load(Lowering&);
bool surface_store(Lowering&);

}  // namespace kiln::engine
