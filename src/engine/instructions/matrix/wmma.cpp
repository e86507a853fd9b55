// SPDX-License-Identifier: Apache-2.0
// How do wmma.load, wmma.mma and wmma.store run? (PTX ISA 9.7.14.4) They may choose how registers
// hold a fragment: element e of lane l is element l * E + e of the matrix, row by row, if a lane
// has E elements. Larger fragments of f16 hold each element twice, as nvcc declares them.
#include <bit>
#include <cstring>
#include <limits>

#include "engine/decode/address_operand.h"
#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings_matrix.h"
#include "engine/machine/watching.h"
#include "engine/numbers/matrix_elements.h"

namespace kiln::engine {
namespace {

constexpr uint32_t kMostRegisters = 8, kMostSide = 32, kMostDepth = 128;

struct MatrixShape {
  uint32_t m = 16, n = 16, k = 16;
};

bool extent_of(std::string_view shape, MatrixShape* out) {
  uint32_t* parts[] = {&out->m, &out->n, &out->k};
  uint32_t part = 0;
  for (char c : shape) {
    if (c >= '0' && c <= '9') {
      if (part == 0) return false;
      *parts[part - 1] = *parts[part - 1] * 10 + static_cast<uint32_t>(c - '0');
    } else if (part < 3) {
      *parts[part++] = 0;
    }
  }
  return part == 3 && out->m <= kMostSide && out->n <= kMostSide && out->k <= kMostDepth;
}

// One fragment: a matrix of rows x columns, or the part of it that a lane holds.
struct Fragment {
  uint32_t rows = 0, columns = 0, bits = 32;
  uint32_t count = 0;  // registers
  uint32_t slots[kMostRegisters] = {};

