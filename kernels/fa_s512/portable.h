// SPDX-License-Identifier: Apache-2.0
// What is the kernel where there is no wgmma and no TMA? One block a tile of Q: cp.async brings K
// and V, each warp has its rows to itself, products by mma.sync. K of the next step arrives under
// the softmax and P V, V of a step under Q K^T.
#pragma once

#include <kiln/op.h>

#include "head_dims.h"
#include "mma.h"
#include "portable_shape.h"
#include "softmax.h"

namespace fa {

// Read where it is needed: what follows from it is not kept in registers all along.
__device__ __forceinline__ int thread_now() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

// Where 16 bytes of a tile lie: rows of kHeadDim elements, the eight chunks of each 128 bytes
// permuted by the row, so that the eight rows of an ldmatrix are in eight different banks.
template <int kHeadDim>
__device__ __forceinline__ uint32_t chunk_at(uint32_t tile, int row, int chunk) {
  return tile + row * (kHeadDim * 2) + ((chunk ^ (row & 7)) << 4);
}

// Where a lane's row of an ldmatrix of four lies: row lane % 16, column block lane / 16, of the 16
// x 16 block at the tile's start. The block `down` and `along` (in 16 rows and columns) is an
// exclusive or and an addition away.
template <int kHeadDim>
__device__ __forceinline__ uint32_t lane_at(uint32_t tile) {
  const int lane = threadIdx.x % 32;
  return chunk_at<kHeadDim>(tile, lane % 16, lane / 16);
}
template <int kHeadDim>
__device__ __forceinline__ uint32_t block_at(uint32_t lane_at, int down, int along) {
  return (lane_at ^ (along % 4 << 5)) + (along / 4 * 128 + down * 16 * kHeadDim * 2);
}

// Which rows of which head are this block's. The blocks of a head are neighbours, so its K and V
// are in L2; the longest tile of a head first.
template <class S, bool kCausal>
struct Place {
  int batch, head, first_query;

