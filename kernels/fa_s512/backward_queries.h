// SPDX-License-Identifier: Apache-2.0
// What does a consumer warpgroup do with 64 rows of Q and dO? First D = sum(dO * O) of each row,
// which the other kernel reads, then over all rows of K and V that they see:
//
//   S = Q K^T, dP = dO V^T
//   P = exp(S * scale - LSE)      under dP
//   dS = P (dP - D)
//   dQ += dS K                    with the next step's S and dP behind it
#pragma once

#include "backward_consumer.h"

namespace fa {

template <class T>
__device__ __forceinline__ float product_of_pairs(uint32_t a, uint32_t b, float sum) {
  if constexpr (__is_same(T, Bf16)) {
    sum = __fmaf_rn(__uint_as_float(a << 16), __uint_as_float(b << 16), sum);
    return __fmaf_rn(__uint_as_float(a & 0xffff0000), __uint_as_float(b & 0xffff0000), sum);
  } else {
    const auto low = [](uint32_t x) {
      float y;
      asm("{.reg .b16 l, h;\nmov.b32 {l, h}, %1;\ncvt.f32.f16 %0, l;}" : "=f"(y) : "r"(x));
      return y;
    };
    sum = __fmaf_rn(low(a), low(b), sum);
    return __fmaf_rn(low(a >> 16), low(b >> 16), sum);
  }
}

// Of this thread's two rows of accumulators, from two tiles as TMA leaves them: two threads a row,
// each over half of its columns.
template <class T, int kHeadDim>
__device__ __forceinline__ void row_products(float (&sums)[2], uint32_t a, uint32_t b) {
  const unsigned row = threadIdx.x % kWarpgroup / 2, half = threadIdx.x % 2;
  constexpr unsigned kChunks = kHeadDim / 16;  // of 8 columns
  float sum = 0.0f;
#pragma unroll
  for (unsigned c = 0; c < kChunks; c++) {
    const unsigned at = half * kChunks + c;
    const uint32_t offset =
        (at / 8 * kRowsPerWarpgroup + row) * kRowBytes + ((at % 8 ^ (row & 7)) << 4);
    uint32_t x[4], y[4];
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(a + offset)
                 : "memory");
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(y[0]), "=r"(y[1]), "=r"(y[2]), "=r"(y[3])
                 : "r"(b + offset)
                 : "memory");
#pragma unroll
    for (int i = 0; i < 4; i++) sum = product_of_pairs<T>(x[i], y[i], sum);
  }
  sum += __shfl_xor_sync(0xffffffff, sum, 1);
  const int lane = threadIdx.x % 32;
  sums[0] = __shfl_sync(0xffffffff, sum, lane / 4 * 2);
  sums[1] = __shfl_sync(0xffffffff, sum, lane / 4 * 2 + 16);
}

// -LSE * log2(e) and D of this thread's two rows; both also to memory, for the other kernel.
template <class T, class S>
__device__ __forceinline__ void begin_rows(const BackwardWork& work, BackwardConsumer<S>& me,
                                           const Tile& tile, int row, float (&lse)[2],
                                           float (&sums)[2]) {
#pragma unroll
  for (int o = 0; o < S::kOutSteps; o++) {
    me.wait_for_step(0);
    me.wait_for_step(1);
    if (static_cast<int>(me.consumer) / 2 == o)
      row_products<T, S::kHeadDim>(sums, me.step_tile(me.consumer % 2), me.own_tile(1));
    __syncwarp();
    me.release(me.step.at);
    me.step.advance();
  }
  const int64_t head = static_cast<int64_t>(tile.batch) * work.heads.d + tile.head;
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int query = row + 8 * r;
    lse[r] = kMinusInfinity;
    if (query < work.queries) {
      const float given = work.lse[head * work.queries + query];
      // A row that saw nothing has an LSE of -inf and no weights.
      if (given != kMinusInfinity) lse[r] = given * -1.44269504088896341f;
      if (work.grad_lse) sums[r] -= work.grad_lse[head * work.queries + query];
    }
    if (threadIdx.x % 4 == 0 && query < work.padded) {
      work.row_lse[head * work.padded + query] = lse[r];
      work.row_sum[head * work.padded + query] = sums[r];
    }
  }
}

template <class T, class S, bool kCausal>
__device__ __forceinline__ void consume_queries(const BackwardWork& work, BackwardShared<S> shared,
                                                Watch watch, unsigned consumer) {
  constexpr int kBlockN = S::kBlockN, kHeadDim = S::kHeadDim;
  BackwardConsumer<S> me{shared, watch, consumer};
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const float scale_log2 = work.scale * 1.44269504088896341f;
  float scores[kBlockN / 2], slopes[kBlockN / 2], grad_query[kHeadDim / 2];
  uint32_t pulls[kBlockN / 4];

#pragma unroll 1
  for (auto p = Queue<kCausal>::first(); p.exists(work.order); p.advance(work.order)) {
    const Tile tile = Tile::of<S, kCausal, S::kSide == Side::kKeys>(work, p);
    const int first_row = tile.row + static_cast<int>(consumer) * kRowsPerWarpgroup;
    const int row = first_row + warp * 16 + lane / 4;
    const Steps<S, kCausal> steps = Steps<S, kCausal>::of(work, tile);
    const int limit[2] = {kCausal ? min(work.keys, row + 1) : work.keys,
                          kCausal ? min(work.keys, row + 9) : work.keys};
    const int seen_by_all = kCausal ? min(work.keys, first_row + 1) : work.keys;
    float lse[2], sums[2];
    me.wait_for_own();
    begin_rows<T, S>(work, me, tile, row, lse, sums);

    bool accumulate = false;
#pragma unroll 1
    for (int step = steps.begin; step < steps.end; step++) {
      if (first_row >= work.queries ||
          (kCausal && step * kBlockN >= first_row + kRowsPerWarpgroup)) {
        wgmma_wait<0>();
        me.release_read();
        me.pass_over();
        continue;
      }
      begin_step<T, S>(me, scores, slopes);
      pin(grad_query);
      pin(pulls);
      me.release_read();
      me.release_stored();

      if ((step + 1) * kBlockN > seen_by_all)
        mask_scores(scores, step * kBlockN + lane % 4 * 2, limit);
#pragma unroll
      for (int i = 0; i < kBlockN / 2; i++)
        scores[i] = exp2_approx(__fmaf_rn(scores[i], scale_log2, lse[i / 2 % 2]));
      if constexpr (S::kWaitLate)
        finish_before_wait(reinterpret_cast<const uint32_t(&)[kBlockN / 2]>(scores));
      wgmma_wait<0>();
      pin(slopes);
#pragma unroll
      for (int i = 0; i < kBlockN / 2; i++) slopes[i] = scores[i] * (slopes[i] - sums[i / 2 % 2]);
      pack_weights<T>(pulls, slopes);
      pin(pulls);
      wgmma_fence();
      multiply_weights_value<T, S>(grad_query, pulls, me.step_tile(0), accumulate);
      wgmma_commit();
      accumulate = true;
      me.leave_step();
    }
    wgmma_wait<0>();
    pin(grad_query);
    pin(pulls);
    me.release_read();
    me.release_stored();
    scale_all(grad_query, work.scale);
    stage_out<T, kHeadDim>(me.own_tile(0), grad_query);
    store_staged<kHeadDim>(&work.gradients[0], me.own_tile(0), me.own_barrier(), first_row,
                           tile.head, tile.batch);
    me.leave_own();
  }
  if (me.leader()) tma_store_wait_read();
}

}  // namespace fa
