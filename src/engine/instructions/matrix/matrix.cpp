// SPDX-License-Identifier: Apache-2.0
// How do the lanes of a warp multiply matrices together? (PTX ISA 9.7.14) Fragments are spread over
// the lanes as the manual draws them: with g = lane / 4 and t = lane % 4, a register of E elements
// holds those at k = t * E + e.
#include <algorithm>

#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/instructions/lowerings_matrix.h"
#include "engine/instructions/matrix/matrix_operands.h"
#include "engine/numbers/matrix_elements.h"
#include "engine/numbers/matrix_product.h"

namespace kiln::engine {
namespace {

constexpr uint32_t kMostK = 256, kMostTile = 128;  // bits have the deepest tiles

struct Multiply {
  uint32_t m = 16, k = 16;
  Element a = Element::F16, b = Element::F16;
  bool small_c = false, small_d = false, saturate = false, exclusive = false;
  uint32_t a_count = 0, b_count = 0, c_count = 0, d_count = 0;
  uint32_t a_slots[kMostRegisters], b_slots[kMostRegisters], c_slots[kMostRegisters],
      d_slots[kMostRegisters];
};

// Elements per register.
uint32_t elements_of(Element type) { return type == Element::F64 ? 1 : 32 / bits_of(type); }

// Matrices of f32, in tiles of k: a register of the lanes has 8 rows of A or 8 columns of B.
struct Tiles {
  float a[16 * kMostTile], columns[8 * kMostTile], b[kMostTile * 8];
  float d[16 * 8];
};

// d += a * b; `body` may change the tile's b before.
template <class Body>
void multiply_tiles(Warp& warp, const Multiply& how, Tiles& of, const Body& body) {
  const uint32_t depth = 4 * elements_of(how.a), halves = how.m / 8;
  for (uint32_t tile = 0; tile < how.k / depth; ++tile) {
    for (uint32_t half = 0; half < halves; ++half) {
      const uint32_t* words = warp.lanes<uint32_t>(how.a_slots[tile * halves + half]);
      widen_elements(how.a, words, kWarpSize, of.a + half * 8 * depth);
    }
    widen_elements(how.b, warp.lanes<uint32_t>(how.b_slots[tile]), kWarpSize, of.columns);
    transpose(of.columns, depth, 8, depth, of.b, 8);
    body(depth);
    add_product({of.a, depth, of.b, 8, of.d, 8, how.m, 8, depth,
                 has_exact_products(how.a) && has_exact_products(how.b)});
  }
}

const Op* run_multiply_float(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const Multiply& how = *static_cast<const Multiply*>(op->data);
  Tiles of;
  for (uint32_t half = 0; half < how.m / 8; ++half) {
    float* rows = of.d + half * 64;
    if (how.small_c)
      widen_elements(Element::F16, warp.lanes<uint32_t>(how.c_slots[half]), kWarpSize, rows);
    else
      join_columns(warp.lanes<float>(how.c_slots[half * 2]),
                   warp.lanes<float>(how.c_slots[half * 2 + 1]), rows);
  }
  multiply_tiles(warp, how, of, [](uint32_t) {});
  for (uint32_t half = 0; half < how.m / 8; ++half) {
    const float* rows = of.d + half * 64;
    if (how.small_d)
      narrow_to_halves(rows, kWarpSize, warp.lanes<uint32_t>(how.d_slots[half]));
    else
      split_columns(rows, warp.lanes<float>(how.d_slots[half * 2]),
                    warp.lanes<float>(how.d_slots[half * 2 + 1]));
  }
  return op + 1;
}

// f16 and bf16 into f32, 16 rows: the shapes that matter most.
template <auto kMultiply>
const Op* run_multiply_small(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const Multiply& how = *static_cast<const Multiply*>(op->data);
  SmallProduct product{};
  for (uint32_t r = 0; r < how.a_count; ++r) product.a[r] = warp.lanes<uint32_t>(how.a_slots[r]);
  for (uint32_t r = 0; r < how.b_count; ++r) product.b[r] = warp.lanes<uint32_t>(how.b_slots[r]);
  for (uint32_t r = 0; r < 4; ++r) {
    product.c[r] = warp.lanes<float>(how.c_slots[r]);
    product.d[r] = warp.lanes<float>(how.d_slots[r]);
  }
  kMultiply(product, how.k);
  return op + 1;
}

const Op* run_multiply_integer(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const Multiply& how = *static_cast<const Multiply*>(op->data);
  Tiles of;
  std::fill_n(of.d, how.m * 8, 0.0f);
  multiply_tiles(warp, how, of, [&](uint32_t depth) {
    if (!how.exclusive) return;
    // .xor.popc: a ^ b is a + b - 2ab, which is a * (1 - 2b) + b.
    for (uint32_t column = 0; column < 8; ++column) {
      float ones = 0;
      for (uint32_t k = 0; k < depth; ++k) {
        float& bit = of.b[k * 8 + column];
        ones += bit;
        bit = 1 - 2 * bit;
      }
      for (uint32_t row = 0; row < how.m; ++row) of.d[row * 8 + column] += ones;
    }
  });
  int32_t results[kMostRegisters][kWarpSize];  // d may have the registers of c
  for (uint32_t r = 0; r < how.d_count; ++r) {
    const float* sums = of.d + r / 2 * 64 + r % 2;
    const int32_t* c = warp.lanes<int32_t>(how.c_slots[r]);
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      results[r][lane] = add_integer_sum(sums[2 * lane], c[lane], how.saturate);
  }
  for (uint32_t r = 0; r < how.d_count; ++r) warp.put(how.d_slots[r], results[r]);
  return op + 1;
}

// A lane has one row of A or one column of B in each register, as the others do (above), but of 64
// bits.
const Op* run_multiply_double(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const Multiply& how = *static_cast<const Multiply*>(op->data);
  constexpr uint32_t kMostDepth = 16;
  double a[16][kMostDepth], b[kMostDepth][8], d[16 * 8];
  const uint32_t halves = how.m / 8;
  for (uint32_t r = 0; r < how.a_count; ++r) {
    const double* words = warp.lanes<double>(how.a_slots[r]);
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      a[lane / 4 + r % halves * 8][lane % 4 + r / halves * 4] = words[lane];
  }
  for (uint32_t r = 0; r < how.b_count; ++r) {
    const double* words = warp.lanes<double>(how.b_slots[r]);
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) b[lane % 4 + r * 4][lane / 4] = words[lane];
  }
  for (uint32_t half = 0; half < halves; ++half)
    join_columns(warp.lanes<double>(how.c_slots[half * 2]),
                 warp.lanes<double>(how.c_slots[half * 2 + 1]), d + half * 64);
  for (uint32_t row = 0; row < how.m; ++row) {
    double sums[8];
    std::copy_n(d + row * 8, 8, sums);
    for (uint32_t k = 0; k < how.k; ++k) {
      for (uint32_t n = 0; n < 8; ++n) sums[n] = multiply_add(a[row][k], b[k][n], sums[n]);
    }
    std::copy_n(sums, 8, d + row * 8);
  }
  for (uint32_t r = 0; r < how.d_count; ++r) {
    double* to = warp.lanes<double>(how.d_slots[r]);
    const double* sums = d + r / 2 * 64 + r % 2;
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      to[lane] =
          canonical(sums[2 * lane]);  // NOLINT(clang-analyzer-core.CallAndMessage): c fills d
    }
  }
  return op + 1;
}

}  // namespace

