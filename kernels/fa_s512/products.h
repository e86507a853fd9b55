// SPDX-License-Identifier: Apache-2.0
// Which wgmma make up the two products of a step? S = Q K^T and O += P V of 64 rows, from tiles as
// TMA leaves them.
#pragma once

#include "shape.h"
#include "wgmma.h"

namespace fa {

// scores = query key^T: 64 x kBlockN. Four steps of 16 columns, 32 bytes each, cross a slab.
template <class T, class S>
__device__ __forceinline__ void multiply_query_key(float (&scores)[S::kBlockN / 2], uint32_t query,
                                                   uint32_t key) {
#pragma unroll
  for (int k = 0; k < S::kHeadDim / 16; k++) {
    const uint32_t slab = k / 4, in_slab = k % 4 * 32;
    wgmma_shared<T, S::kBlockN>(
        scores, k_major_descriptor(query + slab * kRowsPerWarpgroup * kRowBytes + in_slab),
        k_major_descriptor(key + slab * S::kBlockN * kRowBytes + in_slab), k != 0);
  }
}

// out = weights value + (accumulate ? out : 0): 64 x kHeadDim. 16 rows of a slab are 2048 bytes.
template <class T, class S>
__device__ __forceinline__ void multiply_weights_value(float (&out)[S::kHeadDim / 2],
                                                       const uint32_t (&weights)[S::kBlockN / 4],
                                                       uint32_t value, bool accumulate) {
#pragma unroll
  for (int k = 0; k < S::kBlockN / 16; k++)
    wgmma_registers<T, S::kHeadDim>(
        out, &weights[4 * k],
        n_major_descriptor(value + k * 16 * kRowBytes, S::kBlockN * kRowBytes),
        k != 0 || accumulate);
}

// Accumulators of the first product as the A operand of the second.
template <class T, int N>
__device__ __forceinline__ void pack_weights(uint32_t (&weights)[N / 2], const float (&scores)[N]) {
#pragma unroll
  for (int i = 0; i < N / 2; i++) weights[i] = pack<T>(scores[2 * i], scores[2 * i + 1]);
}

}  // namespace fa
