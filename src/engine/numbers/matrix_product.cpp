// SPDX-License-Identifier: Apache-2.0
// How are fragments turned into matrices and multiplied in vector registers?
//
// A register of 32 lanes is an 8 x 8 tile of 16-bit elements in memory order: lane 4 * row + t
// holds columns 2t and 2t + 1. Eight rows of sums at a time stay in vector registers; with fewer,
// the additions wait for each other.
//
// The code uses vectors explicitly. From arrays of floats GCC makes scalar multiply-adds on x86_64,
// which are four times as slow.
#include "engine/numbers/matrix_product.h"

#include <cmath>
#include <cstring>

#include "engine/numbers/numeric.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__F16C__)
#include <immintrin.h>
#endif

namespace kiln::engine {
namespace {

constexpr uint32_t kTile = 8, kRows = 16, kAtOnce = 8;

using Words = uint16_t __attribute__((vector_size(16)));  // a row of 8 elements
using Pairs = uint32_t __attribute__((vector_size(16)));
using Fours = uint64_t __attribute__((vector_size(16)));
using Floats = float __attribute__((vector_size(16)));

template <class Vector, class T>
Vector load(const T* from) {
  Vector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

// A row of 8 f32: two vectors of 4, or one of 8 if the CPU has them.
#if defined(__AVX2__) && defined(__FMA__)
struct Row {
  __m256 all;
};
Row load_row(const float* from) { return {_mm256_loadu_ps(from)}; }
Row row_of(Floats low, Floats high) { return {_mm256_set_m128(high, low)}; }
Floats low_of(Row row) { return _mm256_castps256_ps128(row.all); }
Floats high_of(Row row) { return _mm256_extractf128_ps(row.all, 1); }
template <bool kExact>
[[gnu::always_inline]] inline Row multiply_add(float a, Row b, Row c) {
  return {_mm256_fmadd_ps(_mm256_set1_ps(a), b.all, c.all)};
}
#else
struct Row {
  Floats low, high;
};
Row load_row(const float* from) { return {load<Floats>(from), load<Floats>(from + 4)}; }
Row row_of(Floats low, Floats high) { return {low, high}; }
Floats low_of(Row row) { return row.low; }
Floats high_of(Row row) { return row.high; }
// kExact: the product is exact, so two instructions give the same bits as a fused one.
template <bool kExact>
[[gnu::always_inline]] inline Row multiply_add(float a, Row b, Row c) {
#if defined(__aarch64__)
  return {vfmaq_n_f32(c.low, b.low, a), vfmaq_n_f32(c.high, b.high, a)};
#else
  if constexpr (kExact) {
    return {a * b.low + c.low, a * b.high + c.high};
  } else {
    Floats low = c.low, high = c.high;
    for (int i = 0; i < 4; ++i) {
      low[i] = std::fma(a, b.low[i], low[i]);
      high[i] = std::fma(a, b.high[i], high[i]);
    }
    return {low, high};
  }
#endif
}
#endif

struct WidenF16 {
  static constexpr bool kExactProduct =
      true;  // 11 bits by 11 bits, and exponents well inside those of f32
  static Row f(Words row) {
#if defined(__aarch64__)
    const float16x8_t half = std::bit_cast<float16x8_t>(row);
    return {vcvt_f32_f16(vget_low_f16(half)), vcvt_high_f32_f16(half)};
#elif defined(__F16C__) && defined(__AVX2__)
    return {_mm256_cvtph_ps(std::bit_cast<__m128i>(row))};
#else
    Floats low, high;
    for (int i = 0; i < 4; ++i) {
      low[i] = half_to_float(row[i]);
      high[i] = half_to_float(row[i + 4]);
    }
    return row_of(low, high);
#endif
  }
};
struct WidenBf16 {
  static constexpr bool kExactProduct = false;  // below 2^-126 a product may lose bits
  static Row f(Words row) {
    const Words zero{};
    return row_of(
        std::bit_cast<Floats>(__builtin_shufflevector(zero, row, 0, 8, 1, 9, 2, 10, 3, 11)),
        std::bit_cast<Floats>(__builtin_shufflevector(zero, row, 4, 12, 5, 13, 6, 14, 7, 15)));
  }
};

// Transposes in steps of one instruction each. GCC does not recognise a shuffle of 16-bit words
// that only moves pairs as a shuffle of 32-bit words.
void transpose(const Words (&in)[kTile], Words (&out)[kTile]) {
  Pairs pairs[kTile];
  Fours fours[kTile];
  for (uint32_t i = 0; i < kTile; i += 2) {
    pairs[i] =
        std::bit_cast<Pairs>(__builtin_shufflevector(in[i], in[i + 1], 0, 8, 1, 9, 2, 10, 3, 11));
    pairs[i + 1] =
        std::bit_cast<Pairs>(__builtin_shufflevector(in[i], in[i + 1], 4, 12, 5, 13, 6, 14, 7, 15));
  }
  for (uint32_t i = 0; i < kTile; i += 4) {
    for (uint32_t j = 0; j < 2; ++j) {
      const Pairs a = pairs[i + j], b = pairs[i + j + 2];
      fours[i + 2 * j] = std::bit_cast<Fours>(__builtin_shufflevector(a, b, 0, 4, 1, 5));
      fours[i + 2 * j + 1] = std::bit_cast<Fours>(__builtin_shufflevector(a, b, 2, 6, 3, 7));
    }
  }
  for (uint32_t i = 0; i < 4; ++i) {
    out[2 * i] = std::bit_cast<Words>(__builtin_shufflevector(fours[i], fours[i + 4], 0, 2));
    out[2 * i + 1] = std::bit_cast<Words>(__builtin_shufflevector(fours[i], fours[i + 4], 1, 3));
  }
}

Floats canonical_all(Floats v) {
  const auto bits = std::bit_cast<uint32_t __attribute__((vector_size(16)))>(v);
  const auto nan = v != v;
  return std::bit_cast<Floats>(nan ? bits - bits + kFloatNan : bits);
}

template <uint32_t kDepth, class Widen>
void multiply(const SmallProduct& product) {
  alignas(64) float a[kRows][kDepth];
  Row b[kDepth];
  for (uint32_t r = 0; r < kDepth / 4; ++r) {  // two tiles of rows, kDepth / 8 of k
    for (uint32_t i = 0; i < kTile; ++i) {
      const Row row = Widen::f(load<Words>(product.a[r] + i * 4));
      std::memcpy(&a[(r & 1) * kTile + i][(r >> 1) * kTile], &row, sizeof row);
    }
  }
  for (uint32_t r = 0; r < kDepth / kTile; ++r) {
    Words columns[kTile], rows[kTile];
    for (uint32_t n = 0; n < kTile; ++n) columns[n] = load<Words>(product.b[r] + n * 4);
    transpose(columns, rows);
    for (uint32_t i = 0; i < kTile; ++i) b[r * kTile + i] = Widen::f(rows[i]);
  }
  for (uint32_t half = 0; half < kRows / kAtOnce;
       ++half) {  // tiles of 8 rows: lanes 4i to 4i + 3 have row i
    const float *c_even = product.c[half * 2], *c_odd = product.c[half * 2 + 1];
    float *d_even = product.d[half * 2], *d_odd = product.d[half * 2 + 1];
    Row sums[kAtOnce];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const Floats even = load<Floats>(c_even + i * 4), odd = load<Floats>(c_odd + i * 4);
      sums[i] = row_of(__builtin_shufflevector(even, odd, 0, 4, 1, 5),
                       __builtin_shufflevector(even, odd, 2, 6, 3, 7));
    }
    for (uint32_t k = 0; k < kDepth; ++k) {
#pragma GCC unroll 8
      for (uint32_t i = 0; i < kAtOnce; ++i) {
        sums[i] = multiply_add<Widen::kExactProduct>(a[half * kAtOnce + i][k], b[k], sums[i]);
      }
    }
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      const Floats low = low_of(sums[i]), high = high_of(sums[i]);
      const Floats even = canonical_all(__builtin_shufflevector(low, high, 0, 2, 4, 6));
      const Floats odd = canonical_all(__builtin_shufflevector(low, high, 1, 3, 5, 7));
      std::memcpy(d_even + i * 4, &even, sizeof even);
      std::memcpy(d_odd + i * 4, &odd, sizeof odd);
    }
  }
}

}  // namespace

