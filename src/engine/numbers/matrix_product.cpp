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

using Integers = int32_t __attribute__((vector_size(32)));
using EightFloats = float __attribute__((vector_size(32)));

void store_floats(const Integers& eight, float* to) {
  const auto floats = __builtin_convertvector(eight, EightFloats);
  std::memcpy(to, &floats, sizeof floats);
}

using Unsigned = uint32_t __attribute__((vector_size(32)));

// Elements of kBits bits from `bits` on, which are moved to the top, and back with or without their
// sign.
template <uint32_t kBits, bool kSigned>
void widen_eight(const Unsigned& bits, float* to) {
  constexpr uint32_t kTop = 32 - kBits;
  const Unsigned by = kBits == 8 ? Unsigned{24, 16, 8, 0, 24, 16, 8, 0}
                                 : kTop - kBits * Unsigned{0, 1, 2, 3, 4, 5, 6, 7};
  const Unsigned top = bits << by;
  store_floats(kSigned ? (Integers)top >> kTop : (Integers)(top >> kTop), to);
}

template <bool kSigned>
void widen_bytes(const uint32_t* words, uint32_t count, float* to) {
  for (uint32_t i = 0; i < count; i += 2) {
    // Not an initializer of eight words, for which GCC takes a detour through memory.
    constexpr Unsigned kFirst = {~0u, ~0u, ~0u, ~0u, 0, 0, 0, 0};
    const Unsigned low = Unsigned{} + words[i], high = Unsigned{} + words[i + 1];
    const Unsigned bits = (low & kFirst) | (high & ~kFirst);
    widen_eight<8, kSigned>(bits, to + size_t{i} * 4);
  }
}

template <uint32_t kBits, bool kSigned>
void widen_parts(const uint32_t* words, uint32_t count, float* to) {
  constexpr uint32_t kParts = 32 / kBits;
  for (uint32_t i = 0; i < count * kParts; i += 8)
    widen_eight<kBits, kSigned>(Unsigned{} + (words[i / kParts] >> i % kParts * kBits), to + i);
}

void widen_tiny(TinyFloat kind, const uint32_t* words, uint32_t count, float* to) {
  const float* known = tiny_floats(kind);
  const bool is_narrow = kind == TinyFloat::E2m1;  // bits 2 to 5 of the byte
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t word = is_narrow ? words[i] >> 2 & 0x0f0f0f0fu : words[i];
    for (uint32_t e = 0; e < 4; ++e) to[i * 4 + e] = known[word >> (8 * e) & 0xff];
  }
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
      for (uint32_t i = 0; i < count; ++i) to[i] = as_float(words[i] & ~0x1fffu);
      return;
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
      return widen_bytes<true>(words, count, to);
    case Element::U8:
      return widen_bytes<false>(words, count, to);
    case Element::S4:
      return widen_parts<4, true>(words, count, to);
    case Element::U4:
      return widen_parts<4, false>(words, count, to);
    case Element::B1:
      return widen_parts<1, false>(words, count, to);
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
