// SPDX-License-Identifier: Apache-2.0
// What does a consumer warpgroup do with 64 rows of K and V? Over all rows of Q that see them, of
// every head of Q that shares them:
//
//   S^T = K Q^T, dP^T = V dO^T      rows of K, so a step's LSE and D go along columns
//   P^T = exp(S^T * scale - LSE), dS^T = P^T (dP^T - D)
//   dV += P^T dO, dK += dS^T Q      with the next step's S^T and dP^T behind them
//
// P^T and dS^T go from the accumulators of one product to the A operand of the next in registers.
// At head dim 128 these are 208 of the 240 that a thread has: dV ahead of dS^T would need more.
#pragma once

#include "backward_consumer.h"

namespace fa {

constexpr int kNoLimit = -(1 << 30);  // of a row's first query: it is seen from the start

// Weights of keys `row` and `row` + 8 at queries before `row`, `row` + 8 and from `queries` on are
// 0.
template <int N>
__device__ __forceinline__ void mask_queries(float (&scores)[N], int column, int row, int queries) {
#pragma unroll
  for (int i = 0; i < N; i += 4) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
#pragma unroll
      for (int e = 0; e < 2; e++)
        if (column + 2 * i + e < row + 8 * r || column + 2 * i + e >= queries)
          scores[i + 2 * r + e] = kMinusInfinity;
    }
  }
}

// Scores become weights: once in fp32, once as an A operand. `lse_at`: of this thread's columns.
template <class T, int N>
__device__ __forceinline__ void weigh(uint32_t (&weights)[N / 2], float (&scores)[N],
                                      uint32_t lse_at, float scale_log2) {
#pragma unroll
  for (int i = 0; i < N / 4; i++) {
    float lse[2];
    load_shared(lse, lse_at + i * 32);
#pragma unroll
    for (int e = 0; e < 4; e++)
      scores[4 * i + e] = exp2_approx(__fmaf_rn(scores[4 * i + e], scale_log2, lse[e % 2]));
  }
  pack_weights<T>(weights, scores);
}

// dS^T = P^T (dP^T - D) as an A operand. Packed at once: dS^T in fp32 would need registers of its
// own.
template <class T, int N>
__device__ __forceinline__ void pull(uint32_t (&pulls)[N / 2], const float (&weights)[N],
                                     const float (&slopes)[N], uint32_t sum_at) {
#pragma unroll
  for (int i = 0; i < N / 4; i++) {
    float sum[2];
    load_shared(sum, sum_at + i * 32);
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int at = 4 * i + 2 * r;
      pulls[2 * i + r] =
          pack<T>(weights[at] * (slopes[at] - sum[0]), weights[at + 1] * (slopes[at + 1] - sum[1]));
    }
  }
}

// dK and dV as they are staged, in the place of K and V.
template <class S>
__device__ __forceinline__ void store_both(const BackwardWork& work, const BackwardConsumer<S>& me,
                                           int row, const Tile& tile) {
  async_proxy_fence();
  named_barrier_sync(me.own_barrier(), kWarpgroup);
  if (!me.leader()) return;
#pragma unroll
  for (int i = 0; i < 2; i++)
    tma_store_tile<kRowsPerWarpgroup, S::kHeadDim>(&work.gradients[i], me.own_tile(i), row,
                                                   tile.head, tile.batch);
  tma_store_commit();
}

template <class T, class S, bool kCausal>
__device__ __forceinline__ void consume_keys(const BackwardWork& work, BackwardShared<S> shared,
                                             Watch watch, unsigned consumer) {
  constexpr int kBlockN = S::kBlockN, kHeadDim = S::kHeadDim;
  BackwardConsumer<S> me{shared, watch, consumer};
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const float scale_log2 = work.scale * 1.44269504088896341f;
  const int per_key = static_cast<int>(work.heads_per_key.d);
  float scores[kBlockN / 2], slopes[kBlockN / 2], grad_key[kHeadDim / 2], grad_value[kHeadDim / 2];
  uint32_t weights[kBlockN / 4], pulls[kBlockN / 4];

#pragma unroll 1
  for (auto p = Queue<kCausal>::first(); p.exists(work.order); p.advance(work.order)) {
    const Tile tile = Tile::of<S, kCausal, S::kSide == Side::kKeys>(work, p);
    const int first_row = tile.row + static_cast<int>(consumer) * kRowsPerWarpgroup;
    const Steps<S, kCausal> steps = Steps<S, kCausal>::of(work, tile);
    const int count = max(steps.end - steps.begin, 0);
    int step = steps.begin;
    bool accumulate = false;
    me.wait_for_own();
#pragma unroll 1
    for (int left = per_key * count; left > 0; left--) {
      if (first_row >= work.keys || (kCausal && (step + 1) * kBlockN <= first_row)) {
        wgmma_wait<0>();
        me.release_read();
        me.pass_over();
        if (++step == steps.end) step = steps.begin;
        continue;
      }
      begin_step<T, S>(me, scores, slopes);
      pin(grad_key);
      pin(pulls);
      me.release_read();
      me.release_stored();

      const int column = lane % 4 * 2;
      // Rows beyond the end are zeros, but zeros times an infinite key are not.
      if ((kCausal && step * kBlockN < first_row + kRowsPerWarpgroup - 1) ||
          (step + 1) * kBlockN > work.queries)
        mask_queries(scores, step * kBlockN + column,
                     kCausal ? first_row + warp * 16 + lane / 4 : kNoLimit, work.queries);
      weigh<T>(weights, scores, me.shared.rows(me.step.at, 0) + column * 4, scale_log2);
      if constexpr (S::kWaitLate) finish_before_wait(weights);
      wgmma_wait<0>();
      pin(slopes);
      pin(grad_key);
      pull<T>(pulls, scores, slopes, me.shared.rows(me.step.at, 1) + column * 4);
      pin(weights);
      pin(pulls);
      wgmma_fence();
      multiply_weights_value<T, S>(grad_value, weights, me.step_tile(1), accumulate);
      wgmma_commit();
      multiply_weights_value<T, S>(grad_key, pulls, me.step_tile(0), accumulate);
      wgmma_commit();
      // The operands of dV are registers that the next step needs.
      wgmma_wait<1>();
      pin(grad_value);
      pin(weights);
      accumulate = true;
      me.leave_step();
      if (++step == steps.end) step = steps.begin;
    }
    wgmma_wait<0>();
    pin(grad_key);
    pin(pulls);
    me.release_read();
    me.release_stored();
    if (!accumulate) {
      clear(grad_key);
      clear(grad_value);
    }
    scale_all(grad_key, work.scale);
    stage_out<T, kHeadDim>(me.own_tile(0), grad_key);
    stage_out<T, kHeadDim>(me.own_tile(1), grad_value);
    store_both<S>(work, me, first_row, tile);
    me.leave_own();
  }
  if (me.leader()) tma_store_wait_read();
}

}  // namespace fa