  static __device__ __forceinline__ Place now(const PortableWork& work) {
    const uint32_t head_of_all = work.tiles_per_head.quotient(blockIdx.x);
    const uint32_t in_head = blockIdx.x - head_of_all * work.tiles_per_head.d,
                   batch = work.heads.quotient(head_of_all);
    const uint32_t tile = kCausal ? work.tiles_per_head.d - 1 - in_head : in_head;
    return {static_cast<int>(batch), static_cast<int>(head_of_all - batch * work.heads.d),
            static_cast<int>(tile * S::kBlockM)};
  }
};

// kRows rows from `first` of one head; rows at or beyond `limit` become zeros. The same for all
// threads is the tile's place in memory, 64 bits wide; what a thread adds to it is 32.
template <int kRows, int kHeadDim, int kThreads, bool kWhole = false>
__device__ __forceinline__ void copy_tile(uint32_t tile, const PortableTensor& from, int64_t at,
                                          int first, int limit, bool there = true) {
  constexpr int kChunks = kHeadDim / 8, kRowsAtOnce = kThreads / kChunks;
  static_assert(kRows % kRowsAtOnce == 0 && kRowsAtOnce % 8 == 0);
  const int thread = thread_now(), chunk = thread % kChunks, row = thread / kChunks;
  const uint32_t to = chunk_at<kHeadDim>(tile, row, chunk),
                 row_bytes = static_cast<uint32_t>(from.row_stride) * 2;
  const char* start = static_cast<const char*>(from.data) + (at + first * from.row_stride) * 2;
  uint32_t offset = row * row_bytes + chunk * 16;
#pragma unroll
  for (int i = 0; i < kRows / kRowsAtOnce; i++) {
    copy_async(to + i * kRowsAtOnce * kHeadDim * 2, start + offset,
               kWhole ? there : first + row + i * kRowsAtOnce < limit);
    offset += kRowsAtOnce * row_bytes;
  }
}

// One warp's rows of Q as A operands: kRowTiles tiles of 16 rows, one k16 step.
template <class S>
__device__ __forceinline__ void load_query(uint32_t (&a)[S::kRowTiles][4], uint32_t lane_at,
                                           int k) {
#pragma unroll
  for (int m = 0; m < S::kRowTiles; m++) ldmatrix_x4(a[m], block_at<S::kHeadDim>(lane_at, m, k));
}

// A warp stages its own rows where its own rows of Q were, which nobody else reads.
template <class T, class S, bool kCausal>
__device__ __forceinline__ void write_portable(const PortableWork& work, uint32_t query,
                                               float (&out)[S::kRowTiles][S::kHeadDim / 8][4],
                                               const Softmax (&softmax)[S::kRowTiles]) {
  constexpr int kHeadDim = S::kHeadDim, kRowTiles = S::kRowTiles;
  const auto [batch, head, first_query] = Place<S, kCausal>::now(work);
  const int thread = thread_now(), lane = thread % 32, first_row = thread / 32 * 16 * kRowTiles;
#pragma unroll
  for (int m = 0; m < kRowTiles; m++) {
    float factor[2], lse[2];
    softmax[m].finish(factor, lse);
    scale_rows(reinterpret_cast<float(&)[kHeadDim / 2]>(out[m]), factor);
    const int row = first_row + m * 16 + lane / 4;
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; n++) {
#pragma unroll
      for (int r = 0; r < 2; r++)
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(chunk_at<kHeadDim>(query, row + 8 * r, n) +
                                                     lane % 4 * 4),
                     "r"(pack<T>(out[m][n][2 * r], out[m][n][2 * r + 1]))
                     : "memory");
    }
    if (lane % 4 == 0) {
      float* to = work.lse + (static_cast<int64_t>(batch) * work.heads.d + head) * work.queries +
                  first_query;
      if (first_query + row < work.queries) to[row] = lse[0];
      if (first_query + row + 8 < work.queries) to[row + 8] = lse[1];
    }
  }
  __syncwarp();
  constexpr int kChunks = kHeadDim / 8, kRowsAtOnce = 32 / kChunks;
  uint16_t* to = static_cast<uint16_t*>(work.out.data) + batch * work.out.batch_stride +
                 head * work.out.head_stride;
#pragma unroll
  for (int i = 0; i < 16 * kRowTiles / kRowsAtOnce; i++) {
    const int row = first_row + i * kRowsAtOnce + lane / kChunks, chunk = lane % kChunks;
    uint32_t v[4];
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                 : "r"(chunk_at<kHeadDim>(query, row, chunk))
                 : "memory");
    if (first_query + row < work.queries)
      *reinterpret_cast<uint4*>(to + (first_query + row) * work.out.row_stride + chunk * 8) =
          make_uint4(v[0], v[1], v[2], v[3]);
  }
}

// Adds the product of this step's weights and V.
template <class T, class S>
__device__ __forceinline__ void multiply_values(
    float (&out)[S::kRowTiles][S::kHeadDim / 8][4],
    const uint32_t (&weights)[S::kRowTiles][S::kBlockN / 4], uint32_t key_lane) {
#pragma unroll
  for (int k = 0; k < S::kBlockN / 16; k++) {
#pragma unroll
    for (int n = 0; n < S::kHeadDim / 16; n++) {
      uint32_t b[4];
      ldmatrix_x4_transposed(b, block_at<S::kHeadDim>(key_lane, k, n) + (S::kValueAt - S::kKeyAt));
#pragma unroll
      for (int m = 0; m < S::kRowTiles; m++) {
        const uint32_t a[4] = {weights[m][4 * k], weights[m][4 * k + 1], weights[m][4 * k + 2],
                               weights[m][4 * k + 3]};
        mma_16x8x16<T>(out[m][2 * n], a, b[0], b[1]);
        mma_16x8x16<T>(out[m][2 * n + 1], a, b[2], b[3]);
      }
    }
  }
}

