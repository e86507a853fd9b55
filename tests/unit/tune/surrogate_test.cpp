// SPDX-License-Identifier: Apache-2.0
#include "tune/surrogate.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kiln::tune {
namespace {

const Space& grid() {
  static const Space space = *Space::from_flags({"A=0,1,2,3,4", "B=0,1,2,3,4"}, {});
  return space;
}

TEST(Surrogate, KnowsWhatWasTimed) {
  const Surrogate model(grid(), {{0, 0}, {4, 4}, {2, 1}}, {5.0, 4.0, 4.5}, {});
  EXPECT_NEAR(model.guess({0, 0}).log_us, 5.0, 0.02);
  EXPECT_NEAR(model.guess({4, 4}).log_us, 4.0, 0.02);
  EXPECT_LT(model.guess({0, 0}).deviation, 0.1 * model.guess({0, 4}).deviation);
}

TEST(Surrogate, AddsUpWhatEachValueDoes) {
  const Surrogate model(grid(), {{0, 0}, {4, 0}, {0, 4}, {2, 2}}, {5.0, 4.5, 4.5, 4.6}, {});
  EXPECT_LT(model.guess({4, 4}).log_us, model.guess({0, 1}).log_us);
  EXPECT_LT(model.guess({4, 4}).log_us, 4.6);
}

TEST(Surrogate, HopesForWhatIsLikelyFasterOrUnknown) {
  const Surrogate model(grid(), {{0, 0}, {1, 0}, {2, 0}}, {5.0, 4.8, 4.6}, {});
  EXPECT_GT(model.hope({3, 0}, 4.6), model.hope({0, 1}, 4.6));
  EXPECT_GT(model.hope({3, 0}, 4.6), model.hope({2, 0}, 4.6));
  EXPECT_GT(model.hope({0, 0}, 4.6), 0);
}

TEST(Surrogate, WhatIsUnderWayIsNotHopedForAgain) {
  const Surrogate before(grid(), {{0, 0}, {1, 0}, {2, 0}}, {5.0, 4.8, 4.6}, {});
  const Surrogate after(grid(), {{0, 0}, {1, 0}, {2, 0}}, {5.0, 4.8, 4.6}, {{3, 0}});
  EXPECT_NEAR(after.guess({3, 0}).log_us, before.guess({3, 0}).log_us, 0.02);
  EXPECT_LT(after.hope({3, 0}, 4.6), 0.3 * before.hope({3, 0}, 4.6));
}

// All alike, or one alone: no division by nothing.
TEST(Surrogate, EqualTimesGiveFiniteGuesses) {
  for (const Surrogate& model :
       {Surrogate(grid(), {{0, 0}}, {5.0}, {{1, 1}}),
        Surrogate(grid(), {{0, 0}, {0, 1}, {3, 3}}, {5.0, 5.0, 5.0}, {})}) {
    EXPECT_NEAR(model.guess({4, 2}).log_us, 5.0, 1e-6);
    EXPECT_TRUE(std::isfinite(model.hope({4, 2}, 5.0)));
  }
}

}  // namespace
}  // namespace kiln::tune
