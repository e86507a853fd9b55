// SPDX-License-Identifier: Apache-2.0
// Is A faster than B, slower, the same, or can this run not tell?
#pragma once

#include <string_view>

#include "measure/sample/statistics.h"

namespace kiln::measure {

enum class Verdict { Same, Faster, Slower, Ambiguous };
std::string_view name_of(Verdict verdict);  // "SAME", "FASTER", "SLOWER", "AMBIGUOUS"

// Below this nobody should act on a difference: event times of one kernel in two places of a
// program differ by as much.
inline constexpr double kLeastDifference = 0.005;
// Two windows of one run differ by 1 to 3 % for the same kernel: what was not interleaved is
// reported from 3 % on.
inline constexpr double kLeastDifferenceAcrossRuns = 0.03;

struct Judgement {
  Verdict verdict = Verdict::Ambiguous;
  Ratio ratio;           // of A's time to B's: below 1 is faster
  double threshold = 0;  // differences below it are called SAME
  Ratio same_with_self;  // A against A, in the same rounds
};

// All were taken in the same rounds, in random order; `same` and `same_again` are one contender
// twice: how large the ratio of equals is here.
Judgement judge(Samples a, Samples b, Samples same, Samples same_again, uint64_t seed = 0);

// A ratio against a threshold: beyond it with the whole interval, within it with the whole
// interval, or neither.
Verdict verdict_of(const Ratio& ratio, double threshold);

}  // namespace kiln::measure
