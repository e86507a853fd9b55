// SPDX-License-Identifier: Apache-2.0
// Who brings the tiles? One thread each of three warps: Q, K and V, so that none waits for
// another's free buffer.
#pragma once

#include "barriers.h"
#include "shape.h"
#include "tma.h"

namespace fa {

template <class S, bool kCausal>
__device__ __forceinline__ void produce_queries(const Work& work, Shared<S> shared, Watch watch) {
  Ring<S::kQueryBuffers> ring;
  tma_prefetch_map(&work.query);
  tma_prefetch_map(&work.out);
  for (auto p = Queue<kCausal>::first(); p.exists(work.order);
       p.advance(work.order), ring.advance()) {
    const Tile tile = Tile::of<S, kCausal, false>(work, p);
#pragma unroll
    for (int w = 0; w < S::kConsumers; w++) {
      mbarrier_wait(shared.query_empty(ring.at, w), ring.parity ^ 1, watch, kQueryEmpty);
      mbarrier_arrive_expect(shared.query_full(ring.at, w), S::kQueryBytes);
      tma_load_tile<kRowsPerWarpgroup, S::kHeadDim>(
          shared.query(ring.at, w), &work.query, shared.query_full(ring.at, w),
          tile.row + w * kRowsPerWarpgroup, tile.head, tile.batch);
    }
  }
}

// The last keys first, as the consumers take them: those are the masked ones.
template <class S, bool kCausal, bool kKeys>
__device__ __forceinline__ void produce_keys_or_values(const Work& work, Shared<S> shared,
                                                       Watch watch) {
  Ring<S::kStages> ring;
  const CUtensorMap* map = kKeys ? &work.key : &work.value;
  tma_prefetch_map(map);
  for (auto p = Queue<kCausal>::first(); p.exists(work.order); p.advance(work.order)) {
    const Tile tile = Tile::of<S, kCausal, false>(work, p);
    const int head = static_cast<int>(work.heads_per_key.quotient(tile.head));
    for (int j = tile.steps<S, kCausal>(work) - 1; j >= 0; j--, ring.advance()) {
      const uint32_t full = kKeys ? shared.key_full(ring.at) : shared.value_full(ring.at);
      mbarrier_wait(kKeys ? shared.key_empty(ring.at) : shared.value_empty(ring.at),
                    ring.parity ^ 1, watch, kKeys ? kKeyEmpty : kValueEmpty);
      mbarrier_arrive_expect(full, S::kKeyBytes);
      tma_load_tile<S::kBlockN, S::kHeadDim>(kKeys ? shared.key(ring.at) : shared.value(ring.at),
                                             map, full, j * S::kBlockN, head, tile.batch);
    }
  }
}

}  // namespace fa
