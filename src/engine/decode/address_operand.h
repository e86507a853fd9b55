// SPDX-License-Identifier: Apache-2.0
// How does an instruction with several addresses store them? As the place of the base and an offset
// for each; they are read lane by lane.
#pragma once

#include "engine/decode/lowering.h"
#include "engine/machine/access.h"

namespace kiln::engine {

struct LaneValue {
  uint32_t slot = 0;
  uint8_t bytes = 8;
  bool uniform = false;

  uint64_t of(Warp& warp, uint32_t lane) const {
    if (bytes == 8) return warp.lanes<uint64_t>(slot)[uniform ? 0 : lane];
    if (bytes == 4) return warp.lanes<uint32_t>(slot)[uniform ? 0 : lane];
    return warp.lanes<uint16_t>(slot)[uniform ? 0 : lane];
  }
};

struct AddressOperand {
  LaneValue base;
  int64_t offset = 0;
  ptx::Space space = ptx::Space::Generic;

  uint64_t of(Warp& warp, uint32_t lane) const {
    const uint64_t at = base.of(warp, lane) + static_cast<uint64_t>(offset);
    return base.bytes == 4 ? at & 0xffffffffu : at;
  }
};

inline bool lane_value(Lowering& l, const ptx::Operand& operand, ptx::Type type, LaneValue* out) {
  Source source;
  if (!l.source(operand, type, &source)) return false;
  *out = {source.offset, static_cast<uint8_t>(ptx::bytes_of(type)), source.uniform};
  return true;
}

inline bool address_operand(Lowering& l, const ptx::Operand& operand, ptx::Space space,
                            AddressOperand* out) {
  Source base;
  uint32_t base_bytes = 8;
  out->space = space;
  if (operand.base_is_register) {
    // Registers stored as base and step are read as lanes: these instructions are rare.
    ptx::Operand reg;
    reg.kind = ptx::OperandKind::Register;
    reg.reg = operand.reg;
    base_bytes = l.register_bytes(reg);
    if (base_bytes < 4) return l.refuse("an address of less than 32 bits");
    if (!l.register_source(operand.reg, &base)) return false;
    out->offset = operand.offset;
  } else if (!l.address(operand, &base, &base_bytes, &out->offset, &out->space)) {
    return false;
  }
  out->base = {base.offset, static_cast<uint8_t>(base_bytes), base.uniform};
  return true;
}

template <class Body>
const Op* for_each_lane(Warp& warp, const Op* op, Body body) {
  for (uint32_t rest = warp.mask; rest; rest &= rest - 1) {
    if (!body(static_cast<uint32_t>(__builtin_ctz(rest)))) return nullptr;
  }
  return op + 1;
}

}  // namespace kiln::engine
