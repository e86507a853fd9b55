// SPDX-License-Identifier: Apache-2.0
// Entering machine code costs a few hundred instructions, for what is checked, read and written
// back: short phases are interpreted faster. The numbers are counts of cachegrind on aarch64.
#include <algorithm>

#include "engine/compile/emit.h"

namespace kiln::engine {
namespace {

// An entry; the same of code that checks itself; and more of it where lanes go apart: who waits
// where is cleared, copied and handed to the interpreter. On x86-64 the interpreter is left and
// begun again in twice the time; but for phases that end at a barrier, of which one warp takes the
// next ones along.
#if defined(__x86_64__)
constexpr double kEntry = 340, kOwnEntry = 220, kApartEntry = 450;
#else
constexpr double kEntry = 180, kOwnEntry = 80, kApartEntry = 250;
#endif
constexpr double kOwnEntryAtBarrier = 80;
constexpr double kPass = 40, kGuard = 40, kPlace = 35, kReach = 15;
constexpr double kOwnGuard = 45, kOwnHeader = 10, kOwnPlace = 14;
constexpr double kMoved = 10;       // a vector of 32 lanes to the frame or from it,
constexpr double kMovedApart = 20;  // to it for some lanes, and of 8 or 16 bits
constexpr double kSmallApart = 60;
constexpr double kBlended = 10;  // and beside the others in registers
constexpr int32_t kLeft = 120;   // code that is left in the middle: what it has is written back
constexpr double kParted = 90;   // a branch, compiled, at which lanes may go apart
constexpr double kStep = 9;      // an Op, compiled; and on lanes:
constexpr double kStepOfLanes = 16;
constexpr double kScalar = 12;        // interpreted: an Op on scalars,
constexpr double kLanes = 48;         // on lanes,
constexpr double kShuffle = 250;      // a shuffle that is no butterfly,
constexpr double kVote = 60;          // votes of all lanes,
constexpr double kApart = 70;         // and more of it where some lanes are elsewhere;
constexpr double kAccess = 60;        // a load or a store of base and step,
constexpr double kBranchApart = 180;  // a branch at which lanes go apart,
constexpr double kStoreApart = 220;   // a store that some lanes go around,
constexpr double kRowAccess = 110;    // the same of several rows,
constexpr double kAtomic = 900, kAtomicMade = 260;    // interpreted, compiled
constexpr double kByLanes = 300, kRowsByLanes = 900;  // by 32 addresses,
// And compiled, of a pass as well; x86-64 has instructions for it.
#if defined(__x86_64__)
constexpr double kGather = 60, kGatherOnce = 10;
#else
constexpr double kGather = 190, kGatherOnce = 10;
#endif
constexpr double kStrided = 70;  // by addresses that rise by another step
constexpr double kColumn = 50;   // local memory, compiled
constexpr double kRounds = 4;    // of a loop, at least
constexpr double kWarps = 4;     // of a block
// Of a warp at a barrier: on its way through the block to the next one, interpreted.
constexpr double kDetour = 90;
constexpr double kMargin = 1.2;  // what an estimate may be wrong by
// The same where lanes go apart and no loop is: one entry, of which each lane runs a part.
constexpr double kMarginApart = 1.25;

// Are some lanes elsewhere while the interpreter runs the Op? Where all of them come, that is so
// only between a branch at which they go apart and where they meet again.
bool runs_for_some(const Plan& plan, const Step& step) {
  if (!plan.apart || plan.some) return plan.masked;
  return step.d && plan.variables[*step.d].blended;
}

// Of base and step, but its lanes are no neighbours.
bool is_strided(const Plan& plan, const Step& step) {
  if (!(step.op.x & (kAddressAffine | kAddressRows))) return false;
  const bool of_header = step.place.of == Place::Of::Header;
  const Pattern2& steps = of_header ? step.place.steps : plan.variables[step.place.variable].steps;
  return steps.step != 0 && steps.step != memory_bytes(step);
}

// What the interpreter does in place of one Op; of lanes that go apart also a copy of the Op, and
// taking over its result.
double interpreted(const Plan& plan, const Step& step) {
  const bool rows = plan.row_lanes < kWarpSize;
  const Does does = step.meaning.does;
  if (does == Does::Atomic) return kAtomic;
  const bool apart = step.under && plan.variables[*step.under].kept == Kept::Vector;
  if (apart && changes_memory(step)) return kStoreApart;
  if ((does == Does::Load || does == Does::Store) && is_local(step)) return kByLanes;
  if (does == Does::Load || does == Does::Store) {
    if (is_strided(plan, step)) return rows ? kRowsByLanes : kByLanes;
    if (step.op.x & (kAddressAffine | kAddressRows)) return rows ? kRowAccess : kAccess;
    return step.op.x & kAddressUniform ? kAccess : rows ? kRowsByLanes : kByLanes;
  }
  if (is_parts(step.meaning)) return runs_for_some(plan, step) ? kLanes + kApart : kLanes;
  if (step.vote != Vote::None) return kVote;
  if (step.exchange) return step.exchange->butterfly() ? kLanes : kShuffle;
  if (plan.apart && (does == Does::BranchIf || does == Does::BranchUnless)) return kBranchApart;
  if (step.op.effect == Effect::Scalar || !step.d || does == Does::Warpwide) return kScalar;
  return runs_for_some(plan, step) || apart ? kLanes + kApart : kLanes;
}

double gathered(const Plan& plan, const Step& step) {
  if (step.meaning.does == Does::Atomic) return kAtomicMade;
  if (step.a && is_local(step) && (step.meaning.does == Does::Load || changes_memory(step)))
    return kColumn;
  if ((step.meaning.does == Does::Load || step.meaning.does == Does::Store) &&
      is_strided(plan, step))
    return kStrided;
  return is_gather(plan, step) ? kGather * (bytes_of(step.meaning.type) == 8 ? 1.5 : 1) : 0;
}

double own_entry(const Plan& plan) { return plan.meets ? kOwnEntryAtBarrier : kOwnEntry; }

double compiled(const Plan& plan, const Step& step) {
  const bool on_lanes = step.d && plan.variables[*step.d].kept == Kept::Vector;
  double cost = (on_lanes ? kStepOfLanes : kStep) + gathered(plan, step);
  if (plan.apart && is_branch(step)) cost += kParted;
  if (plan.apart && step.d && plan.variables[*step.d].blended) cost += kBlended;
  if (step.meaning.does == Does::Warpwide && !is_called_warpwide(step)) return cost + kStep;
  return cost + kMoved * static_cast<double>(step.reads.size() + step.writes.size());
}

struct Costs {
  double interpreted = 0, entering = 0, each = 0;

