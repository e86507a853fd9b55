// SPDX-License-Identifier: Apache-2.0
// How are the Ops found that hold for a launch or a block, and how does a frame go on to the next warp?
#include "engine/hoist.h"

#include <algorithm>
#include <limits>

#include "engine/affine.h"

namespace kiln::engine {
namespace {

constexpr uint8_t kCheckSigned = 1, kCheckUnsigned = 2;

uint8_t check_of(AffineKind kind) {
  switch (kind) {
    case AffineKind::WidenSigned:
    case AffineKind::MulWideSigned:
    case AffineKind::MadWideSigned:
      return kCheckSigned;
    case AffineKind::WidenUnsigned:
    case AffineKind::MulWideUnsigned:
    case AffineKind::MadWideUnsigned:
      return kCheckUnsigned;
    default:
      return 0;
  }
}

template <class T>
bool stays_inside(int64_t first, int64_t step) {
  const int64_t last = first + step * (kWarpSize - 1);
  constexpr int64_t kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  return first >= kLeast && first <= kMost && last >= kLeast && last <= kMost;
}

}  // namespace

Tier tier_of(Special special, bool lanes, bool affine) {
  switch (special) {
    case Special::NtidX:
    case Special::NtidY:
    case Special::NtidZ:
    case Special::NctaidX:
    case Special::NctaidY:
    case Special::NctaidZ:
    case Special::NwarpId:
    case Special::NsmId:
    case Special::GridId:
    case Special::LaneId:
    case Special::LanemaskEq:
    case Special::LanemaskLe:
    case Special::LanemaskLt:
    case Special::LanemaskGe:
    case Special::LanemaskGt:
    case Special::DynamicSharedBytes:
    case Special::TotalSharedBytes:
    case Special::WorkspaceLow:
    case Special::WorkspaceHigh:
    case Special::Zero:
    case Special::ParamBase:
    case Special::SharedDynamicBase:
    case Special::LocalBase:  // of a kernel's own frame
      return Tier::Launch;
    case Special::TidX:
      return affine ? Tier::Block : Tier::Warp;
    case Special::TidY:  // of a warp that lies in one row: advance() stays in it
    case Special::TidZ:
      return lanes ? Tier::Warp : Tier::Block;
    case Special::WarpId:
      return Tier::Warp;
    default:
      return Tier::Block;
  }
}

void find_tiers(Program& program, std::unordered_map<uint32_t, Tier> known, std::vector<PlacedOp>& ops) {
  std::unordered_map<uint32_t, uint8_t> advancing;  // headers that rise with %tid.x: how they are widened
  std::vector<uint32_t> order;
  for (const SpecialSlot& slot : program.specials) {
    if (slot.special != Special::TidX || !slot.affine) continue;
    advancing[slot.offset] = 0;
    order.push_back(slot.offset);
  }
  auto tier_at = [&](uint32_t offset) {
    if (offset == kScratch) return Tier::Launch;  // no operand
    auto found = known.find(offset);
    return found == known.end() ? Tier::Warp : found->second;
  };
  for (PlacedOp& placed : ops) {
    const Op& op = placed.op;
    if (op.effect != Effect::Scalar || placed.guarded || op.run == &run_materialize) continue;
    if (!op.data) {
      placed.tier = std::max({tier_at(op.a), tier_at(op.b), tier_at(op.c)});
      if (placed.tier != Tier::Warp) known[op.d] = placed.tier;
      continue;
    }
    const AffineOp& how = *static_cast<const AffineOp*>(op.data);
    bool rises = true;
    for (const AffineTerm& term : how.terms) {
      rises = rises && (term.affine ? advancing.count(term.offset) != 0 : tier_at(term.offset) != Tier::Warp);
    }
    if (!rises) continue;
    placed.tier = Tier::Block;
    advancing[op.d] = 0;
    order.push_back(op.d);
    for (const AffineTerm& term : how.terms) {
      if (term.affine) advancing[term.offset] |= check_of(how.kind);
    }
  }
  for (uint32_t offset : order) program.advances.push_back({offset, advancing[offset]});
}

bool advance(const Program& program, Frame& frame, uint32_t from, uint32_t to) {
  const int64_t lanes = (int64_t{to} - int64_t{from}) * kWarpSize;
  for (const Advance& each : program.advances) {
    Affine& value = *reinterpret_cast<Affine*>(frame.data() + each.offset);
    if (value.state == AffineState::Lanes) return false;
    if (each.check) {  // 32 bits that another value has as 64: where they wrap around it would go on
      const int64_t step = static_cast<int32_t>(value.step);
      const uint32_t base = static_cast<uint32_t>(value.base);
      if ((each.check & kCheckSigned) && !stays_inside<int32_t>(static_cast<int32_t>(base) + step * lanes, step))
        return false;
      if ((each.check & kCheckUnsigned) && !stays_inside<uint32_t>(int64_t{base} + step * lanes, step)) return false;
    }
    value.base += value.step * static_cast<uint64_t>(lanes);
    value.state = AffineState::Steps;
  }
  return true;
}

}  // namespace kiln::engine
