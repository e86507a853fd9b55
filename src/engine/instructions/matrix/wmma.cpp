// SPDX-License-Identifier: Apache-2.0
// How do wmma.load, wmma.mma and wmma.store run? (PTX ISA 9.7.14.4) How a fragment is stored
// in registers is up to them: element e of lane l is number l * E + e of the matrix,
// row by row, where a lane has E of them. Fragments of f16 that are larger than that hold each
// element twice, as nvcc declares them.
#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/decode/address_operand.h"
#include "engine/decode/lanes.h"
#include "engine/instructions/lowerings_matrix.h"
#include "engine/machine/watching.h"
#include "engine/numbers/matrix_elements.h"
#include "engine/numbers/matrix_product.h"

namespace kiln::engine {
namespace {

constexpr uint32_t kMostRegisters = 8, kMostSide = 32, kMostDepth = 128;
constexpr uint32_t kMostElements = 1024;  // 8 x 128 bits

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

// The fragment as memory would hold it row by row. Words: of 32 or 64 bits, as the registers.
template <class Word>
struct Packed {
  static constexpr uint32_t kMost = kWarpSize * kMostRegisters;
  Word words[kMost];

  // Words of a lane.
  static uint32_t count(const Fragment& f) { return f.per_lane() * f.bits / 8 / sizeof(Word); }
  void read(Warp& warp, const Fragment& f) {
    const uint32_t each = count(f);
    for (uint32_t slot = 0; slot < each; ++slot) {
      const Word* from = warp.lanes<Word>(f.slots[slot]);
      for (uint32_t lane = 0; lane < kWarpSize; ++lane) words[lane * each + slot] = from[lane];
    }
  }
  // Also to the copies that nvcc declares.
  void write(Warp& warp, const Fragment& f) const {
    const uint32_t each = count(f);
    uint32_t word = 0;
    for (uint32_t slot = 0; slot < f.count; ++slot) {
      Word* to = warp.lanes<Word>(f.slots[slot]);
      // NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): read() or a load filled them
      for (uint32_t lane = 0; lane < kWarpSize; ++lane) to[lane] = words[lane * each + word];
      word = word + 1 == each ? 0 : word + 1;
    }
  }
};

struct Transfer {
  Fragment fragment;
  AddressOperand memory;
  LaneValue stride;  // in elements
  bool has_stride = false, column_major = false, load = true;
};

// Between a matrix row by row and memory whose lines, rows or columns, are `stride` elements apart.
template <class T, bool kLoad, class Bytes>
void move_columns(Bytes* matrix, Bytes* memory, const Fragment& f, uint64_t stride) {
  for (uint32_t column = 0; column < f.columns; ++column) {
    for (uint32_t row = 0; row < f.rows; ++row) {
      auto* inside = matrix + (row * f.columns + column) * sizeof(T);
      auto* outside = memory + (column * stride + row) * sizeof(T);
      kLoad ? std::memcpy(inside, outside, sizeof(T)) : std::memcpy(outside, inside, sizeof(T));
    }
  }
}

// Elements of fewer than 8 bits. Only matrices that are read have them.
void load_bits(std::byte* matrix, const std::byte* memory, const Fragment& f, uint64_t stride) {
  const uint32_t mask = (1u << f.bits) - 1;
  std::memset(matrix, 0, size_t{f.rows} * f.columns * f.bits / 8);
  for (uint32_t row = 0; row < f.rows; ++row) {
    for (uint32_t column = 0; column < f.columns; ++column) {
      const uint64_t from = (column * stride + row) * f.bits,
                     to = (uint64_t{row} * f.columns + column) * f.bits;
      const uint32_t value = static_cast<uint32_t>(memory[from / 8]) >> (from % 8) & mask;
      matrix[to / 8] |= static_cast<std::byte>(value << (to % 8));
    }
  }
}

template <bool kLoad>
void move_matrix(std::byte* matrix, std::byte* memory, const Transfer& how, uint64_t stride) {
  const Fragment& f = how.fragment;
  if (!how.column_major) {
    const size_t line = size_t{f.columns} * f.bits / 8;
    for (uint32_t row = 0; row < f.rows; ++row) {
      std::byte *inside = matrix + row * line, *outside = memory + row * stride * f.bits / 8;
      kLoad ? std::memcpy(inside, outside, line) : std::memcpy(outside, inside, line);
    }
    return;
  }
  switch (f.bits) {
    case 8:
      return move_columns<uint8_t, kLoad>(matrix, memory, f, stride);
    case 16:
      return move_columns<uint16_t, kLoad>(matrix, memory, f, stride);
    case 32:
      return move_columns<uint32_t, kLoad>(matrix, memory, f, stride);
    case 64:
      return move_columns<uint64_t, kLoad>(matrix, memory, f, stride);
    default:
      return load_bits(matrix, memory, f, stride);
  }
}

template <class Word>
void transfer(Warp& warp, std::byte* memory, const Transfer& how, uint64_t stride) {
  Packed<Word> packed;
  auto* matrix = reinterpret_cast<std::byte*>(packed.words);
  if (how.load) {
    move_matrix<true>(matrix, memory, how, stride);
    packed.write(warp, how.fragment);
  } else {
    packed.read(warp, how.fragment);
    move_matrix<false>(matrix, memory, how, stride);
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
  f.bits == 64 ? transfer<uint64_t>(warp, memory, how, stride)
               : transfer<uint32_t>(warp, memory, how, stride);
  return op + 1;
}

struct WmmaMultiply {
  MatrixShape extent;
  Element a = Element::F16, b = Element::F16;
  bool small_c = false, small_d = false, saturate = false, exclusive = false;
  Fragment fa, fb, fc, fd;
};

// Plain matrices of f32.
struct PlainMatrices {
  static constexpr uint32_t kMost = kMostElements;
  float a[kMost], b[kMost], d[kMost];
};

void widen_fragment(Warp& warp, const Fragment& f, Element type, float* to) {
  Packed<uint32_t> packed;
  packed.read(warp, f);
  widen_elements(type, packed.words, kWarpSize * Packed<uint32_t>::count(f), to);
}

void multiply_plain(const WmmaMultiply& how, PlainMatrices& of) {
  const auto [m, n, k] = how.extent;
  add_product(
      {of.a, k, of.b, n, of.d, n, m, n, k, has_exact_products(how.a) && has_exact_products(how.b)});
}

// The layout of fragments is opaque in PTX and fixed on the GPU: through plain matrices the product
// is written once for all shapes.
const Op* run_wmma_float(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const WmmaMultiply& how = *static_cast<const WmmaMultiply*>(op->data);
  PlainMatrices of;
  widen_fragment(warp, how.fa, how.a, of.a);
  widen_fragment(warp, how.fb, how.b, of.b);
  Packed<uint32_t> sums;
  sums.read(warp, how.fc);
  const uint32_t count = how.extent.m * how.extent.n;
  if (how.small_c)
    widen_elements(Element::F16, sums.words, count / 2, of.d);
  else
    std::memcpy(of.d, sums.words, count * sizeof(float));
  multiply_plain(how, of);
  if (how.small_d) {
    narrow_to_halves(of.d, count / 2, sums.words);
  } else {
    for (uint32_t i = 0; i < count; ++i) sums.words[i] = as_bits(canonical(of.d[i]));
  }
  sums.write(warp, how.fd);
  return op + 1;
}

// .xor.popc: a ^ b is a + b - 2ab, which is a * (1 - 2b) + b.
void invert_products(const WmmaMultiply& how, PlainMatrices& of) {
  const auto [m, n, depth] = how.extent;
  for (uint32_t column = 0; column < n; ++column) {
    float ones = 0;
    for (uint32_t k = 0; k < depth; ++k) {
      float& bit = of.b[k * n + column];
      ones += bit;
      bit = 1 - 2 * bit;
    }
    for (uint32_t row = 0; row < m; ++row) of.d[row * n + column] = ones;
  }
}

const Op* run_wmma_integer(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const WmmaMultiply& how = *static_cast<const WmmaMultiply*>(op->data);
  const uint32_t count = how.extent.m * how.extent.n;
  PlainMatrices of;
  widen_fragment(warp, how.fa, how.a, of.a);
  widen_fragment(warp, how.fb, how.b, of.b);
  std::fill_n(of.d, count, 0.0f);
  if (how.exclusive) invert_products(how, of);
  multiply_plain(how, of);
  Packed<uint32_t> sums;
  sums.read(warp, how.fc);
  for (uint32_t i = 0; i < count; ++i) {
    const auto c = static_cast<int32_t>(sums.words[i]);
    sums.words[i] = static_cast<uint32_t>(add_integer_sum(of.d[i], c, how.saturate));
  }
  sums.write(warp, how.fd);
  return op + 1;
}

const Op* run_wmma_double(Warp& warp, const Op* op) {
  if (!warp.converged(op, kFullMask)) return nullptr;
  const WmmaMultiply& how = *static_cast<const WmmaMultiply*>(op->data);
  const auto [m, n, depth] = how.extent;
  Packed<double> a, b, d;
  a.read(warp, how.fa);
  b.read(warp, how.fb);
  d.read(warp, how.fc);
  for (uint32_t row = 0; row < m; ++row) {
    double* sums = d.words + row * n;
    for (uint32_t k = 0; k < depth; ++k) {
      const double left = a.words[row * depth + k], *right = b.words + k * n;
      for (uint32_t column = 0; column < n; ++column)
        sums[column] = multiply_add(left, right[column], sums[column]);
    }
    for (uint32_t column = 0; column < n; ++column) sums[column] = canonical(sums[column]);
  }
  d.write(warp, how.fd);
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
  l.emit(how.a == Element::F64 ? &run_wmma_double
         : is_integer(how.a)   ? &run_wmma_integer
                               : &run_wmma_float)
      .data = l.own(how);
  return true;
}

}  // namespace kiln::engine
