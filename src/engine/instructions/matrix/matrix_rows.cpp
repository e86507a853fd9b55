// SPDX-License-Identifier: Apache-2.0
// How does a warp load, store and transpose matrices of 8 rows of 16 bytes? (PTX ISA 9.7.14:
// ldmatrix, stmatrix, movmatrix)
#include <cstring>

#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings_matrix.h"
#include "engine/instructions/matrix/matrix_operands.h"
#include "engine/machine/access.h"
#include "engine/machine/watching.h"
#include "engine/numbers/matrix_product.h"

namespace kiln::engine {
namespace {

struct Rows {
  uint32_t count = 1;
  bool transposed = false;
  uint32_t slots[kMostRegisters];
};

// Lanes 8j to 8j + 7 have the addresses of the rows of matrix j. Returns false if a fault was
// reported.
bool row_pointers(Warp& warp, const Op* op, uint32_t matrices, Access access,
                  std::byte* (&rows)[kWarpSize]) {
  std::byte* pointer[kWarpSize];
  uint32_t before = warp.mask, needed = matrices * 8 == 32 ? kFullMask : (1u << (matrices * 8)) - 1;
  warp.mask = needed;
  watch_access(warp, op,
               {access == Access::Read ? AccessKind::Load : AccessKind::Store, Strength::Weak,
                Scope::None, false, 16});
  Shape shape = locate(warp, op, 16, access, pointer);
  if (shape == Shape::Fault) return false;
  warp.mask = before;
  for (uint32_t i = 0; i < matrices * 8; ++i) {
    rows[i] = shape == Shape::Uniform      ? pointer[0]
              : shape == Shape::Contiguous ? pointer[0] + size_t{i} * 16
                                           : pointer[i];
  }
  return true;
}

// Element e of a lane in matrix j.
std::byte* element_at(std::byte* (&rows)[kWarpSize], uint32_t j, uint32_t lane, uint32_t e,
                      bool transposed) {
  uint32_t row = lane / 4, column = lane % 4 * 2 + e;
  if (transposed) std::swap(row, column);
  // NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): row_pointers() filled it
  return rows[j * 8 + row] + size_t{column} * 2;
}

const Op* run_matrix_load(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const Rows& how = *static_cast<const Rows*>(op->data);
  std::byte* rows[kWarpSize];
  if (!row_pointers(warp, op, how.count, Access::Read, rows)) return nullptr;
  uint32_t results[kMostRegisters][kWarpSize];
  for (uint32_t j = 0; j < how.count; ++j) load_rows(rows + j * 8, how.transposed, results[j]);
  for (uint32_t j = 0; j < how.count; ++j) warp.put(how.slots[j], results[j]);
  return op + 1;
}

const Op* run_matrix_store(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const Rows& how = *static_cast<const Rows*>(op->data);
  std::byte* rows[kWarpSize];
  if (!row_pointers(warp, op, how.count, Access::Write, rows)) return nullptr;
  for (uint32_t j = 0; j < how.count; ++j) {
    const uint32_t* words = warp.lanes<uint32_t>(how.slots[j]);
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      std::memcpy(element_at(rows, j, lane, 0, how.transposed), &words[lane], 2);
      uint16_t high = static_cast<uint16_t>(words[lane] >> 16);
      std::memcpy(element_at(rows, j, lane, 1, how.transposed), &high, 2);
    }
  }
  return op + 1;
}

bool lower_rows(Lowering& l, const ptx::Operand& registers, const ptx::Operand& memory, bool load) {
  Rows how;
  how.count = l.has("x4") ? 4 : l.has("x2") ? 2 : 1;
  how.transposed = l.has("trans");
  uint32_t count = 0;
  bool good = load ? write_parts(l, registers, 4, how.count, how.slots, &count)
                   : read_parts(l, registers, ptx::Type::b32, how.count, how.slots, &count);
  if (!good) return false;
  Source base;
  uint32_t base_bytes = 8;
  int64_t offset = 0;
  ptx::Space space = l.has("shared") || l.has("shared::cta") || l.has("shared::cluster")
                         ? ptx::Space::Shared
                         : ptx::Space::Generic;
  if (!l.address(memory, &base, &base_bytes, &offset, &space)) return false;
  Op& op = l.emit(load ? &run_matrix_load : &run_matrix_store);
  op.a = base.offset;
  op.imm = offset;
  op.x = address_flags(base.uniform, base.affine, l.variant().narrow_rows(), base_bytes);
  op.z = static_cast<uint8_t>(space);
  op.data = l.own(how);
  return true;
}

const Op* run_matrix_transpose(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const uint32_t* a = warp.lanes<uint32_t>(op->a);
  uint32_t result[kWarpSize];
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    auto element = [&](uint32_t row, uint32_t column) {
      return a[row * 4 + column / 2] >> (column % 2 * 16) & 0xffff;
    };
    const uint32_t row = lane / 4, column = lane % 4 * 2;
    result[lane] = element(column, row) | element(column + 1, row) << 16;
  }
  warp.put(op->d, result);
  return op + 1;
}

}  // namespace

bool matrix_transpose(Lowering& l) {
  uint32_t a;
  Dest d;
  if (!l.lanes(l.operand(1), ptx::Type::b32, &a) || !l.dest(l.operand(0), 4, false, &d))
    return false;
  Op& op = l.emit(&run_matrix_transpose);
  op.a = a;
  op.d = d.offset;
  return true;
}

bool matrix_load(Lowering& l) { return lower_rows(l, l.operand(0), l.operand(1), true); }
bool matrix_store(Lowering& l) { return lower_rows(l, l.operand(1), l.operand(0), false); }

}  // namespace kiln::engine