  explicit Costs(const Plan& plan) {
    for (const Step& step : plan.steps) {
      interpreted += kiln::engine::interpreted(plan, step);
      each += compiled(plan, step);
    }
    for (const Variable& v : plan.variables) {
      if (!v.home || v.kept != Kept::Vector) continue;
      const double back = !plan.apart ? kMoved : v.bytes < 4 ? kSmallApart : kMovedApart;
      entering += (v.input * kMoved + v.written * back) * lane_bytes(v.bytes) / 4;
    }
  }
  // Code that goes on as the next warps is entered once for all of them.
  bool pay(const Plan& plan, bool goes_on) const {
    const double around = plan.meets && !plan.apart ? kDetour : 0;
    const double rounds = plan.phase.loops ? kRounds : goes_on ? kWarps : 1;
    const double margin = plan.apart && !plan.phase.loops ? kMarginApart : kMargin;
    return (entering + each * rounds) * margin < interpreted * rounds + around;
  }
};

// The most that the interpreter does in place of one Op if lanes go apart.
double most_apart(const Plan& plan, const Step& step) {
  const double cost = interpreted(plan, step);
  if (changes_memory(step)) return std::max(cost, kStoreApart);
  const bool loads = step.meaning.does == Does::Load || step.meaning.does == Does::LoadScalar;
  return loads || !step.d || step.op.effect == Effect::Scalar ? cost : cost + kApart;
}

}  // namespace

bool may_pay_apart(const Plan& plan) {
  if (plan.phase.loops) return true;
  double most = 0;
  for (const Step& step : plan.steps) most += most_apart(plan, step);
  const double least = kEntry + kApartEntry + kStep * static_cast<double>(plan.steps.size());
  return least * kMarginApart < most;
}

bool may_pay(const Plan& plan) {
  Costs costs(plan);
  costs.entering += plan.apart ? kEntry + kApartEntry : own_entry(plan);
  return costs.pay(plan, plan.whole);
}

namespace {

Costs costs_of(const Plan& plan, const Emitted& made) {
  Costs costs(plan);
  const double passes = static_cast<double>(kWarpSize) / made.lanes;
  if (made.checks_itself) {
    costs.entering += own_entry(plan) + kOwnPlace * static_cast<double>(made.prepared.size());
    for (const Guard& guard : made.guards)
      costs.entering += guard.in == Slot::Lanes ? kOwnGuard * guard.bytes / 4 : kOwnHeader;
  } else {
    costs.entering += kEntry + passes * kPass + kGuard * static_cast<double>(made.guards.size()) +
                      kPlace * static_cast<double>(made.prepared.size() + made.reaches.size());
  }
  if (plan.apart) costs.entering += kApartEntry;
  costs.each += passes * (kReach * static_cast<double>(made.reaches.size()) +
                          kGatherOnce * static_cast<double>(gathers(plan)));
  return costs;
}

}  // namespace

bool pays(const Plan& plan, const Emitted& made) {
  return costs_of(plan, made).pay(plan, made.goes_on);
}

int32_t saved_by(const Plan& plan, const Step& step) {
  return static_cast<int32_t>(interpreted(plan, step) - compiled(plan, step));
}

Worth worth_of(const Plan& plan, const Emitted& made) {
  const Costs costs = costs_of(plan, made);
  Worth out;
  const double around = plan.meets && !plan.apart ? kDetour : 0;
  out.entering = static_cast<int32_t>(costs.entering - around);
  out.looped = static_cast<int32_t>((costs.interpreted - costs.each) /
                                    static_cast<double>(plan.steps.size()));
  for (const Exit& exit : made.exits) {
    int32_t& sum = out.saved.emplace_back(exit.disagrees || exit.early ? -kLeft : 0);
    for (const Step& step : plan.steps) {
      if (step.index < exit.behind) sum += saved_by(plan, step);
    }
  }
  return out;
}

}  // namespace kiln::engine