void multiply_f16(const SmallProduct& product, uint32_t k) {
  k == 16 ? multiply<16, WidenF16>(product) : multiply<8, WidenF16>(product);
}
void multiply_bf16(const SmallProduct& product, uint32_t k) {
  k == 16 ? multiply<16, WidenBf16>(product) : multiply<8, WidenBf16>(product);
}

namespace {

// Loops of one operation for all elements, which are vector code.
template <class Body>
void widen_words(const uint32_t* words, uint32_t count, float* to, const Body& body) {
  for (uint32_t i = 0; i < count; ++i) to[i] = body(words[i]);
}
template <class Unit, class Body>
void widen_units(const uint32_t* words, uint32_t count, float* to, const Body& body) {
  const uint32_t units = count * 4 / sizeof(Unit);
  for (uint32_t i = 0; i < units; i += 8) {  // a multiple of 4 words at least
    Unit eight[8];
    std::memcpy(eight, reinterpret_cast<const std::byte*>(words) + size_t{i} * sizeof(Unit),
                sizeof eight);
    for (uint32_t e = 0; e < 8; ++e) to[i + e] = body(eight[e]);
  }
}
template <uint32_t kBits, class Body>
void widen_parts(const uint32_t* words, uint32_t count, float* to, const Body& body) {
  constexpr uint32_t kParts = 32 / kBits;
  for (uint32_t i = 0; i < count; ++i) {
    for (uint32_t e = 0; e < kParts; ++e) to[i * kParts + e] = body(words[i] >> (kBits * e));
  }
}
void widen_tiny(TinyFloat kind, const uint32_t* words, uint32_t count, float* to) {
  const float* known = tiny_floats(kind);
  const uint32_t drops = kind == TinyFloat::E2m1 ? 2 : 0;  // bits 2 to 5 of the byte
  const uint32_t mask = kind == TinyFloat::E2m1 ? 15 : 255;
  widen_units<uint8_t>(words, count, to, [&](uint8_t byte) { return known[byte >> drops & mask]; });
}
template <class Widen>
void widen_rows(const uint32_t* words, uint32_t count, float* to) {
  for (uint32_t i = 0; i < count; i += 4) {
    const Row row = Widen::f(load<Words>(words + i));
    std::memcpy(to + size_t{i} * 2, &row, sizeof row);
  }
}

template <bool kExact>
void add_rows(const FloatProduct& p, const float* a, const float* b, float* d) {
  Row sums[kAtOnce];
#pragma GCC unroll 8
  for (uint32_t i = 0; i < kAtOnce; ++i) sums[i] = load_row(d + i * p.d_step);
  for (uint32_t k = 0; k < p.k; ++k) {
    const Row right = load_row(b + k * p.b_step);
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kAtOnce; ++i)
      sums[i] = multiply_add<kExact>(a[i * p.a_step + k], right, sums[i]);
  }
#pragma GCC unroll 8
  for (uint32_t i = 0; i < kAtOnce; ++i) std::memcpy(d + i * p.d_step, &sums[i], sizeof(Row));
}

}  // namespace

