// SPDX-License-Identifier: Apache-2.0
// Entering machine code costs a few hundred instructions, for what is checked, read and written
// back: short phases are interpreted faster. The numbers are counts of cachegrind on aarch64.
#include "engine/compile/cost.h"

namespace kiln::engine {
namespace {

constexpr double kEntry = 180, kPass = 40, kGuard = 40, kPlace = 35, kReach = 15;
constexpr double kMoved = 10;       // a vector of 32 lanes to the frame or from it
constexpr double kStep = 9;         // an Op, compiled
constexpr double kScalar = 12;      // interpreted: an Op on scalars,
constexpr double kLanes = 48;       // on lanes,
constexpr double kAccess = 45;      // a load or a store of base and step,
constexpr double kRowAccess = 110;  // the same of several rows,
constexpr double kByLanes = 170, kRowsByLanes = 900;  // by 32 addresses
constexpr double kRounds = 4;                         // of a loop, at least
constexpr double kMargin = 1.2;                       // what an estimate may be wrong by

}  // namespace

bool pays(const Plan& plan, const Emitted& made) {
  const bool rows = plan.row_lanes < kWarpSize;
  double interpreted = 0;
  for (const Step& step : plan.steps) {
    const Does does = step.meaning.does;
    if (does == Does::Load || does == Does::Store) {
      if (step.op.x & (kAddressAffine | kAddressRows))
        interpreted += rows ? kRowAccess : kAccess;
      else
        interpreted += step.op.x & kAddressUniform ? kAccess : rows ? kRowsByLanes : kByLanes;
    } else {
      interpreted += step.op.effect == Effect::Scalar || !step.d ? kScalar : kLanes;
    }
  }
  double moved = 0;
  for (const Variable& v : plan.variables) {
    if (v.home && v.kept == Kept::Vector) moved += (v.input + v.written) * kMoved * v.bytes / 4;
  }
  const double passes = static_cast<double>(kWarpSize) / made.lanes;
  const double entering = kEntry + passes * kPass +
                          kGuard * static_cast<double>(made.guards.size()) +
                          kPlace * static_cast<double>(made.prepared.size()) + moved;
  const double each = kStep * static_cast<double>(plan.steps.size()) +
                      passes * kReach * static_cast<double>(made.reaches.size());
  const double rounds = plan.phase.loops ? kRounds : 1;
  return (entering + each * rounds) * kMargin < interpreted * rounds;
}

}  // namespace kiln::engine
