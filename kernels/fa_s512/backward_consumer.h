// SPDX-License-Identifier: Apache-2.0
// What do the consumer warpgroups of both backward kernels share? Their places in the rings, the
// two products of a step, and the way out.
#pragma once

#include "backward_producer.h"
#include "epilogue.h"
#include "products.h"
#include "softmax.h"

namespace fa {

// A consumer's view of the block: what it waits for and what it gives back.
template <class S>
struct BackwardConsumer {
  BackwardShared<S> shared;
  Watch watch;
  unsigned consumer;
  Ring<S::kStages> step = {};
  Ring<S::kOwnBuffers> own = {};
  int read = -1;         // the stage whose products are under way
  int stored_from = -1;  // the own rows that a TMA store may still be reading; the leader's

  __device__ __forceinline__ bool leader() const { return threadIdx.x % kWarpgroup == 0; }
  __device__ __forceinline__ unsigned own_barrier() const { return 1 + consumer; }
  __device__ __forceinline__ uint32_t own_tile(unsigned which) const {
    return shared.own(own.at, consumer, which);
  }
  __device__ __forceinline__ uint32_t step_tile(unsigned which) const {
    return shared.step(step.at, which);
  }
  __device__ __forceinline__ void wait_for_own() const {
    mbarrier_wait(shared.own_full(own.at, consumer), own.parity, watch, kOwnFull);
  }
  __device__ __forceinline__ void wait_for_step(unsigned which) const {
    mbarrier_wait(shared.step_full(step.at, which), step.parity, watch, kStepFull);
  }
  __device__ __forceinline__ void release(unsigned stage) const {
    if (threadIdx.x % 32 == 0) {
      mbarrier_arrive(shared.step_empty(stage, 0));
      mbarrier_arrive(shared.step_empty(stage, 1));
    }
  }
  // Once the products of the step before are complete.
  __device__ __forceinline__ void release_read() {
    if (read >= 0) {
      __syncwarp();  // all lanes have read their LSE and D
      release(read);
    }
    read = -1;
  }
  __device__ __forceinline__ void leave_step() {
    read = static_cast<int>(step.at);
    step.advance();
  }
  // A step of which this warpgroup's rows see nothing.
  __device__ __forceinline__ void pass_over() {
    wait_for_step(0);
    wait_for_step(1);
    release(step.at);
    step.advance();
  }
  __device__ __forceinline__ void release_stored() {
    if (leader() && stored_from >= 0) {
      tma_store_wait_read();
      mbarrier_arrive(shared.own_empty(stored_from, consumer));
    }
    stored_from = -1;
  }
  // With one buffer the next rows have no other place; with two the wait is over by then.
  __device__ __forceinline__ void leave_own() {
    stored_from = static_cast<int>(own.at);
    own.advance();
    if constexpr (S::kOwnBuffers == 1) release_stored();
  }
};

// The scores and the weights' gradients of a step; returns when the scores are there, and so are
// all products begun earlier.
template <class T, class S>
__device__ __forceinline__ void begin_step(const BackwardConsumer<S>& me,
                                           float (&scores)[S::kBlockN / 2],
                                           float (&slopes)[S::kBlockN / 2]) {
  me.wait_for_step(0);
  pin(scores);
  wgmma_fence();
  multiply_query_key<T, S>(scores, me.own_tile(0), me.step_tile(0));
  wgmma_commit();
  me.wait_for_step(1);
  pin(slopes);
  wgmma_fence();
  multiply_query_key<T, S>(slopes, me.own_tile(1), me.step_tile(1));
  wgmma_commit();
  wgmma_wait<1>();
  pin(scores);
}

template <int N>
__device__ __forceinline__ void clear(float (&d)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) d[i] = 0.0f;
}

template <int N>
__device__ __forceinline__ void scale_all(float (&d)[N], float factor) {
#pragma unroll
  for (int i = 0; i < N; i++) d[i] *= factor;
}

// Keeps exponentials ahead of a wait for wgmma that follows, as Softmax::finish_before_wait does:
// ptxas would move the wait up in front of them. None is negative, so nothing is stored.
template <int N>
__device__ __forceinline__ void finish_before_wait(const uint32_t (&weights)[N]) {
  uint32_t all = 0;
#pragma unroll
  for (int i = 0; i < N; i++) all |= weights[i];
  asm volatile(
      "{\n"
      ".reg .pred negative;\n"
      "setp.lt.s32 negative, %0, 0;\n"
      "@negative st.volatile.shared.u32 [%1], 0;\n"
      "}" ::"r"(all),
      "r"(0)
      : "memory");
}

__device__ __forceinline__ void load_shared(float (&to)[2], uint32_t from) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(to[0]), "=f"(to[1]) : "r"(from));
}

}  // namespace fa
