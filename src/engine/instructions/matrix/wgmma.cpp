// SPDX-License-Identifier: Apache-2.0
// How does a warpgroup multiply matrices? (PTX ISA 9.7.15) Warp w of the group owns rows 16w to 16w
// + 15 of the 64. Each warp computes its own part when it issues the instruction, so fence, commit
// and wait have nothing to do.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/decode/address_operand.h"
#include "engine/decode/lanes.h"
#include "engine/decode/watch_ops.h"
#include "engine/instructions/lowerings_async.h"
#include "engine/machine/access.h"
#include "engine/machine/watching.h"
#include "engine/memory/tensor_map.h"
#include "engine/numbers/matrix_elements.h"
#include "engine/numbers/matrix_product.h"

namespace kiln::engine {
namespace {

constexpr uint32_t kMostN = 256, kMostGroupK = 256, kWarpRows = 16,
                   kStepBytes = 32;  // every shape has 32 bytes of k

struct Product {
  uint32_t n = 8, k = 16;
  Element a = Element::F16, b = Element::F16;
  bool small_d = false, a_in_registers = false, transpose_a = false, transpose_b = false,
       saturate = false;
  bool negate_a = false, negate_b = false;
  uint32_t accumulate = 0;  // a predicate
  LaneValue a_descriptor, b_descriptor;
  uint32_t a_slots[4] = {};
  std::vector<uint32_t> d_slots;
};

// A matrix in shared memory, as described by its descriptor. (PTX ISA 9.7.15.5)
struct Matrix {
  uint64_t start, leading, stride;
  Swizzle swizzle;
  uint32_t span;  // bytes per row of the layout

  explicit Matrix(uint64_t descriptor)
      : start((descriptor & 0x3fff) << 4),
        leading((descriptor >> 16 & 0x3fff) << 4),
        stride((descriptor >> 32 & 0x3fff) << 4) {
    constexpr Swizzle kModes[] = {Swizzle::None, Swizzle::Bytes128, Swizzle::Bytes64,
                                  Swizzle::Bytes32};
    swizzle = kModes[descriptor >> 62];
    span = swizzle == Swizzle::None ? 16 : swizzle_span(swizzle);
  }