void widen_elements(Element type, const uint32_t* words, uint32_t count, float* to) {
  switch (type) {
    case Element::F16:
      return widen_rows<WidenF16>(words, count, to);
    case Element::Bf16:
      return widen_rows<WidenBf16>(words, count, to);
    case Element::Tf32:  // the hardware ignores the low bits
      return widen_words(words, count, to, [](uint32_t word) { return as_float(word & ~0x1fffu); });
    case Element::E4m3:
      return widen_tiny(TinyFloat::E4m3, words, count, to);
    case Element::E5m2:
      return widen_tiny(TinyFloat::E5m2, words, count, to);
    case Element::E3m2:
      return widen_tiny(TinyFloat::E3m2, words, count, to);
    case Element::E2m3:
      return widen_tiny(TinyFloat::E2m3, words, count, to);
    case Element::E2m1:
      return widen_tiny(TinyFloat::E2m1, words, count, to);
    case Element::S8:
      return widen_units<int8_t>(words, count, to,
                                 [](int8_t byte) { return static_cast<float>(byte); });
    case Element::U8:
      return widen_units<uint8_t>(words, count, to,
                                  [](uint8_t byte) { return static_cast<float>(byte); });
    case Element::S4:
      return widen_parts<4>(words, count, to, [](uint32_t word) {
        return static_cast<float>(static_cast<int32_t>(word << 28) >> 28);
      });
    case Element::U4:
      return widen_parts<4>(words, count, to, [](uint32_t word) {
        return static_cast<float>(static_cast<int32_t>(word & 15));
      });
    case Element::B1:
      return widen_parts<1>(words, count, to, [](uint32_t word) {
        return static_cast<float>(static_cast<int32_t>(word & 1));
      });
    case Element::F64:
      break;  // not by way of f32
  }
}

