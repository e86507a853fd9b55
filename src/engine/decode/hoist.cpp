// SPDX-License-Identifier: Apache-2.0
// How are the Ops found that hold for a launch or a block, and how does a frame go on to the next
// warp?
#include "engine/decode/hoist.h"

#include <algorithm>
#include <set>

#include "engine/decode/fuse.h"

namespace kiln::engine {
namespace {

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

// The headers that the Ops of each warp read; empty: one of them may read any. The others are steps
// on the way, which are computed again with their block.
std::set<uint32_t> headers_read(const std::vector<PlacedOp>& ops) {
  std::set<uint32_t> read = {kScratch};
  for (const PlacedOp& placed : ops) {
    const Op& op = placed.op;
    if (placed.tier != Tier::Warp) continue;
    read.insert({op.a, op.b, op.c, op.d});
    if (!op.data) continue;
    if (op.effect == Effect::Scalar) {
      for (const AffineTerm& term : static_cast<const AffineOp*>(op.data)->terms)
        read.insert(term.offset);
    } else if (is_compare_affine(op.run)) {
      for (const AffineTerm& term : compared(op)) read.insert(term.offset);
    } else {
      return {};
    }
  }
  return read;
}

}  // namespace

void find_tiers(Program& program, std::unordered_map<uint32_t, Tier> known,
                std::vector<PlacedOp>& ops) {
  std::unordered_map<uint32_t, uint8_t>
      advancing;  // headers that rise with the thread: how they are widened
  std::vector<uint32_t> order;
  std::set<uint32_t> threads;  // the headers of %tid.x and %tid.y
  for (const SpecialSlot& slot : program.specials) {
    if ((slot.special != Special::TidX && slot.special != Special::TidY) || !slot.affine) continue;
    threads.insert(slot.offset);
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
      rises = rises && (term.affine ? advancing.count(term.offset) != 0
                                    : tier_at(term.offset) != Tier::Warp);
    }
    if (!rises) continue;
    placed.tier = Tier::Block;
    advancing[op.d] = 0;
    order.push_back(op.d);
    for (const AffineTerm& term : how.terms) {
      // They themselves never wrap around.
      if (term.affine && !threads.count(term.offset)) advancing[term.offset] |= check_of(how.kind);
    }
  }
  const std::set<uint32_t> read = headers_read(ops);
  for (uint32_t offset : order) {
    if (read.empty() || read.count(offset) || advancing[offset])
      program.advances.push_back({offset, advancing[offset]});
  }
}

}  // namespace kiln::engine
