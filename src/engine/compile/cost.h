// SPDX-License-Identifier: Apache-2.0
// Does it pay to leave the interpreter for a phase?
#pragma once

#include "engine/compile/emit.h"

namespace kiln::engine {

// Whatever the code will be like: saves making it.
bool may_pay(const Plan& plan);
// By an estimate of the instructions that both ways take for a warp.
bool pays(const Plan& plan, const Emitted& made);

}  // namespace kiln::engine
