// SPDX-License-Identifier: Apache-2.0
// What are the backward kernels on Hopper? One block an SM, which takes tile after tile, as in the
// forward; first the one that owns rows of Q, then the one that owns rows of K.
#pragma once

#include <kiln/op.h>

#include "backward_keys.h"
#include "backward_queries.h"
#include "head_dims.h"

namespace fa {

template <class S>
__device__ __forceinline__ void init_barriers(BackwardShared<S> shared) {
  for (int i = 0; i < S::kOwnBuffers; i++) {
    for (int w = 0; w < S::kConsumers; w++) {
      mbarrier_init(shared.own_full(i, w), 1);
      mbarrier_init(shared.own_empty(i, w), 1);
    }
  }
  for (int i = 0; i < S::kStages; i++) {
    for (int which = 0; which < 2; which++) {
      mbarrier_init(shared.step_full(i, which), 1);
      mbarrier_init(shared.step_empty(i, which), 4 * S::kConsumers);
    }
  }
  mbarrier_init_fence();
}

template <class T, class S, bool kCausal>
__global__ void __launch_bounds__(S::kThreads, 1)
    backward_kernel(const __grid_constant__ BackwardWork work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ char unaligned[];
  const BackwardShared<S> shared{(shared_address(unaligned) + 1023) & ~1023u};
#if FA_DEBUG_TIMEOUT
  const Watch watch{work.report};
#else
  const Watch watch{};
#endif
  const unsigned warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), warpgroup = warp / 4;
  if (threadIdx.x == 0) init_barriers<S>(shared);
  __syncthreads();

  if (warpgroup == 0) {
    give_registers_back<S::kProducerRegisters>();
    if (threadIdx.x % 32 == 0) {
      if (warp == 0) produce_own<S, kCausal>(work, shared, watch);
      if constexpr (S::kSide == Side::kQueries) {
        if (warp == 1) produce_queries_steps<S, kCausal, 0>(work, shared, watch);
        if (warp == 2) produce_queries_steps<S, kCausal, 1>(work, shared, watch);
      } else {
        if (warp == 1) produce_keys_steps<S, kCausal, 0>(work, shared, watch);
        if (warp == 2) produce_keys_steps<S, kCausal, 1>(work, shared, watch);
      }
    }
  } else {
    take_registers<S::kConsumerRegisters>();
    if constexpr (S::kSide == Side::kQueries)
      consume_queries<T, S, kCausal>(work, shared, watch, warpgroup - 1);
    else
      consume_keys<T, S, kCausal>(work, shared, watch, warpgroup - 1);
  }
#endif
}

// Both work lists, one after the other. The tiles of each are those of its own shape.
template <class T, class S, bool kCausal>
void launch_side(BackwardWork work, int64_t rows, int64_t rows_passing, int64_t heads_of_all,
                 int processors, cudaStream_t stream) {
  const int64_t tiles_per_head = (rows + S::kBlockM - 1) / S::kBlockM;
  const int64_t tiles = heads_of_all * tiles_per_head;
  // Tile numbers and rows are 32 bits wide, with room for one more step beyond the end.
  KILN_CHECK(tiles < (int64_t{1} << 30), "too large: ", tiles, " tiles");
  work.tiles_per_head = Divisor::of(static_cast<uint32_t>(tiles_per_head));
  work.order =
      Order::of(heads_of_all, tiles_per_head, rows_passing * S::kHeadDim * 4, processors, kCausal);
  kiln::Launch how;
  how.grid = work.order.count < processors ? work.order.count : processors;
  how.block = S::kThreads;
  how.shared_bytes = S::kSharedBytes;
  how.stream = stream;
  kiln::launch(backward_kernel<T, S, kCausal>, how, work);
}

// What the host knows of a call.
struct BackwardPlan {
  int64_t head_dim, batch, heads, key_heads;
  bool causal;
  int processors;
};

// -D B_CAUSAL=0 or 1 builds that case alone.
#ifndef B_CAUSAL
#define B_CAUSAL 0, 1
#endif

template <class T>
void launch_backward(const BackwardWork& queries, const BackwardWork& keys,
                     const BackwardPlan& plan, cudaStream_t stream) {
  with_head_dim(plan.head_dim, [&](auto d) {
    using Queries = BackwardShape<d.value, Side::kQueries>;
    using Keys = BackwardShape<d.value, Side::kKeys>;
    static_assert(Queries::kBlockM % Keys::kBlockN == 0 && kRowMultiple % Keys::kBlockN == 0,
                  "the rows of a step over Q must all be written by the kernel before");
    kiln::dispatch_value<B_CAUSAL>(plan.causal, [&](auto c) {
      launch_side<T, Queries, c.value != 0>(queries, queries.queries, queries.keys,
                                            plan.batch * plan.heads, plan.processors, stream);
      launch_side<T, Keys, c.value != 0>(keys, keys.keys,
                                         keys.queries * (plan.heads / plan.key_heads),
                                         plan.batch * plan.key_heads, plan.processors, stream);
    });
  });
}

void backward_bf16(const BackwardWork& queries, const BackwardWork& keys, const BackwardPlan& plan,
                   cudaStream_t stream);
void backward_f16(const BackwardWork& queries, const BackwardWork& keys, const BackwardPlan& plan,
                  cudaStream_t stream);

}  // namespace fa