  uint32_t per_lane() const { return rows * columns / kWarpSize; }
  uint32_t in_register() const { return bits >= 32 ? 1 : 32 / bits; }
};

// The register that holds element e of a lane, and the place in it.
template <class Body>
void for_each_element(const Fragment& f, Body body) {
  const uint32_t each = f.per_lane(), in_register = f.in_register();
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    for (uint32_t e = 0; e < each; ++e) {
      const uint32_t number = lane * each + e;
      body(lane, e / in_register, e % in_register, number / f.columns, number % f.columns);
    }
  }
}

struct Transfer {
  Fragment fragment;
  AddressOperand memory;
  LaneValue stride;  // in elements
  bool has_stride = false, column_major = false, load = true;
};

// Moves one element between memory and the registers of a lane. A sub-byte element is some of the
// bits of a byte.
void move_element(Warp& warp, const Transfer& how, std::byte* memory, uint64_t index, uint32_t lane,
                  uint32_t slot, uint32_t place, uint32_t copies) {
  const uint32_t bits = how.fragment.bits;
  if (bits == 64) {
    uint64_t* word = &warp.lanes<uint64_t>(how.fragment.slots[slot])[lane];
    how.load ? std::memcpy(word, memory + index * 8, 8) : std::memcpy(memory + index * 8, word, 8);
    return;
  }
  for (uint32_t copy = 0; copy < copies; ++copy) {
    const uint32_t at = how.fragment.slots[slot + copy * how.fragment.count / copies];
    uint32_t& word = warp.lanes<uint32_t>(at)[lane];
    const uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1,
                   shift = bits == 32 ? 0 : place * bits;
    if (how.load) {
      uint32_t value = 0;
      if (bits >= 8) {
        std::memcpy(&value, memory + index * bits / 8, bits / 8);
      } else {
        value = static_cast<uint32_t>(memory[index * bits / 8]) >> (index * bits % 8) & mask;
      }
      word = (word & ~(mask << shift)) | (value & mask) << shift;
    } else {
      const uint32_t value = word >> shift & mask;
      std::memcpy(memory + index * bits / 8, &value, bits / 8);
      return;
    }
  }
}

const Op* run_transfer(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const Transfer& how = *static_cast<const Transfer*>(op->data);
  const Fragment& f = how.fragment;
  const uint32_t first = static_cast<uint32_t>(std::countr_zero(warp.mask));
  const uint64_t line = how.column_major ? f.rows : f.columns;
  const uint64_t stride = how.has_stride ? how.stride.of(warp, first) & 0xffffffffu : line;
  const uint64_t lines = how.column_major ? f.columns : f.rows;
  const uint64_t bytes = ((lines - 1) * stride + line) * f.bits / 8;
  if (bytes > (1u << 31))
    return warp.fault(op, kIllegalAddress, first, "wmma: the stride is too large");
  const uint32_t align = f.bits * line >= 128 ? 16 : 4;
  std::byte* memory =
      locate_at(warp, op, first, how.memory.space, how.memory.of(warp, first),
                static_cast<uint32_t>(bytes), align, how.load ? Access::Read : Access::Write);
  if (!memory) return nullptr;
  for (uint64_t i = 0; i < lines; ++i) {  // but not the memory between the lines
    watch_lane(
        warp, op, first, how.memory.space, how.memory.of(warp, first) + i * stride * f.bits / 8,
        static_cast<uint32_t>(line * f.bits / 8), how.load ? Access::Read : Access::Write, false);
  }
  const uint32_t copies = std::max(1u, f.count * f.in_register() / f.per_lane());
  for_each_element(
      f, [&](uint32_t lane, uint32_t slot, uint32_t place, uint32_t row, uint32_t column) {
        const uint64_t index = how.column_major ? column * stride + row : row * stride + column;
        move_element(warp, how, memory, index, lane, slot, place, copies);
      });
  return op + 1;
}

struct WmmaMultiply {
  MatrixShape extent;
  Element a = Element::F16, b = Element::F16;
  bool small_c = false, small_d = false, saturate = false, exclusive = false;
  Fragment fa, fb, fc, fd;
};

template <class T>
T value_of(Warp& warp, const Fragment& f, Element type, uint32_t lane, uint32_t slot,
           uint32_t place) {
  if constexpr (std::is_same_v<T, double>) {
    (void)type, (void)place;
    return warp.lanes<double>(f.slots[slot])[lane];
  } else {
    return element<T>(type, warp.lanes<uint32_t>(f.slots[slot])[lane], place);
  }
}

// PTX leaves the layout of fragments open, and a GPU has a fixed one. With plain matrices the
// product is written once for all shapes, and each layout has its own function.
template <class T>
const Op* run_wmma(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const WmmaMultiply& how = *static_cast<const WmmaMultiply*>(op->data);
  T a[kMostSide][kMostDepth], b[kMostDepth][kMostSide], d[kMostSide][kMostSide];
  for_each_element(
      how.fa, [&](uint32_t lane, uint32_t slot, uint32_t place, uint32_t row, uint32_t column) {
        a[row][column] = value_of<T>(warp, how.fa, how.a, lane, slot, place);
      });
  for_each_element(
      how.fb, [&](uint32_t lane, uint32_t slot, uint32_t place, uint32_t row, uint32_t column) {
        b[row][column] = value_of<T>(warp, how.fb, how.b, lane, slot, place);
      });
  for_each_element(how.fc, [&](uint32_t lane, uint32_t slot, uint32_t place, uint32_t row,
                               uint32_t column) {
    if constexpr (std::is_same_v<T, float>) {
      d[row][column] =
          how.small_c
              ? element<float>(Element::F16, warp.lanes<uint32_t>(how.fc.slots[slot])[lane], place)
              : warp.lanes<float>(how.fc.slots[slot])[lane];
    } else if constexpr (std::is_same_v<T, double>) {
      d[row][column] = warp.lanes<double>(how.fc.slots[slot])[lane];
    } else {
      d[row][column] = warp.lanes<int32_t>(how.fc.slots[slot])[lane];
    }
  });
  for (uint32_t row = 0; row < how.extent.m; ++row) {
    for (uint32_t k = 0; k < how.extent.k; ++k) {
      const T left = a[row][k];
      for (uint32_t n = 0; n < how.extent.n; ++n) {
        if constexpr (std::is_same_v<T, int64_t>) {
          d[row][n] += how.exclusive ? left ^ b[k][n] : left * b[k][n];
        } else {
          d[row][n] = multiply_add(left, b[k][n], d[row][n]);
        }
      }
    }
  }
  for_each_element(
      how.fd, [&](uint32_t lane, uint32_t slot, uint32_t place, uint32_t row, uint32_t column) {
        T value = d[row][column];
        if constexpr (std::is_same_v<T, float>) {
          if (how.small_d) {
            warp.lanes<uint16_t>(how.fd.slots[slot])[2 * lane + place] = float_to_half(value);
          } else {
            warp.lanes<float>(how.fd.slots[slot])[lane] = canonical(value);
          }
        } else if constexpr (std::is_same_v<T, double>) {
          warp.lanes<double>(how.fd.slots[slot])[lane] = canonical(value);
        } else {
          using Limits = std::numeric_limits<int32_t>;
          if (how.saturate) value = std::clamp<T>(value, Limits::min(), Limits::max());
          warp.lanes<int32_t>(how.fd.slots[slot])[lane] = static_cast<int32_t>(value);
        }
      });
  return op + 1;
}

// The registers of a fragment: as many as its elements need or, for f16, twice as many or more, as
// nvcc declares.
bool registers(Lowering& l, const ptx::Operand& operand, bool write, Fragment* f) {
  const bool is_vector = operand.kind == ptx::OperandKind::Vector;
  const size_t count = is_vector ? operand.elements.size() : 1;
  const uint32_t needed = f->per_lane() / f->in_register();
  if (count > kMostRegisters || count < needed || needed == 0 || count % needed)
    return l.refuse("the number of registers does not match the shape");
  f->count = static_cast<uint32_t>(count);
  const ptx::Type type = f->bits == 64 ? ptx::Type::b64 : ptx::Type::b32;
  for (size_t i = 0; i < count; ++i) {
    const ptx::Operand& one = is_vector ? operand.elements[i] : operand;
    if (write) {
      Dest d;
      if (!l.dest(one, ptx::bytes_of(type), false, &d)) return false;
      f->slots[i] = d.offset;
    } else if (!l.lanes(one, type, &f->slots[i])) {
      return false;
    }
  }
  return true;
}

uint32_t accumulator_bits(std::string_view type) {
  return type == "f16" ? 16 : type == "f64" ? 64 : 32;
}

}  // namespace