void describe_matrix(Meanings& to) {
  const auto touches = [](const Op& op, Touched& out) {
    const Multiply& how = *static_cast<const Multiply*>(op.data);
    const uint32_t bytes = how.a == Element::F64 ? 8 : 4;
    const auto add = [&](const uint32_t* slots, uint32_t count, std::vector<Touched::Part>& parts) {
      for (uint32_t i = 0; i < count; ++i) parts.push_back({slots[i], bytes});
    };
    add(how.a_slots, how.a_count, out.reads);
    add(how.b_slots, how.b_count, out.reads);
    add(how.c_slots, how.c_count, out.reads);
    add(how.d_slots, how.d_count, out.writes);
  };
  to.warpwide(&run_multiply_small<multiply_f16>, touches);
  to.warpwide(&run_multiply_small<multiply_bf16>, touches);
  to.warpwide(&run_multiply_float, touches);
  to.warpwide(&run_multiply_integer, touches);
}

bool matrix_multiply(Lowering& l) {
  const auto& modifiers = l.ins().modifiers;
  Multiply how;
  const size_t kind = l.has("kind::f8f6f4") ? 1 : 0;  // before the shape, or after .row.col
  std::string_view shape = modifiers[modifiers[2].starts_with("kind") ? 3 : 2];
  how.m = shape.substr(0, 3) == "m16" ? 16 : 8;
  how.k = 0;
  for (char c : shape.substr(shape.find('k') + 1))
    how.k = how.k * 10 + static_cast<uint32_t>(c - '0');
  size_t types = 5 + kind;  // after .row.col
  if (modifiers[types] == "rn" || modifiers[types] == "satfinite") ++types;
  if (modifiers.size() < types + 4 || !element_named(modifiers[types + 1], &how.a) ||
      !element_named(modifiers[types + 2], &how.b))
    return l.refuse("unsupported element type");
  if (elements_of(how.a) != elements_of(how.b))
    return l.refuse("the two matrices have elements of different widths");
  how.small_d = modifiers[types] == "f16";
  how.small_c = modifiers[types + 3] == "f16";
  how.saturate = l.has("satfinite");
  how.exclusive = how.a == Element::B1 && l.has("xor");
  const uint32_t e_count = elements_of(how.a), quarter = 4 * e_count;
  bool is_double = how.a == Element::F64, integer = is_integer(how.a);
  ptx::Type word = is_double ? ptx::Type::b64 : ptx::Type::b32;
  if (how.k > kMostK || how.k % quarter) return l.refuse("unsupported shape for this type");
  uint32_t results = how.m * 8 / kWarpSize;
  if (!read_parts(l, l.operand(1), word, how.m * how.k / kWarpSize / e_count, how.a_slots,
                  &how.a_count) ||
      !read_parts(l, l.operand(2), word, how.k * 8 / kWarpSize / e_count, how.b_slots,
                  &how.b_count) ||
      !read_parts(l, l.operand(3), word, how.small_c ? results / 2 : results, how.c_slots,
                  &how.c_count) ||
      !write_parts(l, l.operand(0), ptx::bytes_of(word), how.small_d ? results / 2 : results,
                   how.d_slots, &how.d_count)) {
    return false;
  }
  bool small =
      how.m == 16 && (how.k == 8 || how.k == 16) && !how.small_c && !how.small_d && how.a == how.b;
  if (small && (how.a == Element::F16 || how.a == Element::Bf16)) {
    bool half = how.a == Element::F16;
    l.emit(half ? &run_multiply_small<multiply_f16> : &run_multiply_small<multiply_bf16>).data =
        l.own(how);
    return true;
  }
  l.emit(is_double ? &run_multiply_double
         : integer ? &run_multiply_integer
                   : &run_multiply_float)
      .data = l.own(how);
  return true;
}

}  // namespace kiln::engine
