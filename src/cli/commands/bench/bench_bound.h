// SPDX-License-Identifier: Apache-2.0
// What is the least time that a GPU needs for the op of a benchmark? One call on the engine is
// counted for it.
#pragma once

#include "cli/commands/counted_op.h"
#include "results/bench.h"

namespace kiln::cli {

// `gpu`: a name of counters/gpus.def; "": the one that was measured on, for the engine the default.
Status add_bound(const OpToCount& call, const std::string& gpu, Context& context,
                 results::BenchResult& result);

}  // namespace kiln::cli
