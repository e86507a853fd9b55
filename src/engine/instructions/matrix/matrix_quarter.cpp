// SPDX-License-Identifier: Apache-2.0
// How does a warp compute four products of 8x4 and 4x8 matrices of f16? (PTX ISA 9.7.14.5.1,
// mma.m8n8k4) Lanes 4q to 4q + 3, and the same plus 16, compute product q, with fragments of their
// own layout.
#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings_matrix.h"
#include "engine/instructions/matrix/matrix_operands.h"
#include "engine/numbers/matrix_elements.h"

namespace kiln::engine {
namespace {

constexpr uint32_t kProducts = 4, kRows = 8, kColumns = 8, kDepth = 4;

struct QuarterMultiply {
  bool a_by_columns = false, b_by_columns = false, small_c = false, small_d = false;
  uint32_t a_count = 0, b_count = 0, c_count = 0, d_count = 0;
  uint32_t a_slots[kMostRegisters], b_slots[kMostRegisters], c_slots[kMostRegisters],
      d_slots[kMostRegisters];
};

struct Place {
  uint32_t row, column;
};

uint32_t product_of(uint32_t lane) { return lane % 16 / 4; }
// The lane's own row of A, C and D, or column of B.
uint32_t line_of(uint32_t lane) { return lane % 4 + (lane < 16 ? 0 : 4); }

Place place_in_a(uint32_t lane, uint32_t i, bool by_columns) {
  return by_columns ? Place{i + (lane < 16 ? 0 : 4), lane % 4} : Place{line_of(lane), i};
}

Place place_in_b(uint32_t lane, uint32_t i, bool by_columns) {
  return by_columns ? Place{i, line_of(lane)} : Place{lane % 4, i + (lane < 16 ? 0 : 4)};
}

// Element i of the lane in C and D: eight f16 of one row, or eight f32 of two rows.
Place place_in_sum(uint32_t lane, uint32_t i, bool small) {
  if (small) return {line_of(lane), i};
  return {(lane & 1) + (i & 2) + (lane < 16 ? 0 : 4), (i & 4) + (lane & 2) + (i & 1)};
}

// Four products of 8 x 8 x 4 at once, each by 8 lanes that are not neighbours (PTX ISA 9.7.14.5.1):
// gathered into plain matrices, multiplied, and scattered back.
const Op* run_quarter_multiply(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const QuarterMultiply& how = *static_cast<const QuarterMultiply*>(op->data);
  float a[kProducts][kRows][kDepth], b[kProducts][kDepth][kColumns], d[kProducts][kRows][kColumns];
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const uint32_t q = product_of(lane);
    for (uint32_t i = 0; i < kDepth; ++i) {
      const Place at = place_in_a(lane, i, how.a_by_columns);
      a[q][at.row][at.column] =
          element<float>(Element::F16, warp.lanes<uint32_t>(how.a_slots[i / 2])[lane], i % 2);
      const Place bt = place_in_b(lane, i, how.b_by_columns);
      b[q][bt.row][bt.column] =
          element<float>(Element::F16, warp.lanes<uint32_t>(how.b_slots[i / 2])[lane], i % 2);
    }
    for (uint32_t i = 0; i < kColumns; ++i) {
      const Place ct = place_in_sum(lane, i, how.small_c);
      d[q][ct.row][ct.column] =
          how.small_c
              ? element<float>(Element::F16, warp.lanes<uint32_t>(how.c_slots[i / 2])[lane], i % 2)
              : warp.lanes<float>(how.c_slots[i])[lane];
    }
  }
  for (uint32_t q = 0; q < kProducts; ++q) {
    for (uint32_t row = 0; row < kRows; ++row) {
      for (uint32_t k = 0; k < kDepth; ++k) {
        for (uint32_t n = 0; n < kColumns; ++n)
          d[q][row][n] = multiply_add(a[q][row][k], b[q][k][n], d[q][row][n]);
      }
    }
  }
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    const auto sum = [&](uint32_t i) {
      const Place dt = place_in_sum(lane, i, how.small_d);
      return d[product_of(lane)][dt.row][dt.column];
    };
    for (uint32_t r = 0; r < how.d_count; ++r) {
      if (how.small_d) {
        warp.lanes<HalfPair>(how.d_slots[r])[lane] = {Half::from(sum(2 * r)),
                                                      Half::from(sum(2 * r + 1))};
      } else {
        warp.lanes<float>(how.d_slots[r])[lane] = canonical(sum(r));
      }
    }
  }
  return op + 1;
}

}  // namespace

bool quarter_multiply(Lowering& l) {
  const auto& modifiers = l.ins().modifiers;  // sync aligned m8n8k4 .row .col .f32 .f16 .f16 .f32
  QuarterMultiply how;
  how.a_by_columns = modifiers[3] == "col";
  how.b_by_columns = modifiers[4] == "col";
  how.small_d = modifiers[5] == "f16";
  how.small_c = modifiers[8] == "f16";
  if (!read_parts(l, l.operand(1), ptx::Type::b32, 2, how.a_slots, &how.a_count) ||
      !read_parts(l, l.operand(2), ptx::Type::b32, 2, how.b_slots, &how.b_count) ||
      !read_parts(l, l.operand(3), ptx::Type::b32, how.small_c ? 4 : 8, how.c_slots,
                  &how.c_count) ||
      !write_parts(l, l.operand(0), 4, how.small_d ? 4 : 8, how.d_slots, &how.d_count)) {
    return false;
  }
  l.emit(&run_quarter_multiply).data = l.own(how);
  return true;
}

}  // namespace kiln::engine
