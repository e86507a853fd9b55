// SPDX-License-Identifier: Apache-2.0
// Which handlers does the decoder itself emit? Guards, the ends of functions, inverted predicates.
#pragma once

#include "engine/program/program.h"

namespace kiln::engine {

const Op* run_guard_next(Warp& warp, const Op* op);     // @p before one simple Op
const Op* run_branch_around(Warp& warp, const Op* op);  // @p before anything else
const Op* run_exit(Warp& warp, const Op* op);
const Op* run_barrier(Warp& warp, const Op* op);
const Op* run_return(Warp& warp, const Op* op);
const Op* run_predicate_invert(Warp& warp, const Op* op);

}  // namespace kiln::engine