bool wmma_transfer(Lowering& l) {
  const auto& modifiers = l.ins().modifiers;
  const auto& operands = l.ins().operands;
  Transfer how;
  how.load = modifiers[0] == "load";
  how.column_major = l.has("col");
  MatrixShape extent;
  if (!extent_of(modifiers[5], &extent)) return l.refuse("unsupported shape");
  const char which = modifiers[1][0];
  how.fragment.rows = which == 'b' ? extent.k : extent.m;
  how.fragment.columns = which == 'a' ? extent.k : extent.n;
  const std::string_view type = modifiers.back();
  Element element = Element::F16;
  if (which == 'a' || which == 'b') {
    if (!element_named(type, &element)) return l.refuse("unsupported element type");
    how.fragment.bits = bits_of(element);
  } else {
    how.fragment.bits = accumulator_bits(type);
  }
  const ptx::Space space = l.has("global") ? ptx::Space::Global
                           : l.has("shared") || l.has("shared::cta") || l.has("shared::cluster")
                               ? ptx::Space::Shared
                               : ptx::Space::Generic;
  const size_t memory = how.load ? 1 : 0, fragment = how.load ? 0 : 1;
  if (!registers(l, operands[fragment], how.load, &how.fragment) ||
      !address_operand(l, operands[memory], space, &how.memory)) {
    return false;
  }
  how.has_stride = operands.size() > 2;
  if (how.has_stride && !lane_value(l, operands[2], ptx::Type::u32, &how.stride)) return false;
  l.emit(&run_transfer).data = l.own(how);
  return true;
}

bool wmma_multiply(Lowering& l) {
  const auto& modifiers = l.ins().modifiers;
  size_t at = 1;  // .mma, and .xor.popc for .b1, come before the shape
  while (at < modifiers.size() && modifiers[at][0] != 'm') ++at;
  WmmaMultiply how;
  if (at == modifiers.size() || !extent_of(modifiers[at], &how.extent))
    return l.refuse("unsupported shape");
  std::vector<std::string_view> types;
  for (size_t i = at + 1; i < modifiers.size(); ++i) {
    if (modifiers[i] != "satfinite" && modifiers[i] != "rn") types.push_back(modifiers[i]);
  }
  if (types.size() == 4) {
    if (!element_named(types[1], &how.a) || !element_named(types[2], &how.b))
      return l.refuse("unsupported element type");
  }
  how.small_d = types.front() == "f16";
  how.small_c = types.back() == "f16";
  how.saturate = l.has("satfinite");
  how.exclusive = l.has("xor");
  const MatrixShape& e = how.extent;
  how.fa = {e.m, e.k, bits_of(how.a), 0, {}};
  how.fb = {e.k, e.n, bits_of(how.b), 0, {}};
  how.fc = {e.m, e.n, accumulator_bits(types.back()), 0, {}};
  how.fd = {e.m, e.n, accumulator_bits(types.front()), 0, {}};
  const auto& operands = l.ins().operands;
  if (!registers(l, operands[0], true, &how.fd) || !registers(l, operands[1], false, &how.fa) ||
      !registers(l, operands[2], false, &how.fb) || !registers(l, operands[3], false, &how.fc)) {
    return false;
  }
  l.emit(how.a == Element::F64 ? &run_wmma<double>
         : is_integer(how.a)   ? &run_wmma<int64_t>
                               : &run_wmma<float>)
      .data = l.own(how);
  return true;
}

}  // namespace kiln::engine
