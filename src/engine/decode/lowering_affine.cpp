// SPDX-License-Identifier: Apache-2.0
// Which operands are base and step, and where do their lanes come from if an Op needs them?
#include "engine/decode/lowering.h"
#include "engine/program/specials.h"

namespace kiln::engine {

bool Lowering::special_in_steps(Special special) const {
  return keeps_steps() && (special == Special::TidX || special == Special::LaneId ||
                           (variant_.narrow_rows() && special == Special::TidY));
}

bool Lowering::special_shared(Special special) const {
  return (keeps_steps() && special == Special::TidZ) ||
         (variant_.rows_fill_warps && special == Special::TidY);
}

uint32_t Lowering::affine_special(Special special) {
  auto found = specials_.find(special);
  if (found != specials_.end()) return found->second;
  uint32_t header = allocate(kAffineLanes + 4 * kWarpSize, 64);
  program_.specials.push_back({special, header, true, true});
  return specials_[special] = header;
}

namespace {

// Bytes of a lane of the result.
uint32_t affine_bytes(const Op& op, bool rows) {
  switch (const AffineKind kind = static_cast<const AffineOp*>(op.data)->kind) {
    case AffineKind::Add:
    case AffineKind::Sub:
    case AffineKind::Mul:
    case AffineKind::Mad:
    case AffineKind::ShiftLeft:
      return op.run == affine_handler(kind, 8, rows) ? 8 : 4;
    case AffineKind::Narrow:
      return 4;
    default:
      return 8;
  }
}

}  // namespace

void Lowering::materialize_after(uint32_t header, uint32_t defined_at) {
  if (!materialized_.insert(header).second) return;
  Op op;
  op.run = &run_materialize;
  op.d = header;
  op.x = 4;  // bytes of a lane
  op.effect = Effect::Scalar;
  if (defined_at == ~0u) {
    prologue_.push_back(op);
  } else {
    op.site = program_.ops[defined_at].site;
    op.x = static_cast<uint8_t>(affine_bytes(program_.ops[defined_at], variant_.narrow_rows()));
    after_.emplace(defined_at, op);
  }
}

bool Lowering::affine_term(const ptx::Operand& operand, ptx::Type type, AffineTerm* term,
                           Source* on_lanes) {
  uint32_t header = 0;
  if (operand.kind == ptx::OperandKind::Register) {
    const Place& p = places_[operand.reg];
    if (!p.known || (!p.uniform && !p.affine) || p.of_stretch ||
        register_bytes(operand) != ptx::bytes_of(type))
      return false;
    if (p.affine) header = p.offset;
  } else if (operand.kind == ptx::OperandKind::Special && ptx::bytes_of(type) == 4) {
    for (const SpecialRow& row : kSpecials) {
      if (row.name == operand.name && special_in_steps(row.special))
        header = affine_special(row.special);
    }
  }
  if (header) {
    *term = {header, true};
    *on_lanes = {header + kAffineLanes, false};
    return true;
  }
  if (operand.kind == ptx::OperandKind::Special) {
    for (const SpecialRow& row : kSpecials) {
      if (row.name == operand.name && row.lanes && !special_shared(row.special)) return false;
    }
  }
  if (!source(operand, type, on_lanes) || !on_lanes->uniform) return false;
  *term = {on_lanes->offset, false};
  return true;
}

bool Lowering::affine_dest(const ptx::Operand& operand, uint32_t bytes) const {
  return keeps_steps() && dest_uniform(operand, true) && register_bytes(operand) == bytes;
}

bool Lowering::emit_affine(AffineKind kind, uint32_t operand_bytes, uint32_t result_bytes,
                           const AffineTerm (&terms)[3], Handler on_lanes,
                           const Source (&lane_sources)[3]) {
  const ptx::Operand& to = operand(0);
  Place& p = places_[to.reg];
  p.known = true;
  p.affine = true;
  p.offset = allocate(kAffineLanes + result_bytes * kWarpSize, 64);
  p.defined_at = static_cast<uint32_t>(program_.ops.size());
  AffineOp how;
  how.kind = kind;
  for (int i = 0; i < 3; ++i) how.terms[i] = terms[i];
  how.on_lanes.run = on_lanes;
  how.on_lanes.d = p.offset + kAffineLanes;
  how.on_lanes.a = lane_sources[0].offset;
  how.on_lanes.b = lane_sources[1].offset;
  how.on_lanes.c = lane_sources[2].offset;
  Op& op = emit(affine_handler(kind, operand_bytes, variant_.narrow_rows()));
  op.d = p.offset;
  op.effect = Effect::Scalar;
  op.data = own(how);
  return true;
}

}  // namespace kiln::engine