template <int kRowTiles>
__device__ __forceinline__ void begin(Softmax (&softmax)[kRowTiles], float scale_log2) {
#pragma unroll
  for (int m = 0; m < kRowTiles; m++) {
    softmax[m].scale_log2 = scale_log2;
    softmax[m].max[0] = softmax[m].max[1] = kMinusInfinity;
    softmax[m].sum[0] = softmax[m].sum[1] = 0.0f;
  }
}

// Q, for shapes that keep it in registers.
template <class S>
__device__ __forceinline__ void load_whole_query(
    uint32_t (&held)[S::kHeadDim / 16][S::kRowTiles][4], uint32_t query_lane) {
  copy_wait<0>();
  __syncthreads();
#pragma unroll
  for (int k = 0; k < S::kHeadDim / 16; k++) load_query<S>(held[k], query_lane, k);
}

template <class T, class S, bool kCausal>
__device__ __forceinline__ void portable_forward(const PortableWork& work, uint32_t shared) {
  constexpr int kBlockM = S::kBlockM, kBlockN = S::kBlockN, kHeadDim = S::kHeadDim,
                kRowTiles = S::kRowTiles;
  const auto [batch, head, first_query] = Place<S, kCausal>::now(work);
  const int key_head = static_cast<int>(work.heads_per_key.quotient(head)),
            first_row = threadIdx.x / 32 * 16 * kRowTiles;
  const int seen = kCausal ? min(work.keys, first_query + kBlockM) : work.keys;
  int step = (seen + kBlockN - 1) / kBlockN - 1;

  const uint32_t query = shared, key = shared + S::kKeyAt, value = shared + S::kValueAt;
  uint32_t query_lane = lane_at<kHeadDim>(query + first_row * kHeadDim * 2);
  uint32_t key_lane = lane_at<kHeadDim>(key);
  const int64_t key_at = batch * work.key.batch_stride + key_head * work.key.head_stride;
  const int64_t value_at = batch * work.value.batch_stride + key_head * work.value.head_stride;
  copy_tile<kBlockM, kHeadDim, S::kThreads>(
      query, work.query, batch * work.query.batch_stride + head * work.query.head_stride,
      first_query, work.queries);
  copy_tile<kBlockN, kHeadDim, S::kThreads>(key, work.key, key_at, step * kBlockN, work.keys);
  copy_commit();

  float out[kRowTiles][kHeadDim / 8][4] = {};
  Softmax softmax[kRowTiles];
  begin(softmax, work.scale_log2);
  uint32_t held[S::kQueryInRegisters ? kHeadDim / 16 : 1][kRowTiles][4];
  if constexpr (S::kQueryInRegisters) load_whole_query<S>(held, query_lane);

  // K of the next step, once nobody reads this one's; whole, since the last rows came first. Ahead
  // of the softmax without a branch: at step 0 nothing is read and nobody looks at the zeros. ptxas
  // needs fewer registers so.
  constexpr NextKeys kNextKeys = S::template kNextKeys<kCausal>;
  const auto next_keys = [&](NextKeys here) {
    if (here != kNextKeys || (here == kAfterSoftmax && step == 0)) return;
    copy_tile<kBlockN, kHeadDim, S::kThreads, true>(key, work.key, key_at, (step - 1) * kBlockN, 0,
                                                    here == kAfterSoftmax || step > 0);
    copy_commit();
  };

#pragma unroll 1
  for (; step >= 0; step--) {
    // Their blocks' addresses are computed in each step, not kept.
    asm volatile("" : "+r"(query_lane), "+r"(key_lane));
    copy_wait<0>();
    __syncthreads();  // K of this step is there, and nobody reads V of the last one
    copy_tile<kBlockN, kHeadDim, S::kThreads>(value, work.value, value_at, step * kBlockN,
                                              work.keys);
    copy_commit();

    float scores[kRowTiles][kBlockN / 8][4] = {};
#pragma unroll
    for (int k = 0; k < kHeadDim / 16; k++) {
      uint32_t loaded[kRowTiles][4];
      if constexpr (!S::kQueryInRegisters) load_query<S>(loaded, query_lane, k);
#pragma unroll
      for (int n = 0; n < kBlockN / 16; n++) {
        // Matrices: keys 0-7 and 8-15 of columns 0-7, then of columns 8-15.
        uint32_t b[4];
        ldmatrix_x4(b, block_at<kHeadDim>(key_lane, n, k));
#pragma unroll
        for (int m = 0; m < kRowTiles; m++) {
          const uint32_t(&a)[4] =
              S::kQueryInRegisters ? held[S::kQueryInRegisters ? k : 0][m] : loaded[m];
          mma_16x8x16<T>(scores[m][2 * n], a, b[0], b[2]);
          mma_16x8x16<T>(scores[m][2 * n + 1], a, b[1], b[3]);
        }
      }
    }

    copy_wait<0>();
    __syncthreads();  // V of this step is there, and nobody reads its K

    next_keys(kBeforeSoftmax);
    uint32_t weights[kRowTiles][kBlockN / 4];
#pragma unroll
    for (int m = 0; m < kRowTiles; m++) {
      float(&row_scores)[kBlockN / 2] = reinterpret_cast<float(&)[kBlockN / 2]>(scores[m]);
      if ((step + 1) * kBlockN > (kCausal ? min(work.keys, first_query + 1) : work.keys)) {
        const int thread = thread_now(), here = thread % 32;
        const int row = first_query + thread / 32 * 16 * kRowTiles + m * 16 + here / 4;
        const int limit[2] = {kCausal ? min(work.keys, row + 1) : work.keys,
                              kCausal ? min(work.keys, row + 9) : work.keys};
        mask_scores(row_scores, step * kBlockN + here % 4 * 2, limit);
      }
      float decay[2];
      softmax[m].template step<false>(row_scores, decay);
      scale_rows(reinterpret_cast<float(&)[kHeadDim / 2]>(out[m]), decay);
#pragma unroll
      for (int i = 0; i < kBlockN / 4; i++)
        weights[m][i] = pack<T>(row_scores[2 * i], row_scores[2 * i + 1]);
      if (m == 0) next_keys(kWithinSoftmax);
    }
    next_keys(kAfterSoftmax);
    multiply_values<T, S>(out, weights, key_lane);
  }

  write_portable<T, S, kCausal>(work, query, out, softmax);
}

