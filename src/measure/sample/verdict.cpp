// SPDX-License-Identifier: Apache-2.0
#include "measure/sample/verdict.h"

#include <algorithm>
#include <cmath>

namespace kiln::measure {
namespace {

constexpr int kResamples = 1000;
constexpr double kConfidence = 0.95;

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::Same:
      return "SAME";
    case Verdict::Faster:
      return "FASTER";
    case Verdict::Slower:
      return "SLOWER";
    case Verdict::Ambiguous:
      break;
  }
  return "AMBIGUOUS";
}

Verdict verdict_of(const Ratio& ratio, double threshold) {
  const double low = std::log(ratio.interval.low), high = std::log(ratio.interval.high),
               limit = std::log1p(threshold);
  if (low > limit) return Verdict::Slower;
  if (high < -limit) return Verdict::Faster;
  if (low >= -limit && high <= limit) return Verdict::Same;
  return Verdict::Ambiguous;
}

Judgement judge(Samples a, Samples b, Samples same, Samples same_again, uint64_t seed) {
  Judgement judgement;
  const size_t block = neighbours(a.size());
  judgement.ratio = paired_ratio(a, b, seed, kResamples, kConfidence, block);
  judgement.same_with_self =
      paired_ratio(same_again, same, seed + 1, kResamples, kConfidence, block);
  // What equals seem to differ by, with its own uncertainty, is not a difference.
  const Interval& self = judgement.same_with_self.interval;
  const double self_band = std::max(std::abs(std::log(self.low)), std::abs(std::log(self.high)));
  judgement.threshold = std::max(kLeastDifference, std::expm1(self_band));
  judgement.verdict = verdict_of(judgement.ratio, judgement.threshold);
  return judgement;
}

}  // namespace kiln::measure