  // 16 bytes of row `mn`, starting at byte `k_bytes`.
  uint64_t along_k(uint32_t mn, uint32_t k_bytes) const {
    const uint64_t row = start + mn / 8 * stride + mn % 8 * uint64_t{span};
    return swizzle == Swizzle::None ? row + k_bytes / 16 * leading
                                    : swizzled(swizzle, row + k_bytes);
  }
  // 8 elements of 2 bytes at `k`, starting at `mn`.
  uint64_t along_mn(uint32_t mn, uint32_t k) const {
    if (swizzle == Swizzle::None) return start + mn / 8 * stride + k / 8 * leading + k % 8 * 16;
    const uint64_t slab = mn * 2 / span * leading, inside = mn * 2 % span;
    return swizzled(swizzle, start + slab + k / 8 * stride + k % 8 * uint64_t{span} + inside);
  }
};

const std::byte* chunk_at(Warp& warp, const Op* op, uint64_t address, bool watched) {
  if (watched) [[unlikely]]
    watch_lane(warp, op, 0, ptx::Space::Shared, address, 16, Access::Read, true);
  if (address + 16 <= warp.block->shared_bytes) return warp.block->shared + address;
  return locate_at(warp, op, 0, ptx::Space::Shared, address, 16, 1, Access::Read);
}

// The elements of `count` rows from `first` on, in lines of neighbours in memory: a line is a row
// of k_count elements, or with `along_mn` the elements of all rows at one k. False: a fault was
// reported.
bool fetch_lines(Warp& warp, const Op* op, const Matrix& matrix, Element type, bool along_mn,
                 uint32_t first, uint32_t count, uint32_t k_count, float* lines, size_t step) {
  const bool watched = sink_for(warp, kAccessEvents) != nullptr;
  const uint32_t in_chunk = 128 / bits_of(type);
  const auto widen = [&](uint64_t address, float* to) {
    const std::byte* chunk = chunk_at(warp, op, address, watched);
    if (!chunk) return false;
    uint32_t words[4];
    std::memcpy(words, chunk, sizeof words);
    widen_elements(type, words, 4, to);
    return true;
  };
  if (along_mn) {
    for (uint32_t k = 0; k < k_count; ++k) {
      for (uint32_t mn = 0; mn < count; mn += 8) {
        if (!widen(matrix.along_mn(first + mn, k), lines + k * step + mn)) return false;
      }
    }
    return true;
  }
  for (uint32_t mn = 0; mn < count; ++mn) {
    for (uint32_t half = 0; half < kStepBytes / 16; ++half) {
      float* to = lines + mn * step + size_t{half} * in_chunk;
      if (!widen(matrix.along_k(first + mn, half * 16), to)) return false;
    }
  }
  return true;
}

struct Scratch {
  float a[kWarpRows][kMostGroupK];
  float b[kMostGroupK][kMostN];
  float lines[kMostN * kMostGroupK];  // of a or b, before they are turned
  float d[kMostN / 8][kWarpRows][8];  // as registers hold it: 8 columns at a time
};

void gather_a_in_registers(Warp& warp, const Product& how, Scratch& s) {
  const uint32_t depth = 4 * 32 / bits_of(how.a);  // elements of a row in a register of the lanes
  for (uint32_t r = 0; r < 4; ++r) {
    const uint32_t* words = warp.lanes<uint32_t>(how.a_slots[r]);
    for (uint32_t row = 0; row < 8; ++row)
      widen_elements(how.a, words + row * 4, 4, &s.a[row + r % 2 * 8][r / 2 * depth]);
  }
}

bool gather(Warp& warp, const Op* op, const Product& how, Scratch& s) {
  const uint32_t first_row = warp.index % 4 * kWarpRows;
  if (how.a_in_registers) {
    gather_a_in_registers(warp, how, s);
  } else {
    const Matrix a(how.a_descriptor.of(warp, 0));
    float* lines = how.transpose_a ? s.lines : s.a[0];
    const size_t step = how.transpose_a ? kWarpRows : kMostGroupK;
    if (!fetch_lines(warp, op, a, how.a, how.transpose_a, first_row, kWarpRows, how.k, lines, step))
      return false;
    if (how.transpose_a) transpose(lines, step, how.k, kWarpRows, s.a[0], kMostGroupK);
  }
  const Matrix b(how.b_descriptor.of(warp, 0));
  float* lines = how.transpose_b ? s.b[0] : s.lines;
  const size_t step = how.transpose_b ? kMostN : kMostGroupK;
  if (!fetch_lines(warp, op, b, how.b, how.transpose_b, 0, how.n, how.k, lines, step)) return false;
  if (!how.transpose_b) transpose(lines, step, how.n, how.k, s.b[0], kMostN);
  if (how.negate_a != how.negate_b) {
    for (auto& row : s.a) {
      for (uint32_t k = 0; k < how.k; ++k) row[k] = -row[k];
    }
  }
  return true;
}

// d of 8 columns and 8 rows is in two registers, or in one of pairs of f16.
void read_sums(Warp& warp, const Product& how, Scratch& s) {
  for (uint32_t part = 0; part < how.n / 4; ++part) {
    float* rows = s.d[part / 2][part % 2 * 8];
    if (how.small_d)
      widen_elements(Element::F16, warp.lanes<uint32_t>(how.d_slots[part]), kWarpSize, rows);
    else
      join_columns(warp.lanes<float>(how.d_slots[part * 2]),
                   warp.lanes<float>(how.d_slots[part * 2 + 1]), rows);
  }
}

void write_sums(Warp& warp, const Product& how, const Scratch& s) {
  for (uint32_t part = 0; part < how.n / 4; ++part) {
    const float* rows = s.d[part / 2][part % 2 * 8];
    if (how.small_d)
      narrow_to_halves(rows, kWarpSize, warp.lanes<uint32_t>(how.d_slots[part]));
    else
      split_columns(rows, warp.lanes<float>(how.d_slots[part * 2]),
                    warp.lanes<float>(how.d_slots[part * 2 + 1]));
  }
}

void write_integer_sums(Warp& warp, const Product& how, const Scratch& s, bool accumulates) {
  for (uint32_t r = 0; r < how.n / 2; ++r) {
    const float* sums = s.d[r / 4][r / 2 % 2 * 8] + r % 2;
    int32_t* to = warp.lanes<int32_t>(how.d_slots[r]);
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      to[lane] = add_integer_sum(sums[2 * lane], accumulates ? to[lane] : 0, how.saturate);
  }
}

void multiply(const Product& how, Scratch& s) {
  const bool is_exact = has_exact_products(how.a) && has_exact_products(how.b);
  for (uint32_t column = 0; column < how.n; column += 8) {
    add_product({s.a[0], kMostGroupK, s.b[0] + column, kMostN, s.d[column / 8][0], 8, kWarpRows, 8,
                 how.k, is_exact});
  }
}

template <bool kInteger>
const Op* run_product(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const Product& how = *static_cast<const Product*>(op->data);
  watch_async(warp, op, AsyncStep::Issue, 0, AsyncKind::Matrix);
  // A pointer: what each thread has of a library is found with no way to fail, and this is much
  // (threads.cpp).
  thread_local std::unique_ptr<Scratch> kept;
  if (!kept) kept = std::make_unique<Scratch>();
  Scratch& s = *kept;
  if (!gather(warp, op, how, s)) return nullptr;
  const bool accumulates = warp.predicate(how.accumulate) & 1;
  if (accumulates && !kInteger)
    read_sums(warp, how, s);
  else
    std::fill_n(s.d[0][0], how.n * kWarpRows, 0.0f);
  multiply(how, s);
  kInteger ? write_integer_sums(warp, how, s, accumulates) : write_sums(warp, how, s);
  return op + 1;
}

uint32_t number_after(std::string_view shape, char letter) {
  uint32_t value = 0;
  for (char c : shape.substr(shape.find(letter) + 1)) {
    if (c < '0' || c > '9') break;
    value = value * 10 + static_cast<uint32_t>(c - '0');
  }
  return value;
}

bool immediate(Lowering& l, const ptx::Operand& operand, int64_t low, int64_t high, int64_t* out) {
  *out = static_cast<int64_t>(operand.bits);
  return (operand.kind == ptx::OperandKind::Integer && *out >= low && *out <= high &&
          *out != (low < 0 ? 0 : 2)) ||
         l.refuse("an operand that is not 1 or -1 (scale), 0 or 1 (transpose)");
}

}  // namespace

bool matrix_group(Lowering& l) {
  announce_group(l, AsyncKind::Matrix);
  return true;
}

bool warpgroup_multiply(Lowering& l) {
  const auto& operands = l.ins().operands;
  const auto& modifiers = l.ins().modifiers;
  Product how;
  how.n = number_after(modifiers[3], 'n');
  how.k = number_after(modifiers[3], 'k');
  how.saturate = l.has("satfinite");
  if (how.n % 8 || how.n < 8 || how.n > kMostN)
    return l.refuse("n is not a multiple of 8 between 8 and 256");
  if (!element_named(modifiers[5], &how.a) || !element_named(modifiers[6], &how.b))
    return l.refuse("unsupported element type");
  if (bits_of(how.a) != bits_of(how.b) || how.k * bits_of(how.a) != kStepBytes * 8)
    return l.refuse("unsupported shape for this type");
  how.small_d = modifiers[4] == "f16";
  const ptx::Operand& to = operands[0];
  const uint32_t results = how.n / (how.small_d ? 4 : 2);
  if (to.kind != ptx::OperandKind::Vector || to.elements.size() != results)
    return l.refuse("the number of registers does not match the shape");
  for (const ptx::Operand& element : to.elements) {
    Dest d;
    if (!l.dest(element, 4, false, &d)) return false;
    how.d_slots.push_back(d.offset);
  }
  how.a_in_registers = operands[1].kind == ptx::OperandKind::Vector;
  if (how.a_in_registers) {
    if (operands[1].elements.size() != 4) return l.refuse("a must have four registers");
    for (uint32_t r = 0; r < 4; ++r) {
      if (!l.lanes(operands[1].elements[r], ptx::Type::b32, &how.a_slots[r])) return false;
    }
  } else if (!lane_value(l, operands[1], ptx::Type::b64, &how.a_descriptor)) {
    return false;
  }
  if (!lane_value(l, operands[2], ptx::Type::b64, &how.b_descriptor) ||
      !l.predicate(operands[3], &how.accumulate))
    return false;
  // Floats have two scales; 16-bit floats also have transposes, for a only if it is in shared
  // memory.
  std::vector<int64_t> rest;
  const bool scaled = !is_integer(how.a);
  for (size_t i = 4; i < operands.size(); ++i) {
    rest.push_back(0);
    const bool is_scale = scaled && i < 6;
    if (!immediate(l, operands[i], is_scale ? -1 : 0, 1, &rest.back())) return false;
  }
  const size_t transposes = bits_of(how.a) == 16 ? (how.a_in_registers ? 1 : 2) : 0;
  if (rest.size() != (scaled ? 2 : 0) + transposes) return l.refuse("wrong number of operands");
  if (scaled) {
    how.negate_a = rest[0] < 0;
    how.negate_b = rest[1] < 0;
  }
  if (transposes == 2) how.transpose_a = rest[2] != 0;
  if (transposes) how.transpose_b = rest.back() != 0;
  const bool integer = is_integer(how.a);
  l.emit(integer ? &run_product<true> : &run_product<false>).data = l.own(std::move(how));
  return true;
}

}  // namespace kiln::engine
