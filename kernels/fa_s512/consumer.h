// SPDX-License-Identifier: Apache-2.0
// What does a consumer warpgroup do with 64 rows of Q? Scores, softmax, output, step after step and
// tile after tile:
//
//   scores of step j and the product of step j - 1 are given to the tensor cores together; the
//   softmax of step j runs under that product; the scores of the next tile's first step run under
//   the last product and the epilogue.
//
// The warpgroups take turns (ping-pong): one issues its products while another has its softmax.
#pragma once

#include "barriers.h"
#include "epilogue.h"
#include "products.h"
#include "shape.h"
#include "softmax.h"

namespace fa {

// Named barriers: 0 is __syncthreads, then one a consumer for its turn, then one a consumer for its
// own 128 threads.
template <class S>
struct Turn {
  unsigned consumer;
  static constexpr bool kTaken = S::kConsumers > 1 && S::kTurns;

  // The last consumer lets the first one begin.
  __device__ __forceinline__ void begin() const {
    if (kTaken && consumer == S::kConsumers - 1) named_barrier_arrive(1, 2 * kWarpgroup);
  }
  __device__ __forceinline__ void wait() const {
    if (kTaken) named_barrier_sync(1 + consumer, 2 * kWarpgroup);
  }
  __device__ __forceinline__ void pass_on() const {
    if (kTaken)
      named_barrier_arrive(1 + (consumer + 1 == S::kConsumers ? 0 : consumer + 1), 2 * kWarpgroup);
  }
  // Takes up the turn that the last consumer passed on at its end: no barrier is left half full.
  __device__ __forceinline__ void end() const {
    if (consumer == 0) wait();
  }
  __device__ __forceinline__ unsigned own_barrier() const { return 1 + S::kConsumers + consumer; }
};

// One lane a warp says that the warp has read a stage: each warp waits for its own wgmma only.
__device__ __forceinline__ void release(uint32_t empty_barrier) {
  if (threadIdx.x % 32 == 0) mbarrier_arrive(empty_barrier);
}

template <class T, class S, bool kCausal>
__device__ __forceinline__ void consume(const Work& work, Shared<S> shared, Watch watch,
                                        unsigned consumer) {
  constexpr int kBlockN = S::kBlockN;
  // Only the first step of a tile has masked scores, unless the diagonal of kBlockM rows crosses
  // several steps.
  constexpr bool kMaskAllSteps = kCausal && kBlockN % S::kBlockM != 0;
  // Of three warpgroups one has no rows in the last tile of a head of length 512. With two the test
  // costs more (1 %) than it brings there.
  constexpr bool kPassesOver = S::kConsumers > 2;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
  const bool leader = threadIdx.x % kWarpgroup == 0;
  const Turn<S> turn{consumer};

  float scores[kBlockN / 2], out[S::kHeadDim / 2];
  uint32_t weights[kBlockN / 4];
  Ring<S::kStages> keys, values;
  Ring<S::kQueryBuffers> query;
  int stored_from = -1;  // the Q buffer that a TMA store may still be reading; the leader's

  // The leader lets the producer have the buffer again. Late, where the store has long read it:
  // waiting at once cost 5
  // %.
  const auto release_stored = [&] {
    if (leader && stored_from >= 0) {
      tma_store_wait_read();
      mbarrier_arrive(shared.query_empty(stored_from, consumer));
    }
    stored_from = -1;
  };
  const auto wait_for_tiles = [&](bool wait_for_query) {
    if (wait_for_query)
      mbarrier_wait(shared.query_full(query.at, consumer), query.parity, watch, kQueryFull);
    mbarrier_wait(shared.key_full(keys.at), keys.parity, watch, kKeyFull);
  };

  // The scores of a tile's first step. After the last tile they are of stale tiles and nobody reads
  // them: a branch around wgmma in flight would make ptxas serialise them.
  const auto begin_scores = [&](bool there_is_one) {
    turn.wait();
    if (there_is_one) wait_for_tiles(true);
    pin(scores);
    wgmma_fence();
    multiply_query_key<T, S>(scores, shared.query(query.at, consumer), shared.key(keys.at));
    wgmma_commit();
    turn.pass_on();
  };
  const auto pass_over_values = [&] {
    mbarrier_wait(shared.value_full(values.at), values.parity, watch, kValueFull);
    release(shared.value_empty(values.at));
    values.advance();
  };
  // A tile whose rows of this warpgroup all lie beyond the end: the other warpgroups have the
  // tensor cores to themselves.
  const auto pass_over = [&](int steps_left, bool another) {
    release_stored();
    named_barrier_sync(turn.own_barrier(), kWarpgroup);  // all warps have read Q
    if (leader) mbarrier_arrive(shared.query_empty(query.at, consumer));
    query.advance();
#pragma unroll 1
    for (; steps_left > 0; steps_left--) {
      turn.wait();
      turn.pass_on();
      wait_for_tiles(false);
      release(shared.key_empty(keys.at));
      keys.advance();
      pass_over_values();
    }
    pass_over_values();
    begin_scores(another);
  };

  turn.begin();
  begin_scores(true);

#pragma unroll 1
  for (auto place = Queue<kCausal>::first(); place.exists(work.order);) {
    const Tile tile = Tile::of<S, kCausal, false>(work, place);
    place.advance(work.order);
    const bool another = place.exists(work.order);
    const int first_row =
        tile.row + static_cast<int>(consumer) * kRowsPerWarpgroup;  // of this warpgroup
    const int row =
        first_row + static_cast<int>(warp * 16 + lane / 4);  // of this thread, and row + 8
    const int limit[2] = {kCausal ? min(work.keys, row + 1) : work.keys,
                          kCausal ? min(work.keys, row + 9) : work.keys};
    const int seen_by_all = kCausal ? min(work.keys, first_row + 1) : work.keys;
    const auto mask = [&](int step) {
      if ((step + 1) * kBlockN > seen_by_all)
        mask_scores(scores, step * kBlockN + static_cast<int>(lane % 4) * 2, limit);
    };
    int step = tile.steps<S, kCausal>(work) - 1;
    Softmax softmax;
    softmax.scale_log2 = work.scale * 1.44269504088896341f;
    float decay[2];

    wgmma_wait<0>();
    pin(scores);
    release(shared.key_empty(keys.at));
    keys.advance();
    if (kPassesOver && first_row >= work.queries) {
      pass_over(step, another);
      continue;
    }
    if constexpr (S::kReleaseStoredEarly) release_stored();
    mask(step);
    softmax.step<true>(scores, decay);
    pack_weights<T>(weights, scores);

    bool accumulate = false;
#pragma unroll 1
    for (step--; step >= 0; step--) {
      turn.wait();
      wait_for_tiles(false);
      pin(scores);
      pin(weights);
      wgmma_fence();
      multiply_query_key<T, S>(scores, shared.query(query.at, consumer), shared.key(keys.at));
      wgmma_commit();
      scale_rows(out, decay);  // under the scores' product; before the first step of a tile `out`
                               // counts for nothing
      mbarrier_wait(shared.value_full(values.at), values.parity, watch, kValueFull);
      pin(out);
      wgmma_fence();
      multiply_weights_value<T, S>(out, weights, shared.value(values.at), accumulate);
      wgmma_commit();
      accumulate = true;
      // Ahead of the wait: ptxas puts an arrive that follows it behind the softmax, and the other
      // warpgroup's products would wait for this one's exponentials (0.93 of cuDNN instead
      // of 1.07).
      turn.pass_on();
      wgmma_wait<1>();
      pin(scores);
      release(shared.key_empty(keys.at));
      keys.advance();
      if constexpr (!S::kReleaseStoredEarly) release_stored();
      if constexpr (kMaskAllSteps) mask(step);
      softmax.step<false>(scores, decay);
      softmax.finish_before_wait();

      wgmma_wait<0>();
      pin(out);
      pin(weights);
      release(shared.value_empty(values.at));
      values.advance();
      pack_weights<T>(weights, scores);
    }

    if constexpr (!S::kReleaseStoredEarly) release_stored();
    scale_rows(out, decay);
    mbarrier_wait(shared.value_full(values.at), values.parity, watch, kValueFull);
    pin(out);
    pin(weights);
    wgmma_fence();
    multiply_weights_value<T, S>(out, weights, shared.value(values.at), accumulate);
    wgmma_commit();

    const unsigned own_query = query.at;
    query.advance();
    begin_scores(another);

    wgmma_wait<1>();
    pin(out);
    pin(weights);
    release(shared.value_empty(values.at));
    values.advance();

    float factor[2], lse[2];
    softmax.finish(factor, lse);
    scale_rows(out, factor);
    stage_out<T, S::kHeadDim>(shared.query(own_query, consumer), out);
    store_staged<S::kHeadDim>(&work.out, shared.query(own_query, consumer), turn.own_barrier(),
                              first_row, tile.head, tile.batch);
    stored_from = static_cast<int>(own_query);
    if (lane % 4 == 0) {
      float* to =
          work.lse + (static_cast<int64_t>(tile.batch) * work.heads.d + tile.head) * work.queries;
      if (row < work.queries) to[row] = lse[0];
      if (row + 8 < work.queries) to[row + 8] = lse[1];
    }
  }
  wgmma_wait<0>();
  pin(scores);
  if (leader) tma_store_wait_read();
  turn.end();
}

}  // namespace fa