template <class T, int kHeadDim, bool kCausal>
__global__ void __launch_bounds__(PortableShape<kHeadDim>::kThreads)
    portable_kernel(const __grid_constant__ PortableWork work) {
  extern __shared__ __align__(128) char tiles[];
  portable_forward<T, PortableShape<kHeadDim>, kCausal>(
      work, static_cast<uint32_t>(__cvta_generic_to_shared(tiles)));
}

// -D P_CAUSAL=0 or 1 builds that case alone: who tunes one shape compiles half of the code.
#ifndef P_CAUSAL
#define P_CAUSAL 0, 1
#endif

template <class T>
void launch_portable(PortableWork work, int64_t head_dim, bool causal, int64_t batch,
                     cudaStream_t stream) {
  with_head_dim(head_dim, [&](auto d) {
    using S = PortableShape<d.value>;
    kiln::Launch how;
    work.tiles_per_head =
        Divisor::of(static_cast<uint32_t>((work.queries + S::kBlockM - 1) / S::kBlockM));
    how.grid = batch * work.heads.d * work.tiles_per_head.d;
    how.block = S::kThreads;
    how.shared_bytes = S::kSharedBytes;
    how.stream = stream;
    kiln::dispatch_value<P_CAUSAL>(causal, [&](auto c) {
      kiln::launch(portable_kernel<T, d.value, c.value != 0>, how, work);
    });
  });
}

void portable_bf16(const PortableWork& work, int64_t head_dim, bool causal, int64_t batch,
                   cudaStream_t stream);
void portable_f16(const PortableWork& work, int64_t head_dim, bool causal, int64_t batch,
                  cudaStream_t stream);

}  // namespace fa
