// SPDX-License-Identifier: Apache-2.0
// What would a search have found with fewer trials? Answered from the outcomes of a run that tried
// all, at no cost.
#pragma once

#include "base/json.h"
#include "tune/journal.h"
#include "tune/search.h"

namespace kiln::tune {

struct Replay {
  uint64_t tried = 0, timed = 0;  // the others were refused before the GPU, or failed there
  Outcome found, best;            // of the search; of all
  double ratio = 1;               // of their times
};

// `result` is what result_json made of a run; `ahead` variants are given out before the first of
// them is known, as builders do it.
Result<Replay> replay(const Json& result, Budget budget, size_t ahead);

}  // namespace kiln::tune
