// SPDX-License-Identifier: Apache-2.0
// Who brings the tiles of the backward kernels? One thread each of three warps: the rows owned, and
// the two tensors that pass by.
#pragma once

#include "backward_shape.h"
#include "barriers.h"
#include "tma.h"

namespace fa {

template <class S, bool kCausal>
__device__ __forceinline__ void produce_own(const BackwardWork& work, BackwardShared<S> shared,
                                            Watch watch) {
  Ring<S::kOwnBuffers> ring;
  for (int i = 0; i < 2; i++) tma_prefetch_map(&work.own[i]), tma_prefetch_map(&work.gradients[i]);
  for (auto p = Queue<kCausal>::first(); p.exists(work.order);
       p.advance(work.order), ring.advance()) {
    const Tile tile = Tile::of<S, kCausal, S::kSide == Side::kKeys>(work, p);
#pragma unroll
    for (int w = 0; w < S::kConsumers; w++) {
      const uint32_t full = shared.own_full(ring.at, w);
      mbarrier_wait(shared.own_empty(ring.at, w), ring.parity ^ 1, watch, kOwnEmpty);
      mbarrier_arrive_expect(full, 2 * S::kOwnBytes);
#pragma unroll
      for (int i = 0; i < 2; i++)
        tma_load_tile<kRowsPerWarpgroup, S::kHeadDim>(shared.own(ring.at, w, i), &work.own[i], full,
                                                      tile.row + w * kRowsPerWarpgroup, tile.head,
                                                      tile.batch);
    }
  }
}

// A tile of kBlockN rows in boxes of 64.
template <class S>
__device__ __forceinline__ void load_step(uint32_t to, const CUtensorMap* map, uint32_t barrier,
                                          int row, int head, int batch) {
#pragma unroll
  for (int slab = 0; slab < S::kHeadDim / kSlabColumns; slab++) {
#pragma unroll
    for (int r = 0; r < S::kBlockN; r += 64)
      tma_load(to + (slab * S::kBlockN + r) * kRowBytes, map, barrier, slab * kSlabColumns, row + r,
               head, batch);
  }
}

// Which steps a tile has: rows of the passing tensors that any of its own rows sees.
template <class S, bool kCausal>
struct Steps {
  int begin, end;

  static __device__ __forceinline__ Steps of(const BackwardWork& work, const Tile& tile) {
    if constexpr (S::kSide == Side::kQueries) {
      const int seen = kCausal ? min(work.keys, tile.row + S::kBlockM) : work.keys;
      return {0, (seen + S::kBlockN - 1) / S::kBlockN};
    } else {
      return {kCausal ? tile.row / S::kBlockN : 0, (work.queries + S::kBlockN - 1) / S::kBlockN};
    }
  }
};

// kWhich 0 brings K for rows of Q, Q for rows of K; 1 brings V, dO.
template <class S, bool kCausal, int kWhich>
__device__ __forceinline__ void produce_queries_steps(const BackwardWork& work,
                                                      BackwardShared<S> shared, Watch watch) {
  Ring<S::kStages> ring;
  const auto next = [&](unsigned bytes) {
    mbarrier_wait(shared.step_empty(ring.at, kWhich), ring.parity ^ 1, watch, kStepEmpty);
    mbarrier_arrive_expect(shared.step_full(ring.at, kWhich), bytes);
  };
  tma_prefetch_map(&work.passing[kWhich]);
  tma_prefetch_map(&work.out);
  for (auto p = Queue<kCausal>::first(); p.exists(work.order); p.advance(work.order)) {
    const Tile tile = Tile::of<S, kCausal, S::kSide == Side::kKeys>(work, p);
    for (int o = 0; o < S::kOutSteps; o++, ring.advance()) {
      const int consumer = 2 * o + kWhich;
      next(consumer < S::kConsumers ? S::kOwnBytes : 0);
      if (consumer < S::kConsumers)
        tma_load_tile<kRowsPerWarpgroup, S::kHeadDim>(
            shared.step(ring.at, kWhich), &work.out, shared.step_full(ring.at, kWhich),
            tile.row + consumer * kRowsPerWarpgroup, tile.head, tile.batch);
    }
    const Steps<S, kCausal> steps = Steps<S, kCausal>::of(work, tile);
    const int head = static_cast<int>(work.heads_per_key.quotient(tile.head));
    for (int j = steps.begin; j < steps.end; j++, ring.advance()) {
      next(S::kStepBytes);
      load_step<S>(shared.step(ring.at, kWhich), &work.passing[kWhich],
                   shared.step_full(ring.at, kWhich), j * S::kBlockN, head, tile.batch);
    }
  }
}

template <class S, bool kCausal, int kWhich>
__device__ __forceinline__ void produce_keys_steps(const BackwardWork& work,
                                                   BackwardShared<S> shared, Watch watch) {
  Ring<S::kStages> ring;
  tma_prefetch_map(&work.passing[kWhich]);
  const int per_key = static_cast<int>(work.heads_per_key.d);
  for (auto p = Queue<kCausal>::first(); p.exists(work.order); p.advance(work.order)) {
    const Tile tile = Tile::of<S, kCausal, S::kSide == Side::kKeys>(work, p);
    const Steps<S, kCausal> steps = Steps<S, kCausal>::of(work, tile);
    for (int h = 0; h < per_key; h++) {
      const int head = tile.head * per_key + h;
      const int64_t rows =
          (static_cast<int64_t>(tile.batch) * work.heads.d * per_key + head) * work.padded;
      for (int j = steps.begin; j < steps.end; j++, ring.advance()) {
        const uint32_t full = shared.step_full(ring.at, kWhich);
        mbarrier_wait(shared.step_empty(ring.at, kWhich), ring.parity ^ 1, watch, kStepEmpty);
        mbarrier_arrive_expect(full, S::kStepBytes + S::kRowValuesBytes);
        load_step<S>(shared.step(ring.at, kWhich), &work.passing[kWhich], full, j * S::kBlockN,
                     head, tile.batch);
        bulk_load(shared.rows(ring.at, kWhich),
                  (kWhich == 0 ? work.row_lse : work.row_sum) + rows + j * S::kBlockN,
                  S::kRowValuesBytes, full);
      }
    }
  }
}

}  // namespace fa
