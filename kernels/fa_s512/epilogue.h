// SPDX-License-Identifier: Apache-2.0
// How does a warpgroup's output leave? Accumulators to 16 bits, through stmatrix into shared memory
// in TMA's swizzle, and one TMA store, which clips the rows beyond the end.
#pragma once

#include "barriers.h"
#include "shape.h"
#include "tma.h"
#include "wgmma.h"

namespace fa {

// 64 rows of accumulators to `tile`, 64 x kHeadDim in slabs. Lane l addresses row l % 8 of matrix l
// / 8; the four matrices are rows 0-7 and 8-15 of two neighbouring chunks of 8 columns, which is
// the order of the accumulators.
template <class T, int kHeadDim>
__device__ __forceinline__ void stage_out(uint32_t tile, const float (&out)[kHeadDim / 2]) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const unsigned row = warp * 16 + lane % 16, odd = lane / 16;
  const uint32_t row_at = tile + row * kRowBytes;
#pragma unroll
  for (int i = 0; i < kHeadDim / 16; i++) {
    const unsigned slab = i / 4, chunk = (i % 4 * 2 + odd) ^ (row & 7);
    const float* o = &out[8 * i];
    stmatrix_x4(row_at + slab * kRowsPerWarpgroup * kRowBytes + chunk * 16, pack<T>(o[0], o[1]),
                pack<T>(o[2], o[3]), pack<T>(o[4], o[5]), pack<T>(o[6], o[7]));
  }
}

// The staged tile to global memory; `barrier_id` is a named barrier of this warpgroup alone. The
// thread that stores must wait (tma_store_wait_read) before the tile is written again.
template <int kHeadDim>
__device__ __forceinline__ void store_staged(const CUtensorMap* map, uint32_t tile,
                                             unsigned barrier_id, int row, int head, int batch) {
  async_proxy_fence();
  named_barrier_sync(barrier_id, kWarpgroup);
  if (threadIdx.x % kWarpgroup == 0) {
    tma_store_tile<kRowsPerWarpgroup, kHeadDim>(map, tile, row, head, batch);
    tma_store_commit();
  }
}

}  // namespace fa
