// SPDX-License-Identifier: Apache-2.0
// Does machine code pay? Entering it costs a few hundred instructions, for checks and for values
// that are read and written back, so short phases are faster interpreted. The numbers are counts
// of cachegrind on aarch64, corrected where measured times differ.
#include <algorithm>

#include "engine/compile/emit.h"

namespace kiln::engine {
namespace {

// An entry, the same for code that checks itself, and the extra cost where lanes diverge: the
// places at which lanes wait are cleared, copied and passed to the interpreter. On x86-64, leaving
// and entering the interpreter takes twice the time, except for phases that end at a barrier, where
// one warp takes the next ones along.
#if defined(__x86_64__)
constexpr double kEntry = 340, kOwnEntry = 220, kApartEntry = 450;
#else
constexpr double kEntry = 180, kOwnEntry = 80, kApartEntry = 250;
#endif
constexpr double kOwnEntryAtBarrier = 80;
constexpr double kPass = 40, kGuard = 40, kPlace = 35, kReach = 15;
constexpr double kOwnGuard = 45, kOwnHeader = 10, kOwnPlace = 14;
constexpr double kMoved = 10;       // a vector of 32 lanes, to or from the frame
constexpr double kMovedApart = 20;  // to the frame for some lanes; next line: of 8 or 16 bits
constexpr double kSmallApart = 60;
constexpr double kBlended = 10;  // blending with the other lanes in registers
constexpr int32_t kLeft = 120;   // exit in the middle: writes values back
constexpr double kParted = 90;   // compiled: a branch at which lanes may diverge
constexpr double kStep = 9;      // compiled: an Op; next line: on lanes
constexpr double kStepOfLanes = 16;
constexpr double kScalar = 12;                        // interpreted: an Op on scalars
constexpr double kLanes = 48;                         // on lanes
constexpr double kShuffle = 250;                      // a shuffle that is not a butterfly
constexpr double kVote = 60;                          // votes of all lanes
constexpr double kApart = 70;                         // extra cost if some lanes are elsewhere
constexpr double kAccess = 60;                        // a load or store of base and step
constexpr double kBranchApart = 180;                  // a branch at which lanes diverge
constexpr double kStoreApart = 220;                   // a store that some lanes skip
constexpr double kRowAccess = 110;                    // a load or store of several rows
constexpr double kAtomic = 900, kAtomicMade = 260;    // interpreted, compiled
constexpr double kAtomicCalled = 700;                 // compiled, by a call
constexpr double kByLanes = 300, kRowsByLanes = 900;  // through 32 addresses
// Compiled, per Op and per pass; x86-64 has instructions for it.
#if defined(__x86_64__)
constexpr double kGather = 60, kGatherOnce = 10;
#else
constexpr double kGather = 190, kGatherOnce = 10;
#endif
constexpr double kStrided = 70;  // through addresses that rise by another step
constexpr double kColumn = 50;   // compiled: local memory
constexpr double kRounds = 4;    // of a loop, at least
constexpr double kWarps = 4;     // of a block
// For a warp at a barrier: the way through the block to the next warp, interpreted.
constexpr double kDetour = 90;
constexpr double kMargin = 1.2;  // error of an estimate
// The same where lanes diverge outside a loop: one entry, of which each lane runs a part.
constexpr double kMarginApart = 1.25;

// Are some lanes elsewhere while the interpreter runs the Op? If all lanes enter the phase, this
// holds only between a branch at which they diverge and the point where they converge.
bool runs_for_some(const Plan& plan, const Step& step) {
  if (!plan.apart || plan.some) return plan.masked;
  return step.d && plan.variables[*step.d].blended;
}

// Is the address base and step, but with lanes that are not neighbours?
bool is_strided(const Plan& plan, const Step& step) {
  if (!(step.op.x & (kAddressAffine | kAddressRows))) return false;
  const bool of_header = step.place.of == Place::Of::Header;
  const Pattern2& steps = of_header ? step.place.steps : plan.variables[step.place.variable].steps;
  return steps.step != 0 && steps.step != memory_bytes(step);
}

// What the interpreter spends on one Op. Where lanes diverge this includes a copy of the Op and the
// blending of its result.
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
  if (step.meaning.does == Does::Atomic)
    return is_change_called(step) ? kAtomicCalled : kAtomicMade;
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
  // Code that continues with the next warps is entered once for all of them.
  bool pay(const Plan& plan, bool goes_on) const {
    const double around = plan.meets && !plan.apart ? kDetour : 0;
    const double rounds = plan.phase.loops ? kRounds : goes_on ? kWarps : 1;
    const double margin = plan.apart && !plan.phase.loops ? kMarginApart : kMargin;
    return (entering + each * rounds) * margin < interpreted * rounds + around;
  }
};

// The most that the interpreter spends on one Op if lanes diverge.
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
