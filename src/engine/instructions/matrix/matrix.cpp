// SPDX-License-Identifier: Apache-2.0
// How do the lanes of a warp multiply matrices? (PTX ISA 9.7.14) Fragments are spread over the
// lanes as in the manual: with g = lane / 4 and t = lane % 4, a register of E elements holds those
// at k = t * E + e.
#include <bit>

#include "engine/decode/lanes.h"
#include "engine/decode/meanings.h"
#include "engine/instructions/lowerings_matrix.h"
#include "engine/instructions/matrix/matrix_operands.h"
#include "engine/numbers/matrix_elements.h"
#include "engine/numbers/matrix_product.h"

namespace kiln::engine {
namespace {

constexpr uint32_t kMostK = 256;

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

// Word is the register type, T the type of the sums.
template <class Word, class T>
void gather(Warp& warp, const Multiply& how, T (&a)[16][kMostK], T (&b)[kMostK][8]) {
  const uint32_t e_count = elements_of(how.a);
  auto value = [](Element type, Word word, uint32_t e) {
    if constexpr (sizeof(Word) == 8) {
      (void)type, (void)e;
      return std::bit_cast<T>(word);
    } else {
      return element<T>(type, word, e);
    }
  };
  for (uint32_t r = 0; r < how.a_count; ++r) {
    const Word* words = warp.lanes<Word>(how.a_slots[r]);
    const uint32_t row_step = how.m == 16 ? (r & 1) * 8 : 0,
                   k_step = (how.m == 16 ? r >> 1 : r) * 4 * e_count;
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      for (uint32_t e = 0; e < e_count; ++e)
        a[lane / 4 + row_step][lane % 4 * e_count + e + k_step] = value(how.a, words[lane], e);
    }
  }
  for (uint32_t r = 0; r < how.b_count; ++r) {
    const Word* words = warp.lanes<Word>(how.b_slots[r]);
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      for (uint32_t e = 0; e < e_count; ++e)
        b[lane % 4 * e_count + e + r * 4 * e_count][lane / 4] = value(how.b, words[lane], e);
    }
  }
}

// The registers of a shape fill the parts of these arrays that the product reads, which the decoder
// has checked. Filling all of the arrays would cost more than the product.
// NOLINTBEGIN(clang-analyzer-core.uninitialized.Assign,clang-analyzer-core.CallAndMessage)
template <class T>
void multiply(const Multiply& how, const T (&a)[16][kMostK], const T (&b)[kMostK][8],
              T (&d)[16][8]) {
  for (uint32_t row = 0; row < how.m; ++row) {
    T sums[8];
    for (uint32_t n = 0; n < 8; ++n) sums[n] = d[row][n];
    for (uint32_t k = 0; k < how.k; ++k) {
      const T left = a[row][k];
      for (uint32_t n = 0; n < 8; ++n) {
        sums[n] = multiply_add(left, b[k][n], sums[n]);
      }
    }
    for (uint32_t n = 0; n < 8; ++n) d[row][n] = sums[n];
  }
}

const Op* run_multiply_float(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const Multiply& how = *static_cast<const Multiply*>(op->data);
  float a[16][kMostK], b[kMostK][8], d[16][8];
  gather<uint32_t>(warp, how, a, b);
  for (uint32_t r = 0; r < how.c_count; ++r) {
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      uint32_t row = lane / 4, column = lane % 4 * 2;
      if (how.small_c) {
        HalfPair pair = warp.lanes<HalfPair>(how.c_slots[r])[lane];
        d[row + r * 8][column] = pair.low;
        d[row + r * 8][column + 1] = pair.high;
      } else {
        d[row + (r >> 1) * 8][column + (r & 1)] = warp.lanes<float>(how.c_slots[r])[lane];
      }
    }
  }
  multiply(how, a, b, d);
  for (uint32_t r = 0; r < how.d_count; ++r) {
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      uint32_t row = lane / 4, column = lane % 4 * 2;
      if (how.small_d) {
        warp.lanes<HalfPair>(how.d_slots[r])[lane] = {Half::from(d[row + r * 8][column]),
                                                      Half::from(d[row + r * 8][column + 1])};
      } else {
        warp.lanes<float>(how.d_slots[r])[lane] =
            canonical(d[row + (r >> 1) * 8][column + (r & 1)]);
      }
    }
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
  int64_t a[16][kMostK], b[kMostK][8], d[16][8];
  gather<uint32_t>(warp, how, a, b);
  if (how.exclusive) {  // .xor.popc: a ^ b counts as a + b - 2ab, and as a * (1 - 2b) + b * 1
    for (uint32_t n = 0; n < 8; ++n) {
      int64_t ones = 0;
      for (uint32_t k = 0; k < how.k; ++k) {
        ones += b[k][n];
        b[k][n] = 1 - 2 * b[k][n];
      }
      for (uint32_t row = 0; row < how.m; ++row) d[row][n] = ones;
    }
  }
  auto place = [&](uint32_t r, uint32_t lane) -> int64_t& {
    return d[lane / 4 + (r >> 1) * 8][lane % 4 * 2 + (r & 1)];
  };
  for (uint32_t r = 0; r < how.c_count; ++r) {
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      place(r, lane) =
          warp.lanes<int32_t>(how.c_slots[r])[lane] + (how.exclusive ? place(r, lane) : 0);
    }
  }
  multiply(how, a, b, d);
  for (uint32_t r = 0; r < how.d_count; ++r) {
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      int64_t value = place(r, lane);
      if (how.saturate)
        value = std::clamp<int64_t>(value, std::numeric_limits<int32_t>::min(),
                                    std::numeric_limits<int32_t>::max());
      warp.lanes<int32_t>(how.d_slots[r])[lane] = static_cast<int32_t>(value);
    }
  }
  return op + 1;
}

const Op* run_multiply_double(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const Multiply& how = *static_cast<const Multiply*>(op->data);
  double a[16][kMostK], b[kMostK][8], d[16][8];
  gather<uint64_t>(warp, how, a, b);
  auto place = [&](uint32_t r, uint32_t lane) -> double& {
    return d[lane / 4 + (r >> 1) * 8][lane % 4 * 2 + (r & 1)];
  };
  for (uint32_t r = 0; r < how.c_count; ++r) {
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      place(r, lane) = warp.lanes<double>(how.c_slots[r])[lane];
  }
  multiply(how, a, b, d);
  for (uint32_t r = 0; r < how.d_count; ++r) {
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      warp.lanes<double>(how.d_slots[r])[lane] = canonical(place(r, lane));
  }
  return op + 1;
}
// NOLINTEND(clang-analyzer-core.uninitialized.Assign,clang-analyzer-core.CallAndMessage)

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