void add_product(const FloatProduct& p) {
  for (uint32_t row = 0; row < p.m; row += kAtOnce) {
    for (uint32_t column = 0; column < p.n; column += kTile) {
      const float *a = p.a + row * p.a_step, *b = p.b + column;
      float* d = p.d + row * p.d_step + column;
      p.is_exact ? add_rows<true>(p, a, b, d) : add_rows<false>(p, a, b, d);
    }
  }
}

void transpose(const float* from, size_t from_step, uint32_t rows, uint32_t columns, float* to,
               size_t to_step) {
  for (uint32_t row = 0; row < rows; row += 4) {
    for (uint32_t column = 0; column < columns; column += 4) {
      Floats in[4], pairs[4], out[4];
      for (uint32_t i = 0; i < 4; ++i) in[i] = load<Floats>(from + (row + i) * from_step + column);
      for (uint32_t i = 0; i < 4; i += 2) {
        pairs[i] = __builtin_shufflevector(in[i], in[i + 1], 0, 4, 1, 5);
        pairs[i + 1] = __builtin_shufflevector(in[i], in[i + 1], 2, 6, 3, 7);
      }
      for (uint32_t i = 0; i < 2; ++i) {
        out[2 * i] = __builtin_shufflevector(pairs[i], pairs[i + 2], 0, 1, 4, 5);
        out[2 * i + 1] = __builtin_shufflevector(pairs[i], pairs[i + 2], 2, 3, 6, 7);
      }
      for (uint32_t i = 0; i < 4; ++i)
        std::memcpy(to + (column + i) * to_step + row, &out[i], sizeof out[i]);
    }
  }
}

void split_columns(const float* rows, float* even, float* odd) {
  for (uint32_t lane = 0; lane < 32; ++lane) {
    even[lane] = canonical(rows[2 * lane]);
    odd[lane] = canonical(rows[2 * lane + 1]);
  }
}

void narrow_to_halves(const float* from, uint32_t count, uint32_t* words) {
  for (uint32_t i = 0; i < count; ++i) {
    words[i] = uint32_t{float_to_half(from[2 * i])} | uint32_t{float_to_half(from[2 * i + 1])}
                                                          << 16;
  }
}

void load_rows(const std::byte* const* rows, bool transposed, uint32_t* lanes) {
  if (!transposed) {
    for (uint32_t i = 0; i < kTile; ++i) std::memcpy(lanes + i * 4, rows[i], 16);
    return;
  }
  Words tile[kTile], turned[kTile];
  for (uint32_t i = 0; i < kTile; ++i) std::memcpy(&tile[i], rows[i], 16);
  transpose(tile, turned);
  std::memcpy(lanes, turned, sizeof turned);
}

}  // namespace kiln::engine
