// SPDX-License-Identifier: Apache-2.0
// How are fragments turned into matrices and multiplied in vector registers?
//
// A register of 32 lanes is an 8 x 8 tile of 16-bit elements in memory order: lane 4 * row + t holds columns 2t and
// 2t + 1. Four rows of sums at a time stay in vector registers: with fewer the additions wait for each other.
#include "engine/matrix_product.h"

#include <cmath>
#include <cstring>

#include "engine/numeric.h"

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__F16C__)
#include <immintrin.h>
#endif

namespace kiln::engine {
namespace {

constexpr uint32_t kTile = 8, kRows = 16, kColumns = 8, kAtOnce = 4;

// A row of 8 elements.
void widen_f16(const uint16_t* from, float* to) {
#if defined(__aarch64__)
  const float16x8_t row = vreinterpretq_f16_u16(vld1q_u16(from));
  vst1q_f32(to, vcvt_f32_f16(vget_low_f16(row)));
  vst1q_f32(to + 4, vcvt_high_f32_f16(row));
#elif defined(__F16C__)
  _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
  for (uint32_t i = 0; i < kTile; ++i) to[i] = half_to_float(from[i]);
#endif
}
void widen_bf16(const uint16_t* from, float* to) {
  for (uint32_t i = 0; i < kTile; ++i) to[i] = bf16_to_float(from[i]);
}

template <uint32_t kDepth, auto kWiden>
void multiply(const SmallProduct& product) {
  alignas(64) float a[kRows][kDepth], b[kDepth][kColumns], d[kRows][kColumns], column[kTile];
  for (uint32_t r = 0; r < kDepth / 4; ++r) {  // two tiles of rows, kDepth / 8 of k
    uint16_t tile[kTile * kTile];
    std::memcpy(tile, product.a[r], sizeof tile);
    for (uint32_t i = 0; i < kTile; ++i) kWiden(tile + i * kTile, &a[(r & 1) * kTile + i][(r >> 1) * kTile]);
  }
  for (uint32_t r = 0; r < kDepth / kTile; ++r) {
    uint16_t tile[kTile * kTile];
    std::memcpy(tile, product.b[r], sizeof tile);
    for (uint32_t n = 0; n < kColumns; ++n) {
      kWiden(tile + n * kTile, column);
      for (uint32_t i = 0; i < kTile; ++i) b[r * kTile + i][n] = column[i];
    }
  }
  for (uint32_t half = 0; half < 2; ++half) {
    const float *even = product.c[half * 2], *odd = product.c[half * 2 + 1];
    float* to = d[half * kTile];
    for (uint32_t i = 0; i < 32; ++i) {
      to[2 * i] = even[i];
      to[2 * i + 1] = odd[i];
    }
  }
  for (uint32_t row = 0; row < kRows; row += kAtOnce) {
    float sums[kAtOnce][kColumns];
    std::memcpy(sums, d[row], sizeof sums);
    for (uint32_t k = 0; k < kDepth; ++k) {
#pragma GCC unroll 4
      for (uint32_t r = 0; r < kAtOnce; ++r) {
#pragma GCC unroll 8
        for (uint32_t n = 0; n < kColumns; ++n) sums[r][n] = std::fma(a[row + r][k], b[k][n], sums[r][n]);
      }
    }
    std::memcpy(d[row], sums, sizeof sums);
  }
  for (uint32_t half = 0; half < 2; ++half) {
    float *even = product.d[half * 2], *odd = product.d[half * 2 + 1];
    const float* from = d[half * kTile];
    for (uint32_t i = 0; i < 32; ++i) {
      even[i] = canonical(from[2 * i]);
      odd[i] = canonical(from[2 * i + 1]);
    }
  }
}

}  // namespace

void multiply_f16(const SmallProduct& product, uint32_t k) {
  k == 16 ? multiply<16, widen_f16>(product) : multiply<8, widen_f16>(product);
}
void multiply_bf16(const SmallProduct& product, uint32_t k) {
  k == 16 ? multiply<16, widen_bf16>(product) : multiply<8, widen_bf16>(product);
}

void load_rows(const std::byte* const* rows, bool transposed, uint32_t* lanes) {
  if (!transposed) {
    for (uint32_t i = 0; i < kTile; ++i) std::memcpy(lanes + i * 4, rows[i], 16);
    return;
  }
  uint16_t tile[kTile][kTile], turned[kTile][kTile];
  for (uint32_t i = 0; i < kTile; ++i) std::memcpy(tile[i], rows[i], 16);
  for (uint32_t i = 0; i < kTile; ++i) {
    for (uint32_t j = 0; j < kTile; ++j) turned[i][j] = tile[j][i];
  }
  std::memcpy(lanes, turned, sizeof turned);
}

}  // namespace kiln::engine
