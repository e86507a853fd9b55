// SPDX-License-Identifier: Apache-2.0
// What is the kernel? One block an SM, which takes tile after tile: a warpgroup that brings tiles,
// others that work on them. One source a dtype includes this, so that they compile side by side.
#pragma once

#include <kiln/op.h>

#include "consumer.h"
#include "head_dims.h"
#include "producer.h"

namespace fa {

template <class S>
__device__ __forceinline__ void init_barriers(Shared<S> shared) {
  for (int i = 0; i < S::kQueryBuffers; i++) {
    for (int w = 0; w < S::kConsumers; w++) {
      mbarrier_init(shared.query_full(i, w), 1);
      mbarrier_init(shared.query_empty(i, w), 1);
    }
  }
  for (int i = 0; i < S::kStages; i++) {
    mbarrier_init(shared.key_full(i), 1);
    mbarrier_init(shared.value_full(i), 1);
    mbarrier_init(shared.key_empty(i), 4 * S::kConsumers);
    mbarrier_init(shared.value_empty(i), 4 * S::kConsumers);
  }
  mbarrier_init_fence();
}

template <class T, class S, bool kCausal>
__global__ void __launch_bounds__(S::kThreads, 1)
    forward_kernel(const __grid_constant__ Work work) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // the other architectures of a build have the portable path
  extern __shared__ char unaligned[];
  const Shared<S> shared{(shared_address(unaligned) + 1023) & ~1023u};
#if FA_DEBUG_TIMEOUT
  const Watch watch{work.report};
#else
  const Watch watch{};
#endif
  // The same for a whole warp, and the compiler must know it: setmaxnreg and wgmma are for
  // converged warps.
  const unsigned warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), warpgroup = warp / 4;
  if (threadIdx.x == 0) init_barriers<S>(shared);
  __syncthreads();

  if (warpgroup == 0) {
    give_registers_back<S::kProducerRegisters>();
    if (threadIdx.x % 32 == 0) {
      if (warp == 0) produce_queries<S, kCausal>(work, shared, watch);
      if (warp == 1) produce_keys_or_values<S, kCausal, true>(work, shared, watch);
      if (warp == 2) produce_keys_or_values<S, kCausal, false>(work, shared, watch);
    }
  } else {
    take_registers<S::kConsumerRegisters>();
    consume<T, S, kCausal>(work, shared, watch, warpgroup - 1);
  }
#endif
}

template <class T, class S, bool kCausal>
void launch_shape(const Work& work, int64_t blocks, cudaStream_t stream) {
  kiln::Launch how;
  how.grid = blocks;
  how.block = S::kThreads;
  how.shared_bytes = S::kSharedBytes;
  how.stream = stream;
  kiln::launch(forward_kernel<T, S, kCausal>, how, work);
}

template <class T>
void launch_forward(const Work& work, const Plan& plan, int64_t blocks, cudaStream_t stream) {
  with_head_dim(plan.head_dim, [&](auto d) {
    if (plan.causal)
      plan.many
          ? launch_shape<T, Shape<d.value, kManyRows<d.value, true>>, true>(work, blocks, stream)
          : launch_shape<T, Shape<d.value>, true>(work, blocks, stream);
    else
      plan.many
          ? launch_shape<T, Shape<d.value, kManyRows<d.value, false>>, false>(work, blocks, stream)
          : launch_shape<T, Shape<d.value>, false>(work, blocks, stream);
  });
}

void forward_bf16(const Work& work, const Plan& plan, int64_t blocks, cudaStream_t stream);
void forward_f16(const Work& work, const Plan& plan, int64_t blocks, cudaStream_t stream);

}  // namespace fa
