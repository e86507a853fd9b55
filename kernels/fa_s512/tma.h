// SPDX-License-Identifier: Apache-2.0
// How does a tile get between global and shared memory? TMA through a 4-D tensor map {head dim,
// sequence, head, batch} with the 128-byte swizzle. A tile lies in slabs of 64 columns: rows of 128
// bytes, whose eight 16-byte chunks are permuted, chunk ^ (row & 7). A slab starts at a multiple of
// 1024 bytes.
#pragma once

#include <cuda.h>
#include <stdint.h>

namespace fa {

constexpr int kSlabColumns = 64;
constexpr int kRowBytes = 128;

// Rows out of bounds are filled with zeros, and count as bytes of the barrier.
__device__ __forceinline__ void tma_load(uint32_t to, const CUtensorMap* map, uint32_t barrier,
                                         int column, int row, int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, "
      "{%3, %4, %5, %6}], "
      "[%2];" ::"r"(to),
      "l"(map), "r"(barrier), "r"(column), "r"(row), "r"(head), "r"(batch)
      : "memory");
}

// Bytes of plain memory, a multiple of 16 from a multiple of 16.
__device__ __forceinline__ void bulk_load(uint32_t to, const void* from, unsigned bytes,
                                          uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

// Rows out of bounds are not written.
__device__ __forceinline__ void tma_store(const CUtensorMap* map, uint32_t from, int column,
                                          int row, int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::
          "l"(map),
      "r"(from), "r"(column), "r"(row), "r"(head), "r"(batch)
      : "memory");
}
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
// Until the stores of this thread have read their shared memory.
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ __forceinline__ void tma_prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// What threads wrote to shared memory becomes visible to TMA and wgmma.
__device__ __forceinline__ void async_proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
__device__ __forceinline__ void stmatrix_x4(uint32_t to, uint32_t a, uint32_t b, uint32_t c,
                                            uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a),
               "r"(b), "r"(c), "r"(d)
               : "memory");
}

// A tile of kRows rows and kHeadDim columns, slab after slab, on one barrier. One thread.
template <int kRows, int kHeadDim>
__device__ __forceinline__ void tma_load_tile(uint32_t to, const CUtensorMap* map, uint32_t barrier,
                                              int row, int head, int batch) {
#pragma unroll
  for (int slab = 0; slab < kHeadDim / kSlabColumns; slab++)
    tma_load(to + slab * kRows * kRowBytes, map, barrier, slab * kSlabColumns, row, head, batch);
}
template <int kRows, int kHeadDim>
__device__ __forceinline__ void tma_store_tile(const CUtensorMap* map, uint32_t from, int row,
                                               int head, int batch) {
#pragma unroll
  for (int slab = 0; slab < kHeadDim / kSlabColumns; slab++)
    tma_store(map, from + slab * kRows * kRowBytes, slab * kSlabColumns, row, head, batch);
}

}  // namespace fa
