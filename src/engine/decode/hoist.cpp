// SPDX-License-Identifier: Apache-2.0
// How are the Ops found that run once per launch or block? How does a frame continue with the next
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

// The headers that the Ops of each warp read; empty: any may be read. All others are intermediate
// values, which are computed again for each block.
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

// Values computed from %ctaid.x by sums, and by products with values that do not depend on it,
// increase by a fixed amount from block to block along x; all other values of a block stay the
// same. So the next block costs one addition per value, where its Ops cost ten times as much. A
// factor that depends on %ctaid.y or %ctaid.z fixes the amount for one row of the grid only.
class BlockSteps {
 public:
  explicit BlockSteps(const std::unordered_map<uint32_t, Tier>& tiers) : tiers_(tiers) {}
  // Returns false if some value of a block is of another kind.
  bool find(const Program& program, const std::vector<PlacedOp>& ops) {
    for (const SpecialSlot& slot : program.specials) {
      if (slot.tier == Tier::Launch) continue;
      if (!is_known(slot)) return false;
      if (slot.special == Special::CtaidX) add({slot.offset, false, 0, {}});
    }
    if (steps.size() != 1) return false;
    for (const PlacedOp& placed : ops) {
      if (placed.tier != Tier::Block) continue;
      if (!(placed.op.data ? add_affine(placed.op) : add_scalar(placed.op))) return false;
    }
    return true;
  }
  std::vector<BlockStep> steps;
  bool differ_by_row = false;  // the amounts, between rows of the grid

 private:
  using Part = BlockStep::Part;
  static bool is_known(const SpecialSlot& slot) {
    if (slot.tier == Tier::Warp) return false;
    return slot.special == Special::TidX || slot.special == Special::TidY ||
           slot.special == Special::TidZ || slot.special == Special::CtaidX ||
           slot.special == Special::CtaidY || slot.special == Special::CtaidZ;
  }
  void add(const BlockStep& step) {
    found_[step.offset] = static_cast<uint32_t>(steps.size());
    steps.push_back(step);
  }
  bool rises(uint32_t offset) const { return offset != kScratch && found_.count(offset) != 0; }

  // Adds `a`, or `a` times a factor, which is a scalar. Returns false if the factor is not the same
  // for all blocks of a row.
  bool add_part(BlockStep* to, const AffineTerm& a, const AffineTerm* factor, Part part) {
    if (!rises(a.offset)) return true;
    part.from = found_.at(a.offset);
    if (factor) {
      if (factor->affine || rises(factor->offset)) return false;
      part.factor = factor->offset;
      const auto tier = tiers_.find(factor->offset);
      differ_by_row |= tier == tiers_.end() || tier->second != Tier::Launch;
    }
    if (part.widens) {
      if (part.from == 0) return false;  // a scalar: nothing checks whether it wraps
      steps[part.from].check = true;
    }
    to->parts[to->count++] = part;
    return true;
  }

  bool add_affine(const Op& op) {
    const AffineOp& how = *static_cast<const AffineOp*>(op.data);
    const AffineTerm &a = how.terms[0], &b = how.terms[1], &c = how.terms[2];
    BlockStep step{op.d, false, 0, {}};
    const bool is_signed = check_of(how.kind) == kCheckSigned, widens = check_of(how.kind) != 0;
    const Part plain, less{.negative = true}, by{.factor_bytes = 4, .shifts = true};
    // The low bits of a product depend only on the low bits of the factors.
    const Part times{.factor_bytes = 4, .is_signed = is_signed, .widens = widens};
    const Part times_wide{.factor_bytes = 8};
    bool fine = true;
    switch (how.kind) {
      case AffineKind::Add:
        fine = add_part(&step, a, nullptr, plain) && add_part(&step, b, nullptr, plain);
        break;
      case AffineKind::Sub:
        fine = add_part(&step, a, nullptr, plain) && add_part(&step, b, nullptr, less);
        break;
      case AffineKind::ShiftLeft:
        fine = !rises(b.offset) && add_part(&step, a, &b, by);
        break;
      case AffineKind::WidenSigned:
      case AffineKind::WidenUnsigned:
        fine = add_part(&step, a, nullptr, {.widens = true});
        break;
      case AffineKind::Narrow:
        fine = add_part(&step, a, nullptr, plain);
        break;
      default: {
        const Part& by_one = !widens && is_wide(op) ? times_wide : times;
        fine = add_part(&step, a, &b, by_one) && add_part(&step, b, &a, by_one) &&
               add_part(&step, c, nullptr, plain);
      }
    }
    if (fine && step.count) add(step);
    return fine;
  }
  // Do the result and the factors have 64 bits?
  static bool is_wide(const Op& op) {
    const AffineKind kind = static_cast<const AffineOp*>(op.data)->kind;
    return op.run == affine_handler(kind, 8, true) || op.run == affine_handler(kind, 8, false);
  }

  bool add_scalar(const Op& op) const { return !rises(op.a) && !rises(op.b) && !rises(op.c); }

  const std::unordered_map<uint32_t, Tier>& tiers_;  // of scalars, by offset
  std::unordered_map<uint32_t, uint32_t> found_;     // by offset: index of its step
};

}  // namespace

void find_tiers(Program& program, std::unordered_map<uint32_t, Tier> known,
                std::vector<PlacedOp>& ops) {
  std::unordered_map<uint32_t, uint8_t>
      advancing;  // headers that increase with the thread, and how they are widened
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
      // %tid.x and %tid.y never wrap around.
      if (term.affine && !threads.count(term.offset)) advancing[term.offset] |= check_of(how.kind);
    }
  }
  if (BlockSteps all(known); all.find(program, ops)) {
    program.block_steps = std::move(all.steps);
    program.steps_differ_by_row = all.differ_by_row;
  }
  const std::set<uint32_t> read = headers_read(ops);
  for (uint32_t offset : order) {
    if (read.empty() || read.count(offset) || advancing[offset])
      program.advances.push_back({offset, advancing[offset]});
  }
}

}  // namespace kiln::engine
